"""Sessions by chance, through every rubric that ships: what must hold of any session.

300 of them here, 10,000 in `make soak`; a failure names its seed.
"""

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

import msgspec
import pytest

from etude.events.model import Event
from etude.examiner.assessment import Assessment
from etude.examiner.score import score
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric, Signal
from etude.rubric.primitives import grade

RUBRICS: Final = RubricLibrary.load().rubrics
HOW_MANY: Final = [300, pytest.param(10_000, marks=pytest.mark.soak)]
LISTED: Final = {"confirmed", "overturned", "unknown", "no_confidence"}


def placed_value(path: str, measured: object) -> dict[str, Any]:
    """Return event fields with `measured` at `path`."""
    head, *rest = path.split(".")
    for name in reversed(rest):
        measured = {name: measured}
    if head in {"value", "signal"}:
        return {head: measured}
    return {"extra": {head: measured}}


def chances(signal: Signal, kind: str, chance: random.Random) -> Any:
    """Return something that the signal can measure in an event of this type."""
    if signal.order:
        return chance.choice(signal.order)
    if signal.measure.get(kind, "") in {"assertion", "value.correct", "value.seen", "value.heard"}:
        return chance.random() < 0.6
    if signal.grade is not None and signal.grade.words:
        return chance.choice([*signal.grade.words, "odd"])
    if signal.band is not None:
        return round(chance.uniform(signal.band.zero_below, signal.band.zero_above), 2)
    if signal.grade is not None and signal.grade.worst is not None:
        return round(chance.uniform(signal.grade.worst, signal.grade.best or 0), 2)
    return round(chance.random(), 3)


def made(rubric: Rubric, chance: random.Random) -> list[Event]:
    """Return a session of up to 40 events that the rubric looks at, doubts and reviews included."""
    events: list[Event] = []
    for number in range(chance.randrange(41)):
        name, signal = chance.choice(list(rubric.signals.items()))
        kind = chance.choice(signal.observe.event_types)
        fields: dict[str, Any] = {
            "event_id": f"e{number}",
            "session_id": "s",
            "ts": round(chance.uniform(0, 100), 1),
            "event_type": kind,
            "signal": chance.choice(signal.observe.signals or (name,)),
            "phase": chance.choice([None, *(phase.id for phase in rubric.phases)]),
            "confidence": chance.choice([None, 0.2, 0.5, 0.77, 0.9, 1.0]),
            "cloud_review_available": chance.random() < 0.1,
            "correlation_id": chance.choice([None, "c1", "c2"]),
            "seq": chance.choice([None, number + 1]),
        }
        if kind in signal.measure:
            fields |= placed_value(signal.measure[kind], chances(signal, kind, chance))
        events.append(Event(**fields))
    return [*events, *reviews(events, chance)]


def reviews(events: list[Event], chance: random.Random) -> Iterator[Event]:
    """Yield what reviewers and the learner said about some of the events."""
    for event in events:
        if chance.random() < 0.15:
            verdict = chance.choice(["confirmed", "overturned", "unknown"])
            yield msgspec.structs.replace(
                event,
                event_id=f"r-{event.event_id}",
                event_type="signal_reviewed",
                value={"event_id": event.event_id, "verdict": verdict, "confidence": 0.8},
                meta={"producer": "server"},
                seq=None,
            )
        elif chance.random() < 0.05:
            yield msgspec.structs.replace(
                event,
                event_id=f"x-{event.event_id}",
                event_type="signal_contested",
                value={"event_id": event.event_id},
            )


def bounds_hold(found: Assessment, rubric: Rubric) -> None:
    """Say that scores lie in their scale and interval, and nothing is scored without evidence."""
    for one in found.dimensions:
        low, high = rubric.dimensions[one.dimension].scale
        if one.score is None:
            assert (one.value, one.interval, one.evidence) == (None, None, ())
            continue
        assert one.value is not None
        assert 0 <= one.value <= 1
        assert one.interval is not None
        assert low <= one.interval[0] <= one.score <= one.interval[1] <= high
        assert one.evidence
    scored = [one for one in found.dimensions if one.score is not None]
    assert (found.overall_score is None) == (not scored)
    assert 0 <= found.coverage <= 1
    if found.overall_score is not None and found.uncapped_score is not None:
        assert 0 <= found.overall_score <= found.uncapped_score <= 100
        for gate in found.gates:
            assert not gate.failed or found.overall_score <= gate.cap


