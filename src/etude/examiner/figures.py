"""Numbers and places in words: 91%, 19 percentage points, bar 3, step 4, 80 s."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from etude.events.model import Event
from etude.examiner.exact import half_up
from etude.i18n import text
from etude.rubric.primitives import exact

MAX_PLACES: Final = 3
_HUNDRED: Final = 100


def figure(number: Fraction, unit: str | None, locale: str) -> str:
    """Return a measured number with its unit: a ratio in whole percent, others to a tenth."""
    if unit == "ratio":
        return text("examiner.unit.ratio", locale, number=half_up(number * _HUNDRED))
    return text(f"examiner.unit.{unit or 'count'}", locale, number=_decimal(number))


def difference(number: Fraction, unit: str | None, locale: str) -> str:
    """Return a difference of two numbers; of ratios it is in percentage points."""
    if unit == "ratio":
        points = half_up(number * _HUNDRED)
        key = "examiner.points.one" if points == 1 else "examiner.points.many"
        return text(key, locale, number=points)
    return figure(number, unit, locale)


def place(event: Event, locale: str) -> str:
    """Return where in the practice an event stands: its bar, its step, else its second."""
    value: Mapping[str, object] = event.value if isinstance(event.value, dict) else {}
    bar, step = _whole(value.get("measure")), _whole(value.get("step_index"))
    start, end = _whole(value.get("start_measure")), _whole(value.get("end_measure"))
    if bar is not None:
        return text("examiner.place.bar", locale, number=bar)
    if start is not None and end is not None:
        return text("examiner.place.bars", locale, first=start, last=end)
    if step is not None:
        return text("examiner.place.step", locale, number=step + 1)
    return second(event, locale)


def second(event: Event, locale: str) -> str:
    """Return when an event was, in whole seconds."""
    return text("examiner.place.second", locale, number=half_up(exact(event.ts)))


def places(events: Sequence[Event], locale: str) -> str:
    """Return where events stand, each place once; after a few, how many more."""
    named = list(dict.fromkeys(place(event, locale) for event in events))
    shown = text("examiner.list.comma", locale).join(named[:MAX_PLACES])
    more = len(named) - MAX_PLACES
    return shown if more < 1 else text("examiner.list.more", locale, shown=shown, count=more)


def _decimal(number: Fraction) -> str:
    """Return a number to a tenth, halves up, without a needless `.0`."""
    tenths = half_up(number * 10)
    whole, rest = divmod(abs(tenths), 10)
    sign = "-" if tenths < 0 else ""
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def _whole(value: object) -> int | None:
    """Return a whole number from 0 on, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value) if value >= 0 else None
