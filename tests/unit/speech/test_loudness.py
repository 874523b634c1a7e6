import numpy as np
import pytest

from etude.speech.audio import Pcm
from etude.speech.loudness import measure

RATE = 48_000


def sine(peak_dbfs: float, hertz: float = 997.0, seconds: float = 5.0, rate: int = RATE) -> Pcm:
    time_s = np.arange(int(rate * seconds)) / rate
    wave = 10 ** (peak_dbfs / 20) * np.sin(2 * np.pi * hertz * time_s)
    return Pcm(sample_rate=rate, samples=np.rint(wave * 32767).astype(np.int16).tobytes())


@pytest.mark.parametrize("peak_dbfs", [0.0, -20.0, -40.0])
@pytest.mark.parametrize("rate", [48_000, 24_000, 16_000])
def test_the_reference_tone_has_its_reference_loudness(peak_dbfs: float, rate: int) -> None:
    """BS.1770: a 997 Hz sine at 0 dBFS in one channel reads -3.01 LUFS."""
    measured = measure(sine(peak_dbfs, rate=rate))
    assert measured.integrated_lufs == pytest.approx(peak_dbfs - 3.01, abs=0.1)
    assert measured.peak_dbfs == pytest.approx(peak_dbfs, abs=0.05)


@pytest.mark.parametrize(("hertz", "gain_db"), [(25.0, -10.4), (100.0, -1.2), (10_000.0, 4.0)])
def test_the_weighting_is_that_of_the_standard(hertz: float, gain_db: float) -> None:
    """Low tones count less, high ones more (the two filters' curves, 0.691 dB at 997 Hz)."""
    measured = measure(sine(-20.0, hertz=hertz)).integrated_lufs
    assert measured is not None
    assert measured - (-23.01 - 0.691) == pytest.approx(gain_db, abs=0.3)


def test_pauses_do_not_count() -> None:
    """Silence between words is behind the gate."""
    speech = sine(-20.0)
    padded = Pcm(sample_rate=RATE, samples=bytes(RATE * 10) + speech.samples + bytes(RATE * 10))
    measured = measure(padded).integrated_lufs
    assert measured == pytest.approx(-23.01, abs=0.4)


def test_a_clip_shorter_than_a_block_is_one_block() -> None:
    """100 ms are measured too."""
    assert measure(sine(-20.0, seconds=0.1)).integrated_lufs == pytest.approx(-23.01, abs=0.2)


def test_silence_has_no_loudness() -> None:
    """No number stands for what cannot be heard."""
    measured = measure(Pcm(sample_rate=RATE, samples=bytes(RATE)))
    assert (measured.integrated_lufs, measured.peak_dbfs) == (None, None)
    assert measure(Pcm(sample_rate=RATE, samples=b"")).integrated_lufs is None


def test_samples_at_full_scale_are_counted() -> None:
    """A tone driven 6 dB over full scale stands there two thirds of the time."""
    loud = np.clip(2 * np.sin(2 * np.pi * 997 * np.arange(RATE) / RATE), -1, 1) * 32767
    pcm = Pcm(sample_rate=RATE, samples=loud.astype(np.int16).tobytes())
    assert measure(pcm).clipped_ratio == pytest.approx(2 / 3, abs=0.02)
    assert measure(sine(-1.0)).clipped_ratio == 0