def doubts_hold(found: Assessment, events: list[Event]) -> None:
    """Say that every doubtful event is listed, and weighs only if a reviewer confirmed it."""
    listed = {item.event_id: item.state for item in found.ledger}
    assert set(listed.values()) <= LISTED
    evidence = {one for each in found.dimensions for one in each.evidence}
    for event in events:
        is_about = event.event_type in {"signal_reviewed", "signal_contested"}
        if event.is_doubtful and not is_about:
            assert event.event_id in listed
            assert event.event_id not in evidence or listed[event.event_id] == "confirmed"


@pytest.mark.parametrize("sessions", HOW_MANY)
def test_whatever_was_recorded(sessions: int) -> None:
    """Scores within bounds, doubts listed and without weight, order of upload without effect."""
    for seed in range(sessions):
        chance = random.Random(seed)
        rubric = RUBRICS[seed % len(RUBRICS)]
        events = made(rubric, chance)
        found = score(events, rubric)
        try:
            bounds_hold(found, rubric)
            doubts_hold(found, events)
            again = [*events, *chance.sample(events, len(events) // 3)]
            chance.shuffle(again)
            assert score(again, rubric) == found
        except AssertionError as error:
            error.add_note(f"seed {seed}, {rubric.key}")
            raise


def bettered(signal: Signal, event: Event) -> Iterator[Event]:
    """Yield the event with every value that its signal grades higher: same weight, better news."""
    path = signal.measure.get(event.event_type)
    if path is None or signal.primitive == "sequence":
        return
    for better in candidates(signal):
        yield msgspec.structs.replace(event, **placed_value(path, better))


def candidates(signal: Signal) -> list[Any]:
    """Return values from the worst to the best that the signal knows."""
    if signal.grade is not None and signal.grade.words:
        return list(signal.grade.words)
    if signal.band is not None:
        band = signal.band
        return [band.zero_below, band.at_least, (band.at_least + band.at_most) / 2, band.at_most]
    if signal.grade is not None and signal.grade.worst is not None:
        return [signal.grade.worst, signal.grade.best]
    return [False, True, 0.25, 0.75, 1.0]


def measured_grade(signal: Signal, event: Event) -> Fraction | None:
    """Return how good the event's value is, by the path that the rubric names."""
    found: Any = event
    for name in signal.measure[event.event_type].split("."):
        found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
        if found is None and name == "assertion":
            found = event.extra.get(name)
    return grade(signal, found)


def is_plain(event: Event) -> bool:
    """Whether nobody reviewed or contested it."""
    return event.event_id.startswith("e")


@pytest.mark.parametrize("sessions", HOW_MANY)
def test_a_better_event_never_lowers_its_dimension(sessions: int) -> None:
    """One event is made better and nothing else: no dimension of its signal falls."""
    raised = 0
    for seed in range(sessions):
        chance = random.Random(seed)
        rubric = RUBRICS[seed % len(RUBRICS)]
        events = made(rubric, chance)
        found = score(events, rubric).dimensions
        before = {one.dimension: one.value for one in found if one.value is not None}
        for name, signal in rubric.signals.items():
            looked = (rubric, name, signal)
            for index, event in chance.sample(list(enumerate(events)), min(3, len(events))):
                raised += _raise_one(looked, events, index, event, before)
    assert raised > sessions


def _raise_one(
    looked: tuple[Rubric, str, Signal],
    events: list[Event],
    index: int,
    event: Event,
    before: dict[str, Fraction],
) -> int:
    rubric, name, signal = looked
    fits = event.event_type in signal.measure and is_plain(event)
    if not fits or event.signal not in (signal.observe.signals or (name,)):
        return 0
    was = measured_grade(signal, event)
    for better in bettered(signal, event):
        now = measured_grade(signal, better)
        if was is None or now is None or now <= was:
            continue
        after = {
            one.dimension: one.value
            for one in score([*events[:index], better, *events[index + 1 :]], rubric).dimensions
        }
        for dimension, value in before.items():
            if any(part.signal == name for part in rubric.dimensions[dimension].parts):
                found = after[dimension]
                assert found is not None, (dimension, event)
                assert found >= value, (dimension, event, better)
        return 1
    return 0
