"""`etude speech` at the command line, without loading an engine that works."""

import json
from pathlib import Path

import pytest

from etude.cli.app import run


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installation whose engines cannot be: no such model, no such server."""
    monkeypatch.setenv("ETUDE_SPEECH_RECOGNISER", "no-such-model")
    monkeypatch.setenv("ETUDE_SPEECH_VOICE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("ETUDE_SPEECH_VOICE", "model/speaker")
    monkeypatch.setenv("ETUDE_SPEECH_KEY", "hunter2")
    return tmp_path


def test_what_does_not_work_is_said(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the missing model by name, the truth about Chinese, and never the key."""
    assert run(["speech", "check", "--data", str(broken)]) == 1
    said = capsys.readouterr().out
    assert "no-such-model" in said
    assert "Chinese: nothing that ships" in said
    assert "round trip: not possible" in said
    assert "hunter2" not in said


def test_the_check_is_one_json_document(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each engine with its error's code, in a document without the key."""
    assert run(["speech", "check", "--json", "--data", str(broken)]) == 1
    printed = capsys.readouterr().out
    found = {one["kind"]: one["error"] for one in json.loads(printed)["engines"]}
    assert found["recognise"] == "MODEL_UNKNOWN"
    assert found["synthesise"] is None  # asked at the first sentence only
    assert "hunter2" not in printed


@pytest.mark.parametrize(
    ("model", "code", "ends"),
    [("no-such-model", "MODEL_UNKNOWN", 3), ("whisper-base", "MODEL_NOT_FETCHABLE", 1)],
)
def test_what_cannot_be_fetched_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, code: str, ends: int
) -> None:
    """No such model, or one without an address: a code, and nothing is written."""
    assert run(["speech", "fetch", model, "--data", str(tmp_path / "data")]) == ends
    assert code in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
