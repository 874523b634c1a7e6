"""Sound as Whisper hears it: a log-mel spectrogram of 80 bands, 100 frames a second.

The arithmetic of OpenAI's reference (`whisper/audio.py`): a Hann window of 25 ms every 10 ms, the
power spectrum, Slaney's mel filters, log10, clipped to 8 below the highest value, scaled. Pure.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000
FRAMES_A_SECOND: Final = 100
BANDS: Final = 80

_WINDOW: Final = 400
_HOP: Final = 160
_LINEAR_MELS: Final = 15.0  # up to here (1 kHz) Slaney's scale is linear, 200/3 Hz a mel
_HERTZ_A_MEL: Final = 200.0 / 3
_LOG_STEP: Final = 27.0  # this many mels above 1 kHz are a factor of 6.4
_LOG_FACTOR: Final = 6.4
_FLOOR: Final = 1e-10
_RANGE: Final = 8.0


def log_mel(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the spectrogram, shape (80, samples // 160), of sound at 16 kHz in -1 … 1.

    Shorter sound than one window (25 ms) is filled with silence.
    """
    import numpy as np  # noqa: PLC0415 - 0.1 s that commands without sound need not pay

    if len(samples) < _WINDOW:
        samples = np.pad(samples, (0, _WINDOW - len(samples)))
    padded = np.pad(samples, _WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP][:-1]
    window = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)
    spectrum = np.fft.rfft(frames * window, axis=-1)
    powers = (np.abs(spectrum) ** 2).astype(np.float32)
    mel = _filters() @ powers.T
    logs = np.log10(np.maximum(mel, _FLOOR))
    clipped = np.maximum(logs, logs.max() - _RANGE)
    return np.ascontiguousarray((clipped + 4.0) / 4.0, dtype=np.float32)


@cache
def _filters() -> "NDArray[np.float32]":
    """Return Slaney's triangular filters, of equal area, shape (80, 201)."""
    import numpy as np  # noqa: PLC0415 - see `log_mel`

    top = _LINEAR_MELS + np.log(SAMPLE_RATE / 2 / 1000) / np.log(_LOG_FACTOR) * _LOG_STEP
    mels = np.linspace(0.0, top, BANDS + 2)
    above = 1000.0 * np.exp(np.log(_LOG_FACTOR) / _LOG_STEP * (mels - _LINEAR_MELS))
    hertz = np.where(mels < _LINEAR_MELS, mels * _HERTZ_A_MEL, above)
    bins = np.fft.rfftfreq(_WINDOW, 1 / SAMPLE_RATE)
    widths = np.diff(hertz)
    ramps = hertz[:, None] - bins[None, :]
    rising = -ramps[:-2] / widths[:-1, None]
    falling = ramps[2:] / widths[1:, None]
    weights = np.maximum(0.0, np.minimum(rising, falling))
    scaled = weights * (2.0 / (hertz[2:] - hertz[:-2]))[:, None]
    filters: NDArray[np.float32] = scaled.astype(np.float32)
    return filters
