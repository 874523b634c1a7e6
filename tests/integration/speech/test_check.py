"""`etude speech check`, with the network taken away."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from etude.speech.check import run_check, words_kept
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.speech_server import ServerOptions
from etude.testing.waiting import run_bounded

PROGRAM = [sys.executable, "-m", "etude", "speech", "check"]
# Where the system gives no network namespace: every socket that could leave is refused instead.
REFUSING = """
import socket, sys
def refuse(*_):
    raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from etude.cli.app import main
sys.argv = ["etude", "speech", "check", *sys.argv[1:]]
main()
"""


def without_network(*arguments: str) -> subprocess.CompletedProcess[str]:
    unshare = shutil.which("unshare")
    alone = [unshare, "--user", "--map-root-user", "--net"] if unshare else []
    if not alone or run_bounded([*alone, "true"], check=False).returncode != 0:
        command = [sys.executable, "-c", REFUSING, *arguments]
    else:
        command = [*alone, *PROGRAM, *arguments]
    return run_bounded(command, capture_output=True, text=True, limit_s=240)


def test_all_works_without_network(engines: Engines, tmp_path: Path) -> None:
    """With no network at all the voice is heard by the recogniser, and every model is verified."""
    assert engines
    done = without_network("--json", "--data", str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"]
    assert report["round_trip"]["words_kept"] >= 0.75
    assert report["round_trip"]["aligned"]
    assert {one["kind"] for one in report["engines"]} == {
        "recognise",
        "align",
        "synthesise",
        "voice_activity",
    }
    assert all(one["card"]["licence"] for one in report["engines"])
    for one in report["models"]:  # what does not come with a package is not here
        placed = one["card"]["source"].startswith("file:")
        assert one["error"] == ("MODEL_MISSING" if placed else None)
    assert report["languages"][1] == {
        "language": "zh",
        "recognise": False,
        "align": False,
        "synthesise": False,
    }


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """A model that is not there is a finding with its code, and the check says no."""
    options = SpeechOptions(
        models=tmp_path,
        recogniser="no-such-model",
        voice_server=ServerOptions(url="ftp://nowhere", model="m"),
    )
    report = run_check(Engines(options))
    errors = {one.kind: one.error for one in report.engines}
    assert errors["recognise"] == "MODEL_UNKNOWN"
    assert errors["synthesise"] == "SPEECH_SERVER_FAILED"
    assert report.round_trip is None
    assert not report.is_sound


@pytest.mark.parametrize(
    ("said", "heard", "kept"),
    [
        ("The cat, the dog.", "the cat the dog", 1.0),
        ("the cat the dog", "THE cat", 0.5),
        ("a b", "", 0.0),
        ("", "x", 0.0),
    ],
)
def test_words_that_came_back_are_counted_once(said: str, heard: str, kept: float) -> None:
    """Case and punctuation do not count, a word counts as often as it was said."""
    assert words_kept(said, heard) == kept
