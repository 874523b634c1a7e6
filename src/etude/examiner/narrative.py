"""The report in words, from templates over the evidence: what was there, where, and progress.

About bars, steps and seconds, never about the person; a word that is not in the evidence is not
said (`docs/examiner.md §Words`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from etude.events.model import Event
from etude.examiner.assessment import DimensionResult, SignalResult
from etude.examiner.exact import half_up
from etude.examiner.figures import figure, places
from etude.examiner.report import GrowthIndicator, LowConfidenceItem
from etude.examiner.score import measured_number
from etude.i18n import text
from etude.rubric.model import Rubric, Signal, title_of
from etude.rubric.primitives import ONE, Observation

_PROGRESS: Final = frozenset({"improving", "steady", "declining"})


def narrate(
    result: DimensionResult,
    rubric: Rubric,
    events: Mapping[str, Event],
    growth: Sequence[GrowthIndicator],
    ledger: Sequence[LowConfidenceItem],
    locale: str,
) -> str:
    """Return the words about one dimension.

    Args:
        result: what scoring found.
        rubric: whose titles and units are used.
        events: of the session, by id.
        growth: every indicator; those of the dimension's signals are said.
        ledger: the dimension's entries.
        locale: of the words.
    """
    said = list(_sentences(result, rubric, events, locale))
    metrics = {part.signal for part in result.parts}
    said += [one.detail for one in growth if one.metric in metrics and one.trend in _PROGRESS]
    waiting = sum(one.state == "unknown" for one in ledger)
    if waiting:
        key = "examiner.narrative.waiting." + ("one" if waiting == 1 else "many")
        said.append(text(key, locale, count=waiting))
    return text("examiner.list.sentence", locale).join(said)


def _sentences(
    result: DimensionResult, rubric: Rubric, events: Mapping[str, Event], locale: str
) -> Iterator[str]:
    if result.score is None:
        yield text("examiner.narrative.not_observed", locale)
        return
    unseen = []
    for part in result.parts:
        signal = rubric.signals[part.signal]
        title = title_of(signal.title, part.signal, locale)
        if part.value is None:
            unseen.append(title)
            continue
        weighing = [one for one in part.observations if one.weight > 0]
        yield _said(signal, title, part, weighing, events, locale)
    if unseen:
        titles = text("examiner.list.comma", locale).join(unseen)
        yield text("examiner.narrative.parts_not_observed", locale, titles=titles)


def _said(
    signal: Signal,
    title: str,
    part: SignalResult,
    weighing: Sequence[Observation],
    events: Mapping[str, Event],
    locale: str,
) -> str:
    """Return the sentence about one observed signal."""
    short = [one for one in weighing if one.grade != ONE]
    words = {
        "title": title,
        "count": len(weighing),
        "good": len(weighing) - len(short),
        "places": places([events[one.event_id] for one in weighing], locale),
        "short": places([events[one.event_id] for one in short], locale),
        "points": half_up((part.value or ONE * 0) * 100),
    }
    if signal.primitive == "sequence":
        total = len(signal.order)
        done = half_up((part.value or ONE * 0) * total)
        return text("examiner.narrative.sequence", locale, **words, done=done, total=total)
    if signal.primitive == "presence" and signal.at_least > 1:
        return text("examiner.narrative.times", locale, **words, total=signal.at_least)
    number = measured_number(weighing)
    if number is not None and signal.primitive in {"quality", "timing"}:
        return _measured(signal, words, weighing, events, locale)
    if all(isinstance(one.measured, str) for one in weighing):
        kind = "word"
    else:
        kind = {"presence": "seen", "safety": "kept"}.get(signal.primitive, "right")
    return text(f"examiner.narrative.{kind}.{_how_many(weighing, short)}", locale, **words)


def _how_many(weighing: Sequence[Observation], short: Sequence[Observation]) -> str:
    if len(weighing) == 1:
        return "one_short" if short else "one"
    if not short:
        return "all"
    return "none" if len(short) == len(weighing) else "some"


def _measured(
    signal: Signal,
    words: Mapping[str, object],
    weighing: Sequence[Observation],
    events: Mapping[str, Event],
    locale: str,
) -> str:
    """Return the sentence about a measured number: its mean, and where it was weakest."""
    mean = measured_number(weighing)
    shown = figure(mean or ONE * 0, signal.unit, locale)
    weakest = min(weighing, key=lambda one: ONE if one.grade is None else one.grade)
    if len({one.grade for one in weighing}) == 1 or weakest.number is None:
        kind = "one" if len(weighing) == 1 else "even"
        return text(f"examiner.narrative.measured.{kind}", locale, **words, number=shown)
    return text(
        "examiner.narrative.measured.many",
        locale,
        **words,
        number=shown,
        weakest=figure(weakest.number, signal.unit, locale),
        where=places([events[weakest.event_id]], locale),
    )
