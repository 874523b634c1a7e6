"""`docs/edge.md` against the code."""

import re
import sys
from pathlib import Path

from etude.edge.upload_state import UploadState, UploadStatus
from etude.testing.waiting import run_bounded

PAGE = (Path(__file__).parents[2] / "docs" / "edge.md").read_text("utf-8")


def test_the_example_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    """The first block, as a reader would paste it."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ran = run_bounded(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.split() == ["uncertain", "10", "done", "10"]


def test_every_field_of_the_state_is_described() -> None:
    """The table of `state.json` is complete."""
    table = PAGE.partition("`state.json`:")[2]
    described = set(re.findall(r"`(\w+)`", table))
    assert set(UploadState.__struct_fields__) <= described
    assert {status.value for status in UploadStatus} <= described
