"""Where the numbers of a timeline's phases stand, so that none covers another on any screen.

Names do not fit above phases of a second. So each phase has a number, and a list beside the
timeline says which is which; a number that has no room is left to the list.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from etude.examiner.exact import tenths
from etude.rubric.primitives import exact

NARROWEST_PX: Final = 280
"""The timeline on the smallest phone, 320 pixels with its margins; on others there is more room."""
DIGIT_PX: Final = 9
"""No wider is a digit of 12 pixels, half bold, in any of the page's fonts."""
GAP_PX: Final = 4
MOST_ROWS: Final = 3


class Number(msgspec.Struct, frozen=True):
    """A phase's number: its middle in percent of the timeline; rows count up from the bands."""

    number: int
    middle: float
    row: int


def numbered(spans: Iterable[tuple[float, float]]) -> Sequence[Number]:
    """Place the numbers of phases, from 1, in the middle of each or as near as the edge allows.

    Args:
        spans: start and width of each, in percent of the timeline, in the order of time.
    """
    ends_px = [0.0 - GAP_PX] * MOST_ROWS
    found = []
    for number, (start, width) in enumerate(spans, 1):
        half_px = len(str(number)) * DIGIT_PX / 2
        wanted_px = (start + width / 2) * NARROWEST_PX / 100
        middle_px = min(max(wanted_px, half_px), NARROWEST_PX - half_px)
        free = (row for row, end in enumerate(ends_px) if end + GAP_PX <= middle_px - half_px)
        row = next(free, None)
        if row is not None:
            ends_px[row] = middle_px + half_px
            middle = tenths(exact(middle_px * 100 / NARROWEST_PX))
            found.append(Number(number, middle, row))
    return found
