"""The embedded voice, and voice activity on what it says."""

import numpy as np
import pytest

from etude.speech.audio import Pcm
from etude.speech.engines import Engines
from etude.speech.errors import SpeechLanguageError, SpeechTextError
from etude.speech.loudness import measure
from etude.speech.synthesise import TARGET_LUFS, levelled
from etude.speech.voice_activity import speech_spans

CAT = "The cat sat on the mat."


def test_speech_is_at_one_loudness(spoken: dict[str, Pcm], engines: Engines) -> None:
    """Near the target, never clipped, with licence and notice beside it."""
    speech = engines.synthesiser().synthesise("Well read!", language="en-GB")
    found = measure(speech.sound)
    assert found.integrated_lufs == pytest.approx(TARGET_LUFS, abs=4)
    assert found.peak_dbfs is not None
    assert found.peak_dbfs < -0.9
    assert "CC0" in speech.licence
    assert "lessac" in speech.notice
    assert speech.model.startswith("voice-joe-en-us/")
    assert spoken


def test_a_slower_voice_takes_longer(engines: Engines) -> None:
    """The rate stretches the sound."""
    voice = engines.synthesiser()
    normal, slow = (
        voice.synthesise(CAT, language="en", rate=rate).sound.duration_ms for rate in (1.0, 0.6)
    )
    assert slow > 1.3 * normal


@pytest.mark.parametrize("text", ["", "  ", "?!", "你好", "x" * 3000])
def test_what_cannot_be_spoken_is_refused(engines: Engines, text: str) -> None:
    """No word of English, or far too many letters: a typed error."""
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


def test_speech_is_found_and_noise_is_not(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """The learned detector finds the sentence in silence, and nobody in noise."""
    sound = Pcm(sample_rate=16_000, samples=bytes(32_000) + spoken[CAT].samples + bytes(32_000))
    activity = engines.voice_activity()
    spans = speech_spans(sound, activity)
    assert spans[0].start_ms == pytest.approx(1000, abs=250)
    assert spans[-1].end_ms == pytest.approx(sound.duration_ms - 1000, abs=350)
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1000, 48_000).astype(np.int16).tobytes()
    assert speech_spans(Pcm(sample_rate=16_000, samples=noise), activity) == ()
    assert speech_spans(sound, activity) == spans
