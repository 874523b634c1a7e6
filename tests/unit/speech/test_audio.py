from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from etude.speech import audio
from etude.speech.audio import Pcm, duration_ms, floats, from_floats, read_audio, resampled
from etude.speech.errors import (
    AudioEmptyError,
    AudioTooLongError,
    AudioUnknownError,
    AudioUnreadableError,
    SoundLibraryMissingError,
)

Tone = Callable[..., Path]


@pytest.mark.parametrize("suffix", sorted(audio.SUFFIXES))
@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (44_100, 2), (48_000, 1)])
def test_every_format_is_read(tone: Tone, suffix: str, rate: int, channels: int) -> None:
    """Four formats, any rate, any channels: the same mono tone, as long as it was."""
    path = tone(f"a{suffix}", rate=rate, channels=channels, seconds=1.5)
    pcm = read_audio(path, 24_000)
    assert pcm.sample_rate == 24_000
    assert pcm.duration_ms == pytest.approx(1500, abs=3)
    assert duration_ms(path) == pytest.approx(1500, abs=3)
    samples = np.frombuffer(pcm.samples, np.int16)
    assert np.abs(np.fft.rfft(samples)).argmax() / 1.5 == pytest.approx(440, abs=2)
    assert np.abs(samples).max() == pytest.approx(0.25 * 32767, rel=0.1)


def test_the_rate_of_the_file_is_kept_when_none_is_asked_for(tone: Tone) -> None:
    """Nothing is resampled without need."""
    assert read_audio(tone(rate=22_050)).sample_rate == 22_050


def test_a_long_file_is_read_in_blocks_without_a_seam(tone: Tone) -> None:
    """Resampling across blocks leaves neither gap nor click."""
    samples = np.frombuffer(read_audio(tone(rate=48_000, seconds=5), 24_000).samples, np.int16)
    assert len(samples) == 120_000
    assert np.abs(np.diff(samples[100:-100].astype(int))).max() < 1_000


@pytest.mark.parametrize(
    "data", [b"", b"no audio at all", b"ID3" + bytes(200), b"RIFF\x24\0\0\0WAVEfmt "]
)
def test_what_is_no_audio_names_the_file_without_its_folder(tmp_path: Path, data: bytes) -> None:
    """Damaged files are told by name; where the data folder is stays out of messages."""
    path = tmp_path / "01.mp3"
    path.write_bytes(data)
    for read in (read_audio, duration_ms):
        with pytest.raises((AudioUnreadableError, AudioEmptyError)) as caught:
            read(path)
        assert caught.value.params["file"] == "01.mp3"
        assert str(tmp_path) not in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    """What is not there is not found; what is no file cannot be read."""
    with pytest.raises(AudioUnknownError):
        read_audio(tmp_path / "01.wav")
    with pytest.raises(AudioUnreadableError):
        read_audio(tmp_path)


def test_a_file_without_samples_is_empty(tone: Tone) -> None:
    """A header alone is no clip."""
    with pytest.raises(AudioEmptyError):
        read_audio(tone(seconds=0))


def test_more_than_ten_minutes_are_refused_unread(tone: Tone) -> None:
    """The bound holds before anything is decoded."""
    path = tone(rate=8_000, seconds=601)
    for read in (read_audio, duration_ms):
        with pytest.raises(AudioTooLongError):
            read(path)


def test_a_large_file_is_refused_unopened(tone: Tone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on bytes comes first."""
    monkeypatch.setattr(audio, "LARGEST_BYTES", 1_000)
    with pytest.raises(AudioTooLongError):
        read_audio(tone())


def test_values_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    """A floating-point file may hold NaN; no codec may get it."""
    path = tmp_path / "nan.wav"
    soundfile.write(path, np.full(1000, np.nan), 16_000, subtype="FLOAT")
    with pytest.raises(AudioUnreadableError):
        read_audio(path)


def test_a_missing_library_fails_at_its_door(tone: Tone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libsndfile, the first file says what to install."""
    path = tone()

    def missing(_: str) -> object:
        message = "sndfile library not found"
        raise OSError(message)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(SoundLibraryMissingError):
        read_audio(path)


@given(st.lists(st.integers(-32_767, 32_767), max_size=50))
def test_samples_survive_floating_point(samples: list[int]) -> None:
    """16-bit samples are the same after a way through floating point."""
    pcm = Pcm(sample_rate=16_000, samples=np.array(samples, dtype=np.int16).tobytes())
    assert from_floats(floats(pcm), 16_000) == pcm


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 48_000])
def test_another_rate_is_the_same_sound(tone: Tone, rate: int) -> None:
    """Resampling in memory gives what reading the file at that rate gives."""
    path = tone(rate=22_050)
    made = resampled(read_audio(path), rate)
    assert made.sample_rate == rate
    assert made.duration_ms == pytest.approx(1000, abs=2)
    away = np.abs(floats(made) - floats(read_audio(path, rate))[: made.count]).max()
    assert float(away) < 0.001
