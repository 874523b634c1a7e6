"""Charts: one series a legend, one number a label."""

from collections.abc import Iterator

from etude.classroom.errors import ClassroomRaggedError
from etude.classroom.slides import ChartData
from etude.documents.reading import Path, spell


def chart_mistakes(data: ChartData, path: Path) -> Iterator[ClassroomRaggedError]:
    """Yield where the series of a chart do not fit its labels and legends."""
    if len(data.series) != len(data.legends):
        yield ragged((*path, "series"), len(data.series), len(data.legends))
    for index, numbers in enumerate(data.series):
        if len(numbers) != len(data.labels):
            yield ragged((*path, "series", index), len(numbers), len(data.labels))


def ragged(path: Path, found: int, wanted: int) -> ClassroomRaggedError:
    """Return the mistake that says how many values there are instead of how many."""
    return ClassroomRaggedError(path=spell(path), found=found, wanted=wanted)
