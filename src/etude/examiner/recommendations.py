"""The one next step: what to practise where the evidence is weakest."""

from collections.abc import Iterator
from fractions import Fraction

from etude.examiner.assessment import Assessment, DimensionResult, SignalResult
from etude.i18n import text
from etude.rubric.model import Rubric, title_of


def next_step(assessment: Assessment, rubric: Rubric, locale: str) -> str:
    """Return exactly one step, in the rubric's words.

    A broken safety gate comes first. Else it is about the observed signal with the lowest value; of
    equals, the one that weighs more, then the one that the rubric names first.
    """
    failed = [gate.signal for gate in assessment.gates if gate.failed]
    weakest = failed[0] if failed else _weakest(assessment)
    if weakest is None:
        return text("examiner.next.nothing_observed", locale)
    signal = rubric.signals[weakest]
    words = title_of(signal.step, "", locale)
    if not words:
        title = title_of(signal.title, weakest, locale)
        return text("examiner.next.again", locale, title=title)
    return text("examiner.next.step", locale, step=_upper(words))


def _weakest(assessment: Assessment) -> str | None:
    found = [
        (value, -dimension.weight * part.weight / _total(dimension), order, part.signal)
        for order, (dimension, part, value) in enumerate(_observed(assessment))
    ]
    return min(found)[-1] if found else None


def _observed(assessment: Assessment) -> Iterator[tuple[DimensionResult, SignalResult, Fraction]]:
    for dimension in assessment.dimensions:
        for part in dimension.parts:
            if part.value is not None:
                yield dimension, part, part.value


def _total(dimension: DimensionResult) -> Fraction:
    return sum((part.weight for part in dimension.parts), Fraction(0))


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]
