"""How the libraries of the engines are loaded."""

import os
import sys

import pytest

from etude.speech.errors import SpeechExtraMissingError
from etude.speech.libraries import SILENT, load_library
from etude.testing.waiting import run_bounded


def test_no_library_may_speak_to_its_maker() -> None:
    """Before anything is loaded it stands in the environment, whatever stood there."""
    code = (
        "import os; os.environ['ORT_DISABLE_TELEMETRY'] = '0'\n"
        "from etude.speech.libraries import load_library\n"
        "load_library('wave')\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    ran = run_bounded([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout.strip() == b"1"


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs it."""
    for name in SILENT:
        monkeypatch.setenv(name, "1")
    with pytest.raises(SpeechExtraMissingError) as raised:
        load_library("no_such_engine", "pip install it")
    assert raised.value.params["install"] == "pip install it"
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
