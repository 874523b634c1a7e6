"""`etude bundle`, as whoever gets a bundle meets it."""

import json
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run
from etude.courseware.freezing import freeze
from etude.courseware.source_files import hash_files
from etude.testing.courseware import document, lay_out


def bundle(root: Path, title: str = "Tides") -> Path:
    classroom = lay_out(root, document(title=title))
    file = root / "bundle.zip"
    frozen = freeze(classroom, hash_files(root / classroom.id), "cw_tides")
    file.write_bytes(b"".join(frozen.blocks()))
    return file


def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_sound_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with courseware and hash; exit code 0; as JSON too."""
    file = bundle(tmp_path)
    assert run(["bundle", "verify", str(file)]) == exits.OK
    assert "cw_tides" in capsys.readouterr().out
    assert run(["bundle", "verify", str(file), "--courseware", "cw_tides", "--json"]) == exits.OK
    assert shown(capsys)["sound"] is True


def test_a_refused_bundle_names_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed byte, another courseware, another hash: exit code 1 and the code."""
    file = bundle(tmp_path)
    wrong = ["--courseware", "cw_other", "--json"]
    assert run(["bundle", "verify", str(file), *wrong]) == exits.REFUSED
    assert shown(capsys)["mistakes"][0]["code"] == "BUNDLE_ID_MISMATCH"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert run(["bundle", "verify", str(file)]) == exits.REFUSED
    assert "[BUNDLE_" in capsys.readouterr().out


def test_no_such_file(tmp_path: Path) -> None:
    """A file that is not there is exit code 3."""
    for command in ("verify", "show"):
        assert run(["bundle", command, str(tmp_path / "none.zip")]) == exits.NOT_FOUND


def test_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scenes and files are listed."""
    file = bundle(tmp_path)
    assert run(["bundle", "show", str(file)]) == exits.OK
    out = capsys.readouterr().out
    assert "practice" in out
    assert "classroom.json" in out
    assert run(["bundle", "show", str(file), "--json"]) == exits.OK
    assert next(one["type"] for one in shown(capsys)["scenes"]) == "slide"


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal bundles are exit code 0; others are 1, with what differs."""
    one, other = bundle(tmp_path / "a"), bundle(tmp_path / "b", "Other tides")
    assert run(["bundle", "diff", str(one), str(one), "--json"]) == exits.OK
    assert shown(capsys) == {"equal": True, "differences": []}
    assert run(["bundle", "diff", str(one), str(other), "--json"]) == exits.REFUSED
    assert {"what": "manifest", "name": "title", "change": "~"} in shown(capsys)["differences"]
