"""Scoring: a pure function of events and rubric, the same bytes on every machine.

What counts, and how much (`docs/examiner.md §How a score comes about`,
`docs/rules.md 1, 12, 28, 29`):

* An event weighs its confidence; without one a half, and it is listed.
* A doubtful event (confidence below 0.5, tier low, offered for review) or a contested one weighs
  nothing until it is reviewed, and is listed. Confirmed, it weighs the reviewer's confidence;
  overturned, what the reviewer measured takes its place, or nothing does.
* Of a triple only `signal_detected` counts, where there is one.
* What was not observed has no score. The overall score is the mean of what was, by weight.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from etude.events.model import Event, parse_started_at
from etude.events.vocabulary import family_of
from etude.examiner.assessment import (
    Assessment,
    DimensionResult,
    GateResult,
    LedgerItem,
    Review,
    SignalResult,
)
from etude.examiner.exact import half_up, tenths, wilson
from etude.rubric.model import Dimension, Rubric, Signal
from etude.rubric.placing import Placed, is_contest, ordered, placed, subject_id
from etude.rubric.primitives import ONE, Observation, exact, fits, grade, measure, value_of

NO_CONFIDENCE_WEIGHT: Final = Fraction(1, 2)
Measured = bool | int | float | str
_VERDICTS: Final = frozenset({"confirmed", "overturned", "unknown"})


def score(events: Iterable[Event], rubric: Rubric) -> Assessment:
    """Assess one session.

    Args:
        events: all that is stored of it, the server's own included, in any order.
        rubric: how it is read.
    """
    session = placed(ordered(events), rubric.phases[0].id)
    doubts = _Doubts(session)
    observed = {
        name: tuple(_observations(rubric, name, session, doubts)) for name in rubric.signals
    }
    dimensions = tuple(
        _dimension(name, dimension, rubric, observed)
        for name, dimension in rubric.dimensions.items()
    )
    gates = tuple(
        _gate(gate.signal, gate.cap, observed[gate.signal]) for gate in rubric.safety_gates
    )
    uncapped, coverage = _overall(dimensions, rubric)
    caps = [gate.cap for gate in gates if gate.failed]
    capped = uncapped if uncapped is None else min([uncapped, *caps])
    return Assessment(
        overall_score=capped,
        uncapped_score=uncapped,
        coverage=coverage,
        dimensions=dimensions,
        gates=gates,
        ledger=tuple(_ledger(rubric, session, doubts)),
        measures=_measures(rubric, observed),
        measured_by=_measured_by(rubric, session, observed),
        methods=_methods(session),
    )


class _Doubts:
    """Which events cannot be taken at their word, and what reviewers said of them."""

    def __init__(self, session: Sequence[Placed]) -> None:
        events = [one.event for one in session]
        self.contested = _contested(events)
        self._reviews: dict[str, Review] = {}
        for event in sorted(filter(_is_review, events), key=_review_age):
            about, review = subject_id(event), read_review(event)
            if about is not None and review is not None:  # of several the last one counts
                self._reviews[about] = review

    def is_contested(self, event: Event) -> bool:
        """Whether the learner disagrees with the event, or with the triple that it is part of."""
        return event.event_id in self.contested or (
            _is_of_triple(event) and event.correlation_id in self.contested
        )

    def is_doubtful(self, event: Event) -> bool:
        return event.is_doubtful or self.is_contested(event)

    def review(self, event: Event) -> Review | None:
        """Return the verdict on an event, or on the triple that it is part of."""
        own = self._reviews.get(event.event_id)
        if own is None and event.correlation_id is not None and _is_of_triple(event):
            return self._reviews.get(event.correlation_id)
        return own


def _contested(events: Sequence[Event]) -> frozenset[str]:
    """Return the ids of contested events, and the correlations of contested triples.

    A triple is contested whole, whichever of its events the learner meant, as in the recap.
    """
    triples = {event.event_id: event.correlation_id for event in events if _is_of_triple(event)}
    subjects = [subject_id(event) for event in events if is_contest(event)]
    named = {one for one in subjects if one is not None}
    return frozenset(named | {triples[one] or one for one in named if one in triples})


def _is_of_triple(event: Event) -> bool:
    return family_of(event.event_type) == "triple" and event.correlation_id is not None


def _is_review(event: Event) -> bool:
    return event.event_type == "signal_reviewed" and event.is_server_made


def _review_age(event: Event) -> tuple[float, tuple[float, float, str]]:
    """Return what reviews are ordered by: `value.reviewed_at`, then their place in the session.

    A review takes `ts` from its event (`docs/rules.md 9`), so that alone says not which came later.
    """
    said = event.value.get("reviewed_at") if isinstance(event.value, dict) else None
    moment = parse_started_at(said)
    return (-math.inf if moment is None else moment.timestamp(), event.order_key)


def read_review(event: Event) -> Review | None:
    """Return what a `signal_reviewed` event says; None if it says nothing that counts."""
    said: Mapping[str, Any] = event.value if isinstance(event.value, dict) else {}
    verdict, confidence = said.get("verdict"), said.get("confidence", 1)
    if verdict not in _VERDICTS:
        return None
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return None
    measured = said.get("measured")
    return Review(
        review_id=event.event_id,
        verdict=verdict,
        confidence=min(max(exact(confidence), Fraction(0)), ONE),
        measured=measured if isinstance(measured, bool | int | float | str) else None,
        reviewer=_text(said.get("reviewer")),
        method=_text(said.get("method")),
        note=_text(said.get("note")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _observations(
    rubric: Rubric, name: str, session: Sequence[Placed], doubts: _Doubts
) -> Iterable[Observation]:
    signal = rubric.signals[name]
    fitting = [one.event for one in session if fits(signal, name, one.event, one.phase)]
    judged = {
        event.correlation_id for event in fitting if event.event_type == "signal_detected"
    } - {None}
    for event in fitting:
        if event.event_type == "signal_observation" and event.correlation_id in judged:
            continue  # the judgement of the same triple counts
        measured, weight = measure(signal, event), _weight(event, doubts)
        review = doubts.review(event)
        if review is not None and review.verdict != "unknown":
            measured = _reviewed(signal, event, measured, review)
        graded = None if measured is None else grade(signal, measured)
        if measured is not None and (graded is not None or signal.primitive == "sequence"):
            yield Observation(
                event_id=event.event_id, measured=measured, grade=graded, weight=weight
            )


def _reviewed(
    signal: Signal, event: Event, measured: Measured | None, review: Review
) -> Measured | None:
    """Return what was measured after a verdict.

    A doubtful event may say no more than `edge_assessment: possible_issue` (`docs/rules.md 2`):
    that, confirmed, is the opposite of what the signal calls positive.
    """
    if review.measured is not None:
        return review.measured
    if review.verdict == "overturned":
        return None
    said = event.value.get("edge_assessment") if isinstance(event.value, dict) else None
    if measured is None and said == "possible_issue" and signal.polarity is not None:
        good = signal.polarity.positive
        return not good if isinstance(good, bool) else None
    return measured


def _weight(event: Event, doubts: _Doubts) -> Fraction:
    review = doubts.review(event)
    if review is not None and review.verdict != "unknown":
        return review.confidence
    if doubts.is_doubtful(event):
        return Fraction(0)
    return NO_CONFIDENCE_WEIGHT if event.confidence is None else exact(event.confidence)


def _dimension(
    name: str,
    dimension: Dimension,
    rubric: Rubric,
    observed: Mapping[str, tuple[Observation, ...]],
) -> DimensionResult:
    parts = tuple(
        SignalResult(
            signal=part.signal,
            weight=exact(part.weight),
            value=value_of(rubric.signals[part.signal], observed[part.signal], dimension.aggregate),
            observations=observed[part.signal],
        )
        for part in dimension.parts
    )
    seen = [(part.value, part.weight) for part in parts if part.value is not None]
    if not seen:
        return DimensionResult(
            dimension=name,
            weight=exact(dimension.weight),
            value=None,
            score=None,
            interval=None,
            evidence=(),
            parts=parts,
        )
    value = _mean(seen)
    points = half_up(_scaled(dimension, value))
    return DimensionResult(
        dimension=name,
        weight=exact(dimension.weight),
        value=value,
        score=points,
        interval=_interval(dimension, value, points, parts),
        evidence=_evidence(parts),
        parts=parts,
    )


def _scaled(dimension: Dimension, value: Fraction) -> Fraction:
    low, high = dimension.scale
    return low + (high - low) * value


def _interval(
    dimension: Dimension, value: Fraction, points: int, parts: Sequence[SignalResult]
) -> tuple[float, float]:
    """Return the interval on the dimension's scale; the rounded score is always within."""
    weights = (one.weight for part in parts if part.value is not None for one in part.observations)
    count = sum(weights, Fraction(0))
    low, high = (tenths(_scaled(dimension, end)) for end in wilson(value, count))
    return min(low, float(points)), max(high, float(points))


