"""The overall score as people are shown it: on which scale, and of how much of the rubric.

A score is the mean of what was observed, so "100" alone says nothing of what was not. Whoever shows
it shows these beside it. The report itself holds the same numbers; nothing here changes them.
"""

from fractions import Fraction
from typing import Final

import msgspec

from etude.examiner.exact import half_up, tenths
from etude.examiner.report import EvidenceItem, Report
from etude.rubric.primitives import exact

_WHOLE: Final = 100


class Overall(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside an overall score.

    Attributes:
        percent: weight of the scored dimensions, of all; 0 or 100 only where it is so exactly.
        highest: the best score there could have been, on the scale of the scored dimensions.
        seen: the observed share as an arc, in percent of the whole circle.
        reached: the score as an arc: the same part of `seen` as the score is of its scale.
        unseen: titles of the dimensions that were not observed.
        partly: titles of those of which some signals were not.
    """

    percent: int
    highest: float
    seen: float
    reached: float
    unseen: tuple[str, ...]
    partly: tuple[str, ...]


def overall(report: Report) -> Overall:
    """Return what stands beside the overall score of a report."""
    found = report.examiner_assessment
    low, high = _scale(report)
    place = Fraction(0)
    if found.overall_score is not None:
        place = min(max((found.overall_score - low) / (high - low), Fraction(0)), Fraction(1))
    seen = exact(found.coverage) * _WHOLE
    return Overall(
        percent=_percent(seen),
        highest=tenths(high),
        seen=tenths(seen),
        reached=tenths(seen * place),
        unseen=tuple(one.title for one in found.evidence_chain if one.score is None),
        partly=tuple(one.title for one in found.evidence_chain if _is_part(one, report)),
    )


def _scale(report: Report) -> tuple[Fraction, Fraction]:
    """Return the lowest and highest score: the mean of the scored scales, weighed as scores are."""
    scored = [one for one in report.uncertainty.values() if one.status == "observed"]
    weight = sum((exact(one.weight) for one in scored), Fraction(0))
    if not weight:
        return Fraction(0), Fraction(_WHOLE)
    low = sum((exact(one.weight) * one.scale[0] for one in scored), Fraction(0))
    high = sum((exact(one.weight) * one.scale[1] for one in scored), Fraction(0))
    return low / weight, high / weight


def _percent(share: Fraction) -> int:
    if share in {0, _WHOLE}:
        return int(share)
    return min(max(half_up(share), 1), _WHOLE - 1)


def _is_part(one: EvidenceItem, report: Report) -> bool:
    return one.score is not None and report.uncertainty[one.dimension].coverage < 1
