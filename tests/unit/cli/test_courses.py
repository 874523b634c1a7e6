"""What `etude course` prints of a course that was published."""

import json
from pathlib import Path
from typing import Any

import pytest

from etude.cli import courses, exits
from etude.cli.app import run
from etude.cli.local import show_table

PIN = {"index": 0, "coursewareId": "w-1"}


@pytest.fixture(autouse=True)
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every course be published in version 3, for the first time."""

    def answer(*_: object) -> dict[str, Any]:
        return {"course_id": "a-rather-long-id", "version": 3, "new": True, "modules": [PIN]}

    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setattr(courses, "with_database", answer)


@pytest.mark.parametrize(
    ("locale", "lines"),
    [
        ("en", ["Course            Version  New", "a-rather-long-id  3        yes"]),
        ("zh-CN", ["课程              版本  新版本", "a-rather-long-id  3     是"]),
    ],
)
def test_a_publication_has_heads_over_its_columns(
    locale: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the run's language, and above what they are the heads of."""
    assert run(["--locale", locale, "course", "publish", "c"]) == exits.OK
    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == (lines, "")


def test_with_json_it_is_a_document_with_the_modules(capsys: pytest.CaptureFixture[str]) -> None:
    """The names are the same in every language."""
    assert run(["--locale", "zh-CN", "course", "publish", "c", "--json"]) == exits.OK
    assert json.loads(capsys.readouterr().out) == {
        "course_id": "a-rather-long-id",
        "version": 3,
        "new": True,
        "modules": [PIN],
    }


def test_a_table_without_rows_is_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing found is not nothing said."""
    show_table(["Course", "New"], [])
    assert capsys.readouterr().out == "Course  New\n"
