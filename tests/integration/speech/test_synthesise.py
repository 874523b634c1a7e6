"""The contract of synthesis, kept by the embedded voice and a server; and voice activity."""

import io
import json

import httpx2
import numpy as np
import pytest
import soundfile

from etude.speech.audio import Pcm
from etude.speech.engines import Engines
from etude.speech.errors import SpeechLanguageError, SpeechTextError
from etude.speech.loudness import measure
from etude.speech.speech_server import ServerOptions
from etude.speech.synthesise import TARGET_LUFS, Synthesiser, levelled
from etude.speech.synthesise_http import HttpSynthesiser
from etude.speech.voice_activity import speech_spans

CAT = "The cat sat on the mat."


def hummed(request: httpx2.Request) -> httpx2.Response:
    """Answer as a server: the longer the text and the slower, the longer a loud hum."""
    asked = json.loads(request.content)
    seconds = len(asked["input"]) / 15 / asked["speed"]
    wave = 0.9 * np.sin(np.arange(round(seconds * 24_000)) * 0.05)
    file = io.BytesIO()
    soundfile.write(file, wave, 24_000, format="WAV")
    return httpx2.Response(200, content=file.getvalue())


@pytest.fixture(params=["embedded", "http"])
def synthesiser(request: pytest.FixtureRequest, engines: Engines) -> Synthesiser:
    if request.param == "embedded":
        return engines.synthesiser()
    options = ServerOptions(url="http://speech.test/v1", model="m", voice="v")
    return HttpSynthesiser(options, wire=httpx2.MockTransport(hummed))


def test_speech_is_at_one_loudness(synthesiser: Synthesiser) -> None:
    """Whoever speaks: near the target, never clipped, with engine and model beside it."""
    speech = synthesiser.synthesise("Well read!", language="en-GB")
    found = measure(speech.sound)
    assert found.integrated_lufs == pytest.approx(TARGET_LUFS, abs=4)
    assert found.peak_dbfs is not None
    assert found.peak_dbfs < -0.9
    card = synthesiser.card
    assert (speech.engine, speech.model, speech.licence, speech.notice) == (
        card.engine,
        card.model,
        card.licence,
        card.notice,
    )
    assert speech.language == "en-GB"


def test_the_voice_that_ships_says_whose_it_is(engines: Engines) -> None:
    """Its licence and the note about the voice that it came from go with all that it says."""
    card = engines.synthesiser().card
    assert "CC0" in card.licence
    assert "lessac" in card.notice
    assert card.model.startswith("voice-joe-en-us/")


def test_a_slower_voice_takes_longer(synthesiser: Synthesiser) -> None:
    """The rate stretches the sound."""
    normal, slow = (
        synthesiser.synthesise(CAT, language="en", rate=rate).sound.duration_ms
        for rate in (1.0, 0.6)
    )
    assert slow > 1.3 * normal


@pytest.mark.parametrize(
    ("text", "rate"), [("", 1.0), ("  ", 1.0), ("?!", 1.0), ("x" * 5000, 1.0), ("Hi", 0.1)]
)
def test_what_cannot_be_spoken_is_refused(synthesiser: Synthesiser, text: str, rate: float) -> None:
    """No word, far too many letters, a pace nobody understands: a typed error."""
    with pytest.raises(SpeechTextError):
        synthesiser.synthesise(text, language="en", rate=rate)


@pytest.mark.parametrize("text", ["你好", "Say 你好"])
def test_the_english_voice_reads_no_other_script(engines: Engines, text: str) -> None:
    """Characters that it cannot pronounce are refused, not left out."""
    with pytest.raises(SpeechTextError):
        engines.synthesiser().synthesise(text, language="en")


def test_another_language_is_refused(engines: Engines) -> None:
    """The English voice does not read Chinese."""
    with pytest.raises(SpeechLanguageError):
        engines.synthesiser().synthesise("ni hao", language="zh-CN")


def test_silence_stays_silence() -> None:
    """Levelling raises no nothing."""
    silence = Pcm(sample_rate=16_000, samples=bytes(32_000))
    assert levelled(silence) == silence


@pytest.mark.parametrize("learned", [True, False])
def test_speech_is_found_and_noise_is_not(
    engines: Engines, spoken: dict[str, Pcm], *, learned: bool
) -> None:
    """Either detector finds the sentence in silence, nobody in noise, the same after a reset."""
    sound = Pcm(sample_rate=16_000, samples=bytes(32_000) + spoken[CAT].samples + bytes(32_000))
    activity = engines.voice_activity(learned=learned)
    spans = speech_spans(sound, activity)
    assert spans[0].start_ms == pytest.approx(1000, abs=250)
    assert spans[-1].end_ms == pytest.approx(sound.duration_ms - 1000, abs=350)
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1000, 48_000).astype(np.int16).tobytes()
    assert speech_spans(Pcm(sample_rate=16_000, samples=noise), activity) == ()
    assert speech_spans(sound, activity) == spans
