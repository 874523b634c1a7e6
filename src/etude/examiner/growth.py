"""Growth along a journey: this session's numbers beside those of earlier ones.

Compared is only what can be: the same journey, the same rubric in the same version, the same
methods and models behind the number (`docs/examiner.md §Growth`). A change counts once it is larger
than the metric's measurement error.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from etude.examiner.assessment import Assessment
from etude.examiner.figures import difference, figure
from etude.examiner.journey import EarlierSession, Measure
from etude.examiner.report import GrowthIndicator, GrowthValue, Trend
from etude.i18n import text
from etude.rubric.model import Growth, Rubric, title_of
from etude.rubric.primitives import exact

ENOUGH: Final = 3
"""Sessions, this one included, before anything is said of a trend."""
RECENT: Final = 5
"""At most so many, the latest, are compared."""


class _Compared(msgspec.Struct, frozen=True, kw_only=True):
    values: tuple[tuple[str, Fraction], ...]

    @property
    def change(self) -> Fraction:
        return self.values[-1][1] - self.values[0][1]


def measures_of(assessment: Assessment) -> dict[str, Measure]:
    """Return the session's growth metrics as later sessions will read them."""
    return {
        metric: Measure(value=str(number), methods=assessment.measured_by[metric])
        for metric, number in assessment.measures.items()
    }


def growth_of(
    session_id: str,
    measures: Mapping[str, Measure],
    journey: Sequence[EarlierSession],
    rubric: Rubric,
    locale: str,
) -> tuple[GrowthIndicator, ...]:
    """Return one indicator for each growth metric of the rubric.

    Args:
        session_id: this session's.
        measures: its numbers.
        journey: earlier sessions of the same journey, oldest first.
        rubric: of this session.
        locale: of the words.
    """
    alike = [one for one in journey if one.rubric == rubric.key]
    return tuple(
        _indicator(growth, rubric, _compared(session_id, growth.metric, measures, alike), locale)
        for growth in rubric.growth
    )


def _compared(
    session_id: str,
    metric: str,
    measures: Mapping[str, Measure],
    alike: Sequence[EarlierSession],
) -> _Compared:
    own = measures.get(metric)
    if own is None:
        return _Compared(values=())
    earlier = [
        (one.session_id, found.number)
        for one in alike
        if (found := one.measures.get(metric)) is not None and found.methods == own.methods
    ]
    return _Compared(values=(*earlier, (session_id, own.number))[-RECENT:])


def _indicator(growth: Growth, rubric: Rubric, seen: _Compared, locale: str) -> GrowthIndicator:
    signal = rubric.signals[growth.metric]
    title = title_of(signal.title, growth.metric, locale)
    trend = _trend(growth, seen)
    return GrowthIndicator(
        metric=growth.metric,
        title=title,
        trend=trend,
        sessions_compared=len(seen.values),
        detail=_detail(title, signal.unit, trend, seen, locale),
        values=tuple(
            GrowthValue(session_id=session_id, value=float(number))
            for session_id, number in seen.values
        ),
    )


def _trend(growth: Growth, seen: _Compared) -> Trend:
    if not seen.values:
        return "not_observed"
    if len(seen.values) < ENOUGH:
        return "not_enough_yet"
    if abs(seen.change) <= exact(growth.error):
        return "steady"
    return "improving" if (seen.change > 0) == (growth.better == "higher") else "declining"


def _detail(title: str, unit: str | None, trend: Trend, seen: _Compared, locale: str) -> str:
    if trend == "not_observed":
        return text("examiner.growth.not_observed", locale, title=title)
    count = len(seen.values)
    if trend == "not_enough_yet":
        return text(
            "examiner.growth.not_enough_yet", locale, title=title, count=count, enough=ENOUGH
        )
    return text(
        f"examiner.growth.{trend}",
        locale,
        title=title,
        count=count,
        first=figure(seen.values[0][1], unit, locale),
        last=figure(seen.values[-1][1], unit, locale),
        change=difference(abs(seen.change), unit, locale),
    )
