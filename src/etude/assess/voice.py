"""The voice's pitch and the level of a recording, from the samples alone. Pure.

Pitch is found by autocorrelation in frames of 40 ms: rough, and enough to tell how much a voice
moves and whether it is a child's.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FOURTH: Final = 4  # 16 kHz → 4 kHz, where the pitch of every voice still is
_RATE: Final = 4_000
_FRAME: Final = 160
_HOP: Final = 40
_SHORTEST_LAG: Final = 9  # 444 Hz
_LONGEST_LAG: Final = 57  # 70 Hz
_TRANSFORM: Final = 512
_SMOOTH: Final = np.hanning(17) / np.hanning(17).sum()
_VOICED_FROM: Final = 0.6
_QUIET_DB: Final = 25.0
_FEWEST_VOICED: Final = 10
_LEVEL_FRAME: Final = 160
_LOW_SHARE: Final = 0.3
_LOW_FRAMES: Final = 8
_SILENCE: Final = 1e-10


def levels_db(samples: NDArray[np.float32]) -> Floats:
    """Return the level of each whole frame of 10 ms, in dB below full scale."""
    whole = samples[: len(samples) // _LEVEL_FRAME * _LEVEL_FRAME].reshape(-1, _LEVEL_FRAME)
    found: Floats = 10 * np.log10((whole.astype(np.float64) ** 2).mean(axis=1) + _SILENCE)
    return found


def pitch_track(samples: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """Return the pitch in Hz, and how periodic the sound is (0 to 1), every 10 ms."""
    if len(samples) <= _FRAME * _FOURTH:
        return np.zeros(0), np.zeros(0)
    slow = np.convolve(samples, _SMOOTH, "same")[::_FOURTH].astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(slow, _FRAME)[::_HOP]
    window = np.hanning(_FRAME)
    centred = (frames - frames.mean(axis=1, keepdims=True)) * window
    power = np.abs(np.fft.rfft(centred, _TRANSFORM, axis=1)) ** 2
    own = np.fft.irfft(np.abs(np.fft.rfft(window, _TRANSFORM)) ** 2)[: _LONGEST_LAG + 1]
    lags = np.fft.irfft(power, axis=1)[:, : _LONGEST_LAG + 1] / own
    ratios = lags / (lags[:, :1] + 1e-12)
    inner = ratios[:, _SHORTEST_LAG:_LONGEST_LAG]
    best = inner.max(axis=1)
    # The shortest lag that is nearly as good: twice a period is as periodic as the period.
    peaks = (
        (inner >= 0.92 * best[:, None])
        & (inner >= np.roll(inner, 1, axis=1))
        & (inner >= np.roll(inner, -1, axis=1))
    )
    lag = np.where(peaks.any(axis=1), peaks.argmax(axis=1), inner.argmax(axis=1)) + _SHORTEST_LAG
    return _RATE / lag, best


def voice_measures(samples: NDArray[np.float32]) -> dict[str, float]:
    """Return the logarithm of the pitch and how much it moves; 0 of what is not voiced."""
    pitch, periodic = pitch_track(samples)
    levels = levels_db(samples)
    count = min(len(pitch), len(levels))
    if not count:
        return {"log_pitch": 0.0, "pitch_sd": 0.0, "pitch_range": 0.0, "voiced": 0.0}
    loud = levels[:count] > np.quantile(levels, 0.97) - _QUIET_DB
    is_voiced = (periodic[:count] > _VOICED_FROM) & loud
    logs = np.log(pitch[:count][is_voiced])
    if len(logs) < _FEWEST_VOICED:
        return {"log_pitch": 5.3, "pitch_sd": 0.1, "pitch_range": 0.3, "voiced": 0.0}
    return {
        "log_pitch": float(np.median(logs)),
        "pitch_sd": float(logs.std()),
        "pitch_range": float(np.quantile(logs, 0.95) - np.quantile(logs, 0.05)),
        "voiced": float(is_voiced.mean()),
    }


def level_measures(
    samples: NDArray[np.float32], start: int, end: int, words: int
) -> dict[str, float]:
    """Return how loud and how steady the sound is between two frames of 10 ms."""
    levels = levels_db(samples)
    inner = levels[start:end]
    if not len(inner):
        return {}
    noise, peak = np.quantile(levels, 0.05), np.quantile(levels, 0.97)
    low = inner < noise + _LOW_SHARE * (peak - noise)
    runs = _runs(low)
    return {
        "snr_db": float(peak - noise),
        "peak_db": float(peak),
        "level_sd": float(inner.std()),
        "low": float(low.mean()),
        "low_longest": float(np.log1p(max(runs, default=0))),
        "low_a_word": sum(run >= _LOW_FRAMES for run in runs) / max(1, words),
    }


def _runs(flags: NDArray[np.bool_]) -> list[int]:
    """Return the lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [int(length) for length in edges[1::2] - edges[::2]]
