"""The spectrogram that Whisper hears."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.speech.log_mel import BANDS, SAMPLE_RATE, log_mel


def tone(hertz: float, seconds: float = 1.0) -> np.ndarray:
    time_s = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (0.3 * np.sin(2 * np.pi * hertz * time_s)).astype(np.float32)


def mel_hertz(band: int) -> float:
    """The middle of a band, from the definition of Slaney's scale, computed another way."""
    top = 15 + np.log(8.0) / np.log(6.4) * 27
    mel = top * (band + 1) / (BANDS + 1)
    return float(mel * 200 / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27))


@pytest.mark.parametrize("band", [5, 20, 40, 60, 75])
def test_a_tone_is_loudest_in_its_band(band: int) -> None:
    """A sine in the middle of a band is in that band, all the time."""
    mel = log_mel(tone(mel_hertz(band)))
    assert mel.shape == (BANDS, 100)
    assert set(mel[:, 2:-2].argmax(axis=0)) == {band}


def test_silence_is_even() -> None:
    """Without sound every value is the floor's."""
    assert np.unique(log_mel(np.zeros(SAMPLE_RATE, dtype=np.float32))) == pytest.approx([-1.5])


@given(st.integers(0, 3000))
def test_any_length_has_a_frame_every_ten_ms(count: int) -> None:
    """Even no sample at all gives frames, and no value is more than two below the highest."""
    mel = log_mel(np.full(count, 0.1, dtype=np.float32))
    assert mel.shape[1] == max(count, 400) // 160
    assert float(mel.max() - mel.min()) <= 2.0 + 1e-6
