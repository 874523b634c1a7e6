import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run
from etude.practice.sample_lessons import sample_lessons

GREETINGS = sample_lessons() / "english_learning/shadowing/lessons/greetings"
WHERE = ["--app", "english_learning", "--task", "shadowing"]


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    folder = tmp_path / "greetings"
    shutil.copytree(GREETINGS, folder)
    (folder / "lesson.json").unlink()
    return folder


def test_build_writes_the_manifest_and_says_where(
    lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stdout is one line with the path; exit code 0."""
    assert run(["lesson", "build", str(lesson)]) == exits.OK
    assert capsys.readouterr().out.startswith(str(lesson / "lesson.json"))
    assert (lesson / "lesson.json").exists()


def test_build_with_errors_writes_nothing(lesson: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each finding is a line on stderr that begins with its file; exit code 1."""
    (lesson / "02.txt").unlink()
    (lesson / "notes.odt").touch()
    assert run(["lesson", "build", str(lesson)]) == exits.REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(": ")[:2] for line in err.splitlines()] == [
        ["02.mp3", "error"],
        ["notes.odt", "warning"],
    ]
    assert not (lesson / "lesson.json").exists()


def test_build_as_json(lesson: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document with clips, findings and what was written, in the language of the run."""
    (lesson / "notes.odt").touch()
    assert run(["--locale", "zh-CN", "lesson", "build", str(lesson), "--json"]) == exits.OK
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert shown["written"] == str(lesson / "lesson.json")
    assert shown["clips"][0]["text"] == "Good morning."
    assert (shown["errors"], len(shown["findings"])) == (0, 1)
    assert shown["findings"][0]["severity"] == "warning"
    assert "略过" in shown["findings"][0]["message"]


def test_build_of_no_folder_is_not_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3."""
    assert run(["lesson", "build", str(tmp_path / "nowhere")]) == exits.NOT_FOUND
    assert "[LESSON_FOLDER_UNKNOWN]" in capsys.readouterr().err


def test_install_puts_it_into_the_data_folder(
    lesson: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the gateway looks for lessons; again, it says that nothing changed."""
    data = tmp_path / "data"
    data.mkdir()
    command = ["lesson", "install", str(lesson), *WHERE, "--lesson", "unit01", "--data", str(data)]
    assert run([*command, "--json"]) == exits.OK
    shown = json.loads(capsys.readouterr().out)
    target = data / "lessons/english_learning/shadowing/lessons/unit01"
    assert (shown["folder"], shown["changed"]) == (str(target), True)
    assert (target / "04.mp3").exists()
    assert run(command) == exits.OK
    assert "already" in capsys.readouterr().out


def test_install_refuses_a_faulty_lesson(
    lesson: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The findings are listed, nothing is installed, exit code 1."""
    data = tmp_path / "data"
    data.mkdir()
    (lesson / "01.txt").write_bytes(b"")
    command = ["lesson", "install", str(lesson), *WHERE, "--data", str(data), "--json"]
    assert run(command) == exits.REFUSED
    assert "01.txt: error" in capsys.readouterr().err
    assert list(data.iterdir()) == []


def test_install_without_an_installation_is_told(lesson: Path, tmp_path: Path) -> None:
    """Exit code 4, as every command that needs the data folder."""
    command = ["lesson", "install", str(lesson), *WHERE, "--data", str(tmp_path / "data")]
    assert run(command) == exits.UNAVAILABLE


def test_build_speaks_only_when_asked_and_names_what_to_install(
    lesson: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing clip is an error; with --speak and without the extra, the line that installs it."""
    (lesson / "02.mp3").unlink()
    assert run(["lesson", "build", str(lesson)]) == exits.REFUSED
    assert not (lesson / "02.mp3").exists()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run(["lesson", "build", str(lesson), "--speak"]) == exits.UNAVAILABLE
    assert "pip install 'etude[server,speech]'" in capsys.readouterr().err
    assert not (lesson / "02.mp3").exists()


def test_build_with_a_whole_lesson_asks_no_voice(
    lesson: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--speak of a lesson that lacks nothing needs no engine."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run(["lesson", "build", str(lesson), "--speak"]) == exits.OK
