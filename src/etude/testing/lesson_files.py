"""Lessons on the disk, as an operator has them: MP3 clips with their texts beside them."""

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from etude.testing.learners_acting import Part

_RATE: Final = 24_000
LOWEST_HZ: Final = 220.0


def write_lesson(folder: Path, parts: Sequence[Part], lowest_hz: float = LOWEST_HZ) -> None:
    """Write each part as a tone of its own, of its length, and `01.txt` beside `01.mp3`.

    Lessons of another `lowest_hz` have other tones.
    """
    sound = importlib.import_module("soundfile")
    numpy = importlib.import_module("numpy")
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts):
        hz = lowest_hz * 2 ** (number / 5)
        moments = numpy.arange(_RATE * part.lasts_ms // 1000) / _RATE
        samples = 0.3 * numpy.sin(2 * math.pi * hz * moments) * (1 + 0.5 * numpy.sin(9 * moments))
        file = folder / part.name
        sound.write(file, samples, _RATE, format="MP3")
        file.with_suffix(".txt").write_text(part.text + "\n", "utf-8")
