"""The quality of a recording: its numbers are about the microphone, not about the learner. Pure."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from etude.assess.metrics import Metric

INPUT_QUALITY: Final = "input_quality_v1"
UNIT_DB: Final = "dB"
_CLIPPED_FROM: Final = 0.99
_FRAME_S: Final = 0.01
_SILENCE: Final = 1e-10


def input_quality_v1(
    expected_text: str | None,  # noqa: ARG001 - every method has the same arguments
    asr_text: str | None,  # noqa: ARG001 - see above
    audio: NDArray[np.float32] | None,
    sample_rate: int,
) -> list[Metric]:
    """Return how far the voice stands above the noise; clipping, level and noise in `detail`."""
    if audio is None or not len(audio):
        return []
    found = quality_of(audio, sample_rate)
    value = found.pop("snr_db")
    return [Metric(method=INPUT_QUALITY, value=value, unit=UNIT_DB, detail=found)]


def quality_of(audio: NDArray[np.float32], sample_rate: int) -> dict[str, float]:
    """Return level, noise and their distance in dB, and the share of clipped samples.

    Level is the 95th percentile of frames of 10 ms, noise the 10th, both below full scale.
    """
    if not len(audio):
        floor = round(float(10 * np.log10(_SILENCE)), 1)
        return {"snr_db": 0.0, "level_db": floor, "noise_db": floor, "clipped": 0.0}
    size = max(1, round(sample_rate * _FRAME_S))
    padded = np.pad(audio, (0, -len(audio) % size)).astype(np.float64)
    powers = (padded.reshape(-1, size) ** 2).mean(axis=1)
    levels = 10 * np.log10(powers + _SILENCE)
    noise, level = np.quantile(levels, [0.1, 0.95])
    return {
        "snr_db": round(float(level - noise), 1),
        "level_db": round(float(level), 1),
        "noise_db": round(float(noise), 1),
        "clipped": round(float((np.abs(audio) >= _CLIPPED_FROM).mean()), 5),
    }