def _evidence(parts: Sequence[SignalResult]) -> tuple[str, ...]:
    """Return the events that weigh something, each once."""
    return tuple(
        dict.fromkeys(one.event_id for part in parts for one in part.observations if one.weight > 0)
    )


def _gate(signal: str, cap: int, observations: Sequence[Observation]) -> GateResult:
    weighing = [one for one in observations if one.weight > 0]
    broken = [one for one in weighing if one.grade != ONE]
    return GateResult(
        signal=signal,
        cap=cap,
        failed=bool(broken) if weighing else None,
        evidence=tuple(one.event_id for one in broken or weighing),
    )


def _overall(dimensions: Sequence[DimensionResult], rubric: Rubric) -> tuple[int | None, Fraction]:
    """Return the weighted mean of what was scored, exact until it is rounded, and the coverage."""
    scored = [
        (_scaled(rubric.dimensions[one.dimension], one.value), one.weight)
        for one in dimensions
        if one.value is not None
    ]
    if not scored:
        return None, Fraction(0)
    total = sum((one.weight for one in dimensions), Fraction(0))
    return half_up(_mean(scored)), sum((weight for _, weight in scored), Fraction(0)) / total


def _mean(weighed: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the mean of values with their weights, which are not all 0."""
    weight = sum((weight for _, weight in weighed), Fraction(0))
    return sum((value * share for value, share in weighed), Fraction(0)) / weight


def _ledger(rubric: Rubric, session: Sequence[Placed], doubts: _Doubts) -> Iterable[LedgerItem]:
    for one in session:
        event = one.event
        names = [
            name for name, signal in rubric.signals.items() if fits(signal, name, event, one.phase)
        ]
        doubtful = doubts.is_doubtful(event)
        if is_contest(event) or event.event_type == "signal_reviewed":
            continue
        if not doubtful and not (names and event.confidence is None):
            continue
        review = doubts.review(event)
        yield LedgerItem(
            event_id=event.event_id,
            signal=event.signal,
            dimensions=tuple(
                name
                for name, dimension in rubric.dimensions.items()
                if any(part.signal in names for part in dimension.parts)
            ),
            edge_confidence=event.confidence,
            cloud_review_available=event.cloud_review_available,
            contested=doubts.is_contested(event),
            state=review.verdict if review else "unknown" if doubtful else "no_confidence",
            review=review,
        )


def _measures(
    rubric: Rubric, observed: Mapping[str, tuple[Observation, ...]]
) -> dict[str, Fraction]:
    """Return each growth metric's measured number: the mean, weighed by confidence."""
    return {
        growth.metric: number
        for growth in rubric.growth
        if (number := measured_number(observed[growth.metric])) is not None
    }


def measured_number(observations: Sequence[Observation]) -> Fraction | None:
    """Return the mean of the measured numbers, weighed by confidence; None without any."""
    numbers = [
        (one.number, one.weight)
        for one in observations
        if one.number is not None and one.weight > 0
    ]
    return _mean(numbers) if numbers else None


def _measured_by(
    rubric: Rubric, session: Sequence[Placed], observed: Mapping[str, tuple[Observation, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return who measured each growth metric: only what the same ones did can be compared."""
    events = {one.event.event_id: one.event for one in session}
    started = (one.event for one in session if one.event.event_type == "session_start")
    model = _model_version(next(started, None))
    return {
        growth.metric: tuple(
            sorted(
                {
                    _source(events[one.event_id], model)
                    for one in observed[growth.metric]
                    if one.number is not None and one.weight > 0
                }
            )
        )
        for growth in rubric.growth
    }


def _source(event: Event, model: str | None) -> str:
    """Return the method of a server-made event, the model version of one from the edge."""
    if event.is_server_made:
        return event.signal
    return f"edge {_model_version(event) or model or ''}".rstrip()


def _model_version(event: Event | None) -> str | None:
    return None if event is None or event.meta is None else _text(event.meta.get("model_version"))


def _methods(session: Sequence[Placed]) -> tuple[str, ...]:
    """Return the methods behind server-made evidence; only the same ones can be compared."""
    found = set()
    for one in session:
        event = one.event
        if event.is_server_made and event.event_type != "signal_reviewed":
            found.add(event.signal)
        elif event.event_type == "signal_reviewed" and isinstance(event.value, dict):
            found.add(str(event.value.get("method") or "person"))
    return tuple(sorted(found))
