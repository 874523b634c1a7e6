import os
from importlib.resources import files
from pathlib import Path

from etude.examiner.shelf import RubricShelf

SHIPPED = files("etude.rubric").joinpath("rubrics/violin-basic.yaml").read_text("utf-8")


def test_a_rubric_that_is_dropped_in_is_there_without_a_restart(tmp_path: Path) -> None:
    """Also one that is changed or taken away; files are read only then."""
    shelf = RubricShelf(tmp_path / "rubrics")
    before = shelf.library()
    assert shelf.library() is before
    (tmp_path / "rubrics").mkdir()
    mine = tmp_path / "rubrics" / "mine.yaml"
    mine.write_text(SHIPPED.replace("version: v1.2", "version: v9.0"))
    assert shelf.library().get("violin-basic").version == "v9.0"
    mine.write_text(SHIPPED.replace("version: v1.2", "version: v9.1"))
    os.utime(mine, ns=(1, 1))
    assert shelf.library().get("violin-basic").version == "v9.1"
    mine.unlink()
    assert shelf.library().get("violin-basic").version == "v1.2"
