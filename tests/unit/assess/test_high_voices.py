"""High voices are slowed for the engines, and all times brought back."""

import numpy as np
import pytest

from etude.assess import high_voices
from etude.assess.listening import LONGEST_S, SAMPLE_RATE, hearing_pace
from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.audio import floats, from_floats
from etude.speech.recognise import Encoding, Recognised


def voice(hertz: float, seconds: float = 2.0) -> np.ndarray:
    """Return a voice-like sound: a pitch and its overtones."""
    times = np.arange(int(SAMPLE_RATE * seconds)) / SAMPLE_RATE
    tones = [np.sin(2 * np.pi * hertz * many * times) / many for many in range(1, 6)]
    return (0.1 * np.sum(tones, axis=0)).astype(np.float32)


def alignment() -> Alignment:
    phones = (AlignedPhone("DH", 230, 70, -10.0), AlignedPhone("AH", 300, 110, -20.0))
    word = AlignedWord(
        text="the",
        index=0,
        start_ms=230,
        duration_ms=180,
        score=-30.0,
        phones=phones,
        guessed=False,
    )
    return Alignment(words=(word,), duration_ms=1000, engine="a/1", model="s/1")


@pytest.mark.parametrize(("hertz", "pace"), [(110, 1.0), (150, 1.0), (230, 0.87), (300, 0.87)])
def test_only_a_high_voice_is_slowed(hertz: float, pace: float) -> None:
    """A man's voice is heard as it is, a child's at 0.87 of its speed."""
    assert high_voices.pace_for(voice(hertz)) == pace


@pytest.mark.parametrize("samples", [np.zeros(32_000), np.zeros(0), np.zeros(100)])
def test_what_has_no_pitch_is_heard_as_it_is(samples: np.ndarray) -> None:
    """Silence, nothing and next to nothing are not slowed."""
    assert high_voices.pace_for(samples.astype(np.float32)) == high_voices.AS_SPOKEN


def test_a_slowed_sound_is_longer_and_lower() -> None:
    """At 0.87 two seconds last 2.3, and 250 Hz become 217."""
    slow = high_voices.played(from_floats(voice(250), SAMPLE_RATE), high_voices.SLOWED)
    assert slow.sample_rate == SAMPLE_RATE
    assert slow.duration_ms == pytest.approx(2000 / 0.87, abs=2)
    spectrum = np.abs(np.fft.rfft(floats(slow)))
    assert spectrum.argmax() * SAMPLE_RATE / slow.count == pytest.approx(217.5, abs=1)


def test_a_sound_that_is_not_slowed_is_the_same() -> None:
    """At its own pace not a sample changes."""
    sound = from_floats(voice(110), SAMPLE_RATE)
    assert high_voices.played(sound, high_voices.AS_SPOKEN) is sound


def test_times_come_back_without_gaps_or_overlaps() -> None:
    """What was found in slowed sound is told in the time of the sound; scores a frame stay."""
    found = high_voices.alignment_in_time(alignment(), high_voices.SLOWED)
    assert found is not None
    word = found.words[0]
    first, second = word.phones
    assert (first.start_ms, second.start_ms) == (round(230 * 0.87), round(300 * 0.87))
    assert first.start_ms + first.duration_ms == second.start_ms
    assert word.start_ms == first.start_ms
    assert word.start_ms + word.duration_ms == second.start_ms + second.duration_ms
    assert found.duration_ms == 870
    assert second.score / second.duration_ms == pytest.approx(-20 / 110, rel=0.01)
    assert high_voices.alignment_in_time(None, high_voices.SLOWED) is None
    assert high_voices.alignment_in_time(alignment(), 1.0) == alignment()


def test_frames_of_the_encoder_last_as_long_as_they_did() -> None:
    """A frame of 20 ms of slowed sound is about 17.4 ms of the sound itself."""
    heard = Recognised(
        text="the",
        language="en",
        engine="e/1",
        model="m/1",
        encoding=Encoding(frame_ms=20, width=1, values=b"\0\0"),
    )
    found = high_voices.recognised_in_time(heard, high_voices.SLOWED)
    assert found.encoding is not None
    assert found.encoding.frame_ms == pytest.approx(17.4)
    assert high_voices.recognised_in_time(heard, 1.0) is heard


def test_what_would_become_too_long_and_chinese_are_heard_as_they_are() -> None:
    """Slowing never makes a turn longer than the engines take, nor touches another language."""
    high = voice(250)
    assert hearing_pace("the cat", high) == high_voices.SLOWED
    assert hearing_pace(None, high) == high_voices.AS_SPOKEN
    assert hearing_pace("小猫", high) == high_voices.AS_SPOKEN
    assert hearing_pace("the cat", voice(250, LONGEST_S * 0.9)) == high_voices.AS_SPOKEN
