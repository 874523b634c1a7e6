from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

Tone = Callable[..., Path]


@pytest.fixture
def tone(tmp_path: Path) -> Tone:
    """Writes a file with a sine, and returns its path."""

    def write(name: str = "tone.wav", **how: Any) -> Path:
        rate, seconds = how.get("rate", 24_000), how.get("seconds", 1.0)
        time_s = np.arange(int(rate * seconds)) / rate
        wave = how.get("level", 0.25) * np.sin(2 * np.pi * how.get("hertz", 440) * time_s)
        channels = np.repeat(wave[:, None], how.get("channels", 1), axis=1)
        path = tmp_path / name
        soundfile.write(path, channels, rate)
        return path

    return write
