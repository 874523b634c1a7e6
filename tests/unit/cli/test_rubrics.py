"""`etude rubric`, as whoever writes a rubric meets it."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run

SHIPPED = files("etude.rubric").joinpath("rubrics")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A school's rubric: one that ships, under another name."""
    file = tmp_path / "data" / "rubrics" / "ours.yaml"
    file.parent.mkdir(parents=True)
    text = SHIPPED.joinpath("violin-basic.yaml").read_text("utf-8")
    file.write_text(text.replace("id: violin-basic", "id: violin-ours"), "utf-8")
    return file


def test_a_sound_rubric(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what was read; exit code 0."""
    assert run(["rubric", "check", str(own)]) == exits.OK
    out = capsys.readouterr().out
    assert out.startswith(f"{own}: violin-ours@v1.2")


def test_every_mistake_is_named_with_file_and_line(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All at once, in the order of the lines, each with its code; exit code 1."""
    text = own.read_text("utf-8").replace("value.correct", "value.1st", 1)
    own.write_text(text.replace("safety_gates:", "safety_gate:"), "utf-8")
    assert run(["rubric", "check", str(own)]) == exits.REFUSED
    lines = capsys.readouterr().out.splitlines()
    written = own.read_text("utf-8").splitlines()
    places = [int(line.removeprefix(f"{own}:").partition(":")[0]) for line in lines]
    assert [line.rpartition(" ")[2] for line in lines] == [
        "[DOCUMENT_OUT_OF_BOUNDS]",
        "[DOCUMENT_UNKNOWN_KEY]",
    ]
    assert "value.1st" in written[places[0] - 1]
    assert "safety_gate:" in written[places[1] - 1]


def test_check_as_json(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document: the rubric, or its mistakes with line, place, code and message."""
    assert run(["rubric", "check", str(own), "--json"]) == exits.OK
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (shown["rubric"]["id"], shown["mistakes"]) == ("violin-ours", [])
    assert shown["rubric"]["dimensions"][0] == "intonation"
    own.write_text("id: 7\nversion: v1\n", "utf-8")
    assert run(["--locale", "zh-CN", "rubric", "check", str(own), "--json"]) == exits.REFUSED
    shown = json.loads(capsys.readouterr().out)
    assert shown["rubric"] is None
    wrong = next(one for one in shown["mistakes"] if one["path"] == "id")
    assert (wrong["line"], wrong["code"], wrong["file"]) == (1, "DOCUMENT_NOT_A", str(own))
    assert "类型" in wrong["message"]


def test_check_of_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there ends with 3, a folder with 1."""
    assert run(["rubric", "check", str(tmp_path / "none.yaml")]) == exits.NOT_FOUND
    assert "[RUBRIC_FILE_UNKNOWN]" in capsys.readouterr().err
    assert run(["rubric", "check", str(tmp_path)]) == exits.REFUSED
    assert "[RUBRIC_FILE_UNREADABLE]" in capsys.readouterr().err


def test_list_shows_what_ships_and_what_was_dropped_in(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with where it comes from; a file with mistakes is told and costs only itself."""
    data = own.parents[1]
    assert run(["rubric", "list", "--data", str(data), "--json"]) == exits.OK
    shown = json.loads(capsys.readouterr().out)
    assert {one["id"]: one["shipped"] for one in shown["rubrics"]} == {
        "cpr-bls": True,
        "follow-read-en": True,
        "follow-read-zh": True,
        "osce-handwash": True,
        "violin-basic": True,
        "violin-ours": False,
    }
    (own.parent / "broken.yaml").write_text("id: x\n", "utf-8")
    assert run(["rubric", "list", "--data", str(data)]) == exits.REFUSED
    out, err = capsys.readouterr()
    assert "violin-ours@v1.2" in out
    assert "broken.yaml:1" in err
    assert run(["rubric", "list", "--data", str(data), "--json"]) == exits.REFUSED
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["code"] == "DOCUMENT_INVALID"
    assert problem["parts"][0]["code"] == "DOCUMENT_MISSING"
