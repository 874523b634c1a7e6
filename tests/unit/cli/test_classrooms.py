"""`etude classroom` on files that are none."""

import zipfile
from pathlib import Path

import pytest

from etude.cli import exits
from etude.cli.app import run


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("ETUDE_DATA", str(folder))
    return folder


@pytest.mark.parametrize("content", [b"", b"# Making tea", b'{"stage": ', b"[1]", b"\xff\xfe"])
@pytest.mark.parametrize("command", [["check"], ["edit", "c-1"]], ids=lambda each: each[0])
def test_what_is_no_json_is_named(
    command: list[str],
    content: bytes,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever checks a folder of files is told which of them; before anything is opened."""
    file = tmp_path / "tea.json"
    file.write_bytes(content)
    assert run(["classroom", *command, str(file)]) == exits.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"etude: {file} is not a JSON object (")
    assert err.endswith(" [CLASSROOM_FILE_NOT_JSON]\n")
    assert not data.exists()


def test_an_archive_whose_list_is_no_json_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong is inside it; what the person has is the archive."""
    file = tmp_path / "tea.maic.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", "# Making tea")
    assert run(["--locale", "zh-CN", "classroom", "check", str(file)]) == exits.USAGE
    assert f"{file} 不是 JSON 对象" in capsys.readouterr().err


def test_what_is_brought_is_named_too(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An import reads the file only once the database is open, and says the same."""
    assert run(["init", "--data", str(data)]) == exits.OK
    file = tmp_path / "tea.json"
    file.write_text("# Making tea")
    assert run(["classroom", "import", str(file)]) == exits.USAGE
    assert f"{file} is not a JSON object (" in capsys.readouterr().err
