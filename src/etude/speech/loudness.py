"""How loud a clip is: integrated loudness after ITU-R BS.1770, and its peak.

What is BS.1770 here: K-weighting, blocks of 400 ms that overlap by 75 %, the absolute gate at
-70 LUFS and the relative gate at -10 LU. What is simpler: one channel; the weighting is applied to
the spectrum of each block (its filters' frequency response) instead of running the filters over the
samples, which differs by the filters' settling at block borders, well under 0.2 LU for speech; the
peak is the highest sample, not the reconstructed ("true") peak. Enough to compare clips, not to
certify a broadcast.
"""

import math
from typing import TYPE_CHECKING, Final

import msgspec

from etude.speech.audio import Pcm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SILENCE_LUFS: Final = -70.0
"""The absolute gate: what is not above it in any block counts as silence."""

_BLOCK_S: Final = 0.4
_STEP_S: Final = 0.1
_RELATIVE_GATE_LU: Final = -10.0
_OFFSET_DB: Final = -0.691
_FULL_SCALE: Final = 32_767
_CHUNK: Final = 64
_REFERENCE_HZ: Final = 48_000
# BS.1770-5 Tables 1 and 2, for 48 kHz: numerators and denominators of the two filters.
_SHELF: Final = (
    (1.53512485958697, -2.69169618940638, 1.19839281085285),
    (1.0, -1.69065929318241, 0.73248077421585),
)
_HIGH_PASS: Final = ((1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621))


class Loudness(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Attributes:
        integrated_lufs: loudness of the parts that are not silent, in LUFS; None = silence.
        peak_dbfs: the highest sample, in dB below full scale (0 = full scale); None = all zero.
        clipped_ratio: the part of all samples that stand at full scale, 0 to 1.
    """

    integrated_lufs: float | None
    peak_dbfs: float | None
    clipped_ratio: float


def measure(pcm: Pcm) -> Loudness:
    """Measure a clip of at most 48 kHz. Pure, 1 to 2 ms for a second of sound at 24 kHz."""
    import numpy as np  # noqa: PLC0415 - 0.1 s that commands without sound need not pay

    samples = np.frombuffer(pcm.samples, dtype=np.int16)
    if not len(samples):
        return Loudness(integrated_lufs=None, peak_dbfs=None, clipped_ratio=0.0)
    levels = np.abs(samples.astype(np.int32))
    peak = int(levels.max())
    return Loudness(
        integrated_lufs=_gated(_block_powers(samples, pcm.sample_rate)),
        peak_dbfs=20 * math.log10(peak / _FULL_SCALE) if peak else None,
        clipped_ratio=float((levels >= _FULL_SCALE).mean()),
    )


def _block_powers(samples: "NDArray[np.int16]", rate: int) -> "NDArray[np.float64]":
    """Return the weighted mean square of each block; a short clip is one block."""
    import numpy as np  # noqa: PLC0415 - see `measure`

    size = min(int(rate * _BLOCK_S), len(samples))
    starts = np.lib.stride_tricks.sliding_window_view(samples, size)[:: int(rate * _STEP_S)]
    frequencies = np.fft.rfftfreq(size, 1 / rate).astype(np.float64)
    weights = _response(frequencies, _SHELF) * _response(frequencies, _HIGH_PASS)
    weights[1 : (size + 1) // 2] *= 2  # each of these stands for its negative frequency too
    powers = [
        (np.abs(np.fft.rfft(starts[at : at + _CHUNK] / _FULL_SCALE)) ** 2) @ weights / size**2
        for at in range(0, len(starts), _CHUNK)
    ]
    return np.concatenate(powers)


def _response(
    frequencies: "NDArray[np.float64]",
    filter_: tuple[tuple[float, float, float], tuple[float, float, float]],
) -> "NDArray[np.float64]":
    """Return the squared gain of a filter at each frequency."""
    import numpy as np  # noqa: PLC0415 - see `measure`

    z = np.exp(-2j * np.pi * frequencies / _REFERENCE_HZ)
    above, below = (b0 + b1 * z + b2 * z * z for b0, b1, b2 in filter_)
    gain: NDArray[np.float64] = np.abs(above / below) ** 2
    return gain


def _gated(powers: "NDArray[np.float64]") -> float | None:
    loud = powers[powers > _power(SILENCE_LUFS)]
    if not len(loud):
        return None
    gate = _power(_lufs(float(loud.mean())) + _RELATIVE_GATE_LU)
    return _lufs(float(loud[loud > gate].mean()))


def _lufs(power: float) -> float:
    return _OFFSET_DB + 10 * math.log10(power)


def _power(lufs: float) -> float:
    return float(10 ** ((lufs - _OFFSET_DB) / 10))
