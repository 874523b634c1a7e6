"""The five primitives: how the events of a signal become a value from 0 to 1, exactly.

All arithmetic is in rationals, and decimal numbers count as what they say (0.1 is a tenth), so that
every machine gets the same (`docs/rules.md 29`). An observation is one event's share: how good it
is, and how much it weighs by its confidence.

* presence: it happened `at_least` times. Value: how many of them, at most 1.
* sequence: the longest common subsequence of what was done and `order`, over the length of `order`.
* timing, quality: the observations' grades, put together by `aggregate`.
* safety: 1, or 0 if a single observation is below 1.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeGuard

import msgspec

from etude.events.model import Event
from etude.rubric.model import Aggregate, Band, Condition, Expected, Grade, PolarityRule, Signal
from etude.rubric.polarity import look_up

ZERO, ONE = Fraction(0), Fraction(1)


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one event says about a signal.

    Attributes:
        event_id: whose.
        measured: the value that stands at the path; True where the signal measures nothing.
        grade: how good it is, 0 to 1; None for a word of a sequence.
        weight: its confidence, 0 to 1.
        value: for growth: the measured number, None if it is none.
    """

    event_id: str
    measured: bool | int | float | str
    grade: Fraction | None
    weight: Fraction

    @property
    def number(self) -> Fraction | None:
        """The measured number, None if it is a word or yes/no."""
        if isinstance(self.measured, bool | str):
            return None
        return exact(self.measured)


def exact(number: float) -> Fraction:
    """Return a JSON number as the decimal that it was written as."""
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


def fits(signal: Signal, name: str, event: Event, phase: str) -> bool:
    """Whether a signal of this name looks at `event`, which happened in `phase`."""
    return (
        event.event_type in signal.observe.event_types
        and event.signal in (signal.observe.signals or (name,))
        and (not signal.phases or phase in signal.phases)
    )


def measure(signal: Signal, event: Event) -> bool | int | float | str | None:
    """Return what the signal measures in an event that fits; None if it is not there."""
    path = signal.measure.get(event.event_type)
    if path is None:
        return True
    found = look_up(event, path)
    return found if isinstance(found, bool | int | float | str) else None


def grade(signal: Signal, measured: object) -> Fraction | None:
    """Return how good a measured value is, 0 to 1; None if it cannot be compared."""
    if signal.band is not None:
        return _within(signal.band, exact(measured)) if _is_number(measured) else None
    if signal.grade is not None:
        return _graded(signal.grade, measured)
    if signal.polarity is not None:
        return _judged(signal.polarity, measured)
    if isinstance(measured, bool):
        return ONE if measured else ZERO
    return min(max(exact(measured), ZERO), ONE) if _is_number(measured) else None


def value_of(
    signal: Signal, observations: Sequence[Observation], aggregate: Aggregate | None = None
) -> Fraction | None:
    """Return the value of a signal from its observations in the order of the session.

    None: nothing was observed that weighs anything. Never 0 for that:
    `docs/examiner.md §How a score comes about`.
    """
    seen = [one for one in observations if one.weight > 0]
    if not seen:
        return None
    if signal.primitive == "sequence":
        done = [str(one.measured) for one in seen]
        return Fraction(_common(done, signal.order), len(signal.order))
    grades = [(one.grade, one.weight) for one in seen if one.grade is not None]
    if not grades:
        return None
    if signal.primitive == "presence":
        return min(sum((value for value, _ in grades), ZERO) / signal.at_least, ONE)
    if signal.primitive == "safety":
        return ONE if all(value == ONE for value, _ in grades) else ZERO
    return _together(aggregate or signal.aggregate, grades)


def _together(aggregate: Aggregate, grades: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    if aggregate == "minimum":
        return min(value for value, _ in grades)
    if aggregate == "best":
        return max(value for value, _ in grades)
    if aggregate == "latest":
        return grades[-1][0]
    total = sum((weight for _, weight in grades), ZERO)
    return sum((value * weight for value, weight in grades), ZERO) / total


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _within(band: Band, number: Fraction) -> Fraction:
    low, high = exact(band.at_least), exact(band.at_most)
    if low <= number <= high:
        return ONE
    edge, zero = (low, exact(band.zero_below)) if number < low else (high, exact(band.zero_above))
    return max((number - zero) / (edge - zero), ZERO)


def _judged(rule: PolarityRule, measured: object) -> Fraction | None:
    positive = _holds(rule.positive, measured)
    if positive is None:
        return None
    if positive:
        return ONE
    return ZERO if rule.issue is None or _holds(rule.issue, measured) else None


def _graded(rule: Grade, measured: object) -> Fraction | None:
    if rule.words is not None:
        found = rule.words.get(measured) if isinstance(measured, str) else None
        return None if found is None else exact(found)
    if not _is_number(measured) or rule.worst is None or rule.best is None:
        return None
    worst, best = exact(rule.worst), exact(rule.best)
    return min(max((exact(measured) - worst) / (best - worst), ZERO), ONE)


def _holds(expected: Expected | Condition, measured: object) -> bool | None:
    """Whether `measured` is as expected; None if the two cannot be compared."""
    if isinstance(expected, Condition):
        if expected.one_of is not None:
            return measured in expected.one_of if isinstance(measured, str) else None
        if not _is_number(measured):
            return None
        number = exact(measured)
        if expected.at_least is not None:
            return number >= exact(expected.at_least)
        return expected.at_most is not None and number <= exact(expected.at_most)
    if isinstance(expected, bool | str):
        return measured == expected if type(measured) is type(expected) else None
    return exact(measured) == exact(expected) if _is_number(measured) else None


def _common(done: Sequence[str], order: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(order) + 1)
    for word in done:
        diagonal = 0
        for place, wanted in enumerate(order, 1):
            above = row[place]
            row[place] = diagonal + 1 if word == wanted else max(above, row[place - 1])
            diagonal = above
    return row[-1]
