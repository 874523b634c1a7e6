"""The quality of a recording."""

import numpy as np
import pytest

from etude.assess.quality import input_quality_v1, quality_of
from etude.assess.voice import pitch_track, voice_measures

RATE = 16_000


def tone(hertz: float, seconds: float = 1.0, amplitude: float = 0.3) -> np.ndarray:
    times = np.arange(int(RATE * seconds)) / RATE
    return (amplitude * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def test_a_clipped_recording_says_so() -> None:
    """The share of samples at full scale is told."""
    clipped = np.clip(tone(200, amplitude=3.0), -1, 1)
    assert quality_of(clipped, RATE)["clipped"] > 0.5
    assert quality_of(tone(200), RATE)["clipped"] == 0.0


def test_the_value_is_the_distance_of_voice_and_noise() -> None:
    """A voice over quiet noise stands out; noise alone does not."""
    noise = np.random.default_rng(1).normal(0, 0.001, 2 * RATE).astype(np.float32)
    voiced = noise.copy()
    voiced[RATE // 2 : RATE] += tone(200, 0.5)
    assert quality_of(voiced, RATE)["snr_db"] > 30
    assert quality_of(noise, RATE)["snr_db"] < 5


def test_no_recording_gives_no_number() -> None:
    """Without samples the method says nothing, and nothing divides by zero."""
    assert input_quality_v1("a", None, None, RATE) == []
    assert input_quality_v1("a", None, np.zeros(0, dtype=np.float32), RATE) == []
    silent = input_quality_v1(None, None, np.zeros(800, dtype=np.float32), RATE)[0]
    assert silent.value == 0.0


@pytest.mark.parametrize("hertz", [110, 220, 300])
def test_the_pitch_of_a_tone_is_found(hertz: int) -> None:
    """The pitch of a steady tone is right within 5 %, and not an octave off."""
    pitch, periodic = pitch_track(tone(hertz))
    assert np.median(pitch) == pytest.approx(hertz, rel=0.05)
    assert np.median(periodic) > 0.9


def test_sound_too_short_for_pitch_has_none() -> None:
    """A few samples give measures all the same."""
    assert voice_measures(np.zeros(10, dtype=np.float32))["voiced"] == 0.0
