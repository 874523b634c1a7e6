"""Audio files (WAV, MP3, OGG, FLAC) as 16-bit mono samples at the rate somebody needs.

Read block by block, so that ten minutes of stereo never stand in memory as floating point. Every
function works on the disk and takes milliseconds to seconds: never call one on an event loop.
"""

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from etude.speech.errors import (
    INSTALL_LINE,
    AudioEmptyError,
    AudioTooLongError,
    AudioUnknownError,
    AudioUnreadableError,
    SoundLibraryMissingError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUFFIXES: Final = frozenset({".mp3", ".wav", ".ogg", ".flac"})
"""Of a clip, in lower case."""
LONGEST_MS: Final = 600_000
LARGEST_BYTES: Final = 128 * 1024 * 1024
"""Ten minutes of 48 kHz stereo in 16-bit WAV are 115 MB."""

_RATES: Final = range(4_000, 192_001)
_MOST_CHANNELS: Final = 8
_BLOCK: Final = 1 << 16
_FULL_SCALE: Final = 32_767
_SAMPLE_BYTES: Final = 2


class Pcm(msgspec.Struct, frozen=True, kw_only=True):
    """Mono sound.

    Attributes:
        sample_rate: in Hz.
        samples: signed 16-bit samples in the machine's byte order.
    """

    sample_rate: int
    samples: bytes

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(self.samples) // _SAMPLE_BYTES

    @property
    def duration_ms(self) -> int:
        """How long it lasts, to the nearest millisecond."""
        return round(self.count * 1000 / self.sample_rate)


def read_audio(path: Path, sample_rate: int | None = None) -> Pcm:
    """Read a file: channels averaged, resampled to `sample_rate` (None = as it is).

    Raises:
        AudioUnknownError: there is no such file.
        AudioUnreadableError: it is no audio, damaged, or holds values that are no numbers.
        AudioEmptyError: it holds no sample.
        AudioTooLongError: it is longer than ten minutes, or larger than 128 MiB.
        SoundLibraryMissingError: libsndfile or libsoxr is not there.
    """
    with _opened(path) as sound:
        rate: int = sound.samplerate
        wanted = sample_rate or rate
        samples = b"".join(_resampled(_mono_blocks(sound, path), rate, wanted))
    if not samples:
        raise AudioEmptyError(file=path.name)
    return Pcm(sample_rate=wanted, samples=samples)


def duration_ms(path: Path) -> int:
    """Return how long a file lasts, from its headers (of an MP3: of all its frames), undecoded.

    Raises: `read_audio`'s.
    """
    with _opened(path) as sound:
        return _length_ms(sound.frames, sound.samplerate)


def _length_ms(frames: int, rate: int) -> int:
    return round(frames * 1000 / rate)


def resampled(pcm: Pcm, sample_rate: int) -> Pcm:
    """Return the same sound at another rate. Pure.

    Raises:
        SoundLibraryMissingError: libsoxr is not there.
    """
    if pcm.sample_rate == sample_rate:
        return pcm
    samples = b"".join(_resampled(iter((floats(pcm),)), pcm.sample_rate, sample_rate))
    return Pcm(sample_rate=sample_rate, samples=samples)


def floats(pcm: Pcm) -> "NDArray[np.float32]":
    """Return the samples between -1 and 1."""
    import numpy as np  # noqa: PLC0415 - see `_mono_blocks`

    return np.frombuffer(pcm.samples, dtype=np.int16).astype(np.float32) / np.float32(_FULL_SCALE)


def from_floats(samples: "NDArray[np.float32]", sample_rate: int) -> Pcm:
    """Return samples between -1 and 1 as 16-bit sound; what is outside is cut off."""
    return Pcm(sample_rate=sample_rate, samples=_pcm16(samples))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file that is within the bounds; map what the library says of it."""
    library = sound_library("soundfile")
    try:
        size_bytes = path.stat().st_size
    except FileNotFoundError as error:
        raise AudioUnknownError(file=path.name) from error
    except OSError as error:
        raise AudioUnreadableError(file=path.name, reason=error.strerror or "?") from error
    if size_bytes == 0:
        raise AudioEmptyError(file=path.name)
    if size_bytes > LARGEST_BYTES:
        raise AudioTooLongError(file=path.name, limit_s=LONGEST_MS // 1000)
    try:
        with library.SoundFile(path) as sound:
            _require_bounds(sound, path)
            yield sound
    except (library.SoundFileError, OSError) as error:
        raise AudioUnreadableError(file=path.name, reason=_reason(error)) from error


def _reason(error: Exception) -> str:
    # The library's own text repeats the whole path; its `error_string` does not.
    return str(getattr(error, "error_string", "") or type(error).__name__).strip()


def _require_bounds(sound: Any, path: Path) -> None:  # noqa: ANN401 - soundfile has no types
    if sound.samplerate not in _RATES or not 1 <= sound.channels <= _MOST_CHANNELS:
        reason = f"{sound.samplerate} Hz, {sound.channels} channels"
        raise AudioUnreadableError(file=path.name, reason=reason)
    if sound.frames <= 0:
        raise AudioEmptyError(file=path.name)
    if _length_ms(sound.frames, sound.samplerate) > LONGEST_MS:
        raise AudioTooLongError(file=path.name, limit_s=LONGEST_MS // 1000)


def _mono_blocks(sound: Any, path: Path) -> "Iterator[NDArray[np.float32]]":  # noqa: ANN401 - see above
    import numpy as np  # noqa: PLC0415 - 0.1 s that commands without sound need not pay

    most = LONGEST_MS * sound.samplerate // 1000 + _BLOCK
    read = 0
    for block in sound.blocks(blocksize=_BLOCK, dtype="float32", always_2d=True):
        read += len(block)
        if read > most:  # the header may say less than there is
            raise AudioTooLongError(file=path.name, limit_s=LONGEST_MS // 1000)
        mono = block.mean(axis=1, dtype=np.float32)
        if not np.isfinite(mono).all():
            raise AudioUnreadableError(file=path.name, reason="NaN")
        yield mono


def _resampled(blocks: "Iterator[NDArray[np.float32]]", rate: int, wanted: int) -> Iterator[bytes]:
    if rate == wanted:
        yield from map(_pcm16, blocks)
        return
    import numpy as np  # noqa: PLC0415 - see `_mono_blocks`

    stream = sound_library("soxr").ResampleStream(rate, wanted, 1, dtype="float32")
    for block in blocks:
        yield _pcm16(stream.resample_chunk(block))
    yield _pcm16(stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True))


def _pcm16(block: "NDArray[np.float32]") -> bytes:
    import numpy as np  # noqa: PLC0415 - see `_mono_blocks`

    scaled = np.rint(block * _FULL_SCALE)
    return np.clip(scaled, -_FULL_SCALE, _FULL_SCALE).astype(np.int16).tobytes()


def sound_library(name: str) -> Any:  # noqa: ANN401 - neither library has types
    """Load a library at its first use; what it needs from the system may be missing."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise SoundLibraryMissingError(
            library=name, reason=str(error), install=INSTALL_LINE
        ) from error
