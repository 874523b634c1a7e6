"""Scoring, against values computed by hand."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.exact import half_up, root, tenths, wilson
from etude.examiner.score import score
from etude.rubric.library import RubricLibrary
from etude.rubric.loading import load_rubric
from etude.rubric.model import Rubric
from etude.testing.samples import sample_lines

RUBRIC = load_rubric(
    """\
id: made
version: v1
locale: {en: Made}
phases: [{id: operation}]
signals:
  tune:
    primitive: quality
    observe: {event_types: [audio_observation, signal_observation, signal_detected]}
    measure:
      audio_observation: value.accuracy
      signal_observation: value.seen
      signal_detected: assertion
  gloves:
    primitive: safety
    observe: {event_types: [technique_observation]}
    measure: {technique_observation: value.correct}
dimensions:
  tune: {weight: 3, from: [{signal: tune}]}
  care: {weight: 1, from: [{signal: gloves}]}
safety_gates: [{signal: gloves, cap: 40}]
growth: [{metric: tune}]
""",
    "made.yaml",
)


def violin() -> tuple[list[Event], Rubric]:
    lines = enumerate(sample_lines("violin-3min"), 1)
    return [decode_line(line, number) for number, line in lines], RubricLibrary.load().get(
        "violin-basic"
    )


def event(event_id: str, value: Any, **fields: Any) -> Event:
    given_fields = {
        "event_type": "audio_observation",
        "signal": "tune",
        "confidence": 1.0,
        **fields,
    }
    return Event(event_id=event_id, session_id="s", ts=1.0, value=value, **given_fields)


def review(about: str, verdict: str, **said: Any) -> Event:
    return Event(
        event_id=f"r-{about}-{verdict}",
        session_id="s",
        ts=1.0,
        event_type="signal_reviewed",
        signal="tune",
        value={"event_id": about, "verdict": verdict, **said},
        meta={"producer": "server"},
    )


def test_the_sample_session_is_scored() -> None:
    """Intonation 91, tone 75, posture 100, rhythm not observed: (91 + 75 + 100) / 3 = 88.7 → 89."""
    found = score(*violin())
    assert {one.dimension: one.score for one in found.dimensions} == {
        "intonation": 91,
        "rhythm": None,
        "tone_quality": 75,
        "posture": 100,
    }
    assert (found.overall_score, found.coverage) == (89, Fraction(3, 4))
    (item,) = found.ledger
    assert (item.event_id, item.state, item.edge_confidence) == ("e008", "unknown", 0.42)
    assert item.dimensions == ("posture",)
    assert found.measures == {"pitch_accuracy": Fraction(91, 100)}


def test_a_review_settles_a_doubtful_event() -> None:
    """A confirmed issue at 0.9 beside a right bow hold at 0.88: 0.88 / 1.78 = 49.4 → 49."""
    events, rubric = violin()
    about = msgspec.structs.replace(
        review("e008", "confirmed", measured=False, confidence=0.9), session_id="s-abc-123"
    )
    found = score([*events, about], rubric)
    posture = next(one for one in found.dimensions if one.dimension == "posture")
    assert (posture.score, posture.evidence) == (49, ("e003", "e008"))
    assert found.ledger[0].state == "confirmed"
    assert found.methods == ("person",)


def test_a_possible_issue_that_is_confirmed_is_one() -> None:
    """The sample's e008 measures nothing itself: confirmed it counts, overturned it does not."""
    events, rubric = violin()
    scores = []
    for verdict in ("confirmed", "overturned"):
        about = msgspec.structs.replace(
            review("e008", verdict, confidence=0.9), session_id="s-abc-123"
        )
        found = score([*events, about], rubric)
        scores += [one.score for one in found.dimensions if one.dimension == "posture"]
    assert scores == [49, 100]


@pytest.mark.parametrize(
    ("verdict", "said", "expected"),
    [
        ("confirmed", {}, 40),
        ("overturned", {}, None),
        ("overturned", {"measured": 0.9}, 90),
        ("unknown", {"measured": 0.9}, None),
        ("nonsense", {"measured": 0.9}, None),
        ("confirmed", {"confidence": "sure"}, None),
    ],
)
def test_what_a_verdict_does(verdict: str, said: dict[str, Any], expected: int | None) -> None:
    """Confirmed it counts, overturned what the reviewer measured does, else nothing."""
    doubtful = event("a", {"accuracy": 0.4}, confidence=0.3)
    found = score([doubtful, review("a", verdict, **said)], RUBRIC)
    assert found.dimensions[0].score == expected


def test_the_later_of_two_verdicts_counts() -> None:
    """Both stand at the time of their event; when they were given decides, whatever their ids."""
    doubtful = event("a", {"accuracy": 0.4}, confidence=0.3)
    first = review("a", "overturned", reviewed_at="2026-01-01T10:00:00+08:00")
    second = review("a", "confirmed", reviewed_at="2026-01-01T09:00:00+00:00")
    for events in ([doubtful, first, second], [second, first, doubtful]):
        assert score(events, RUBRIC).ledger[0].state == "confirmed"


def test_a_triple_is_reviewed_whole() -> None:
    """A verdict that names the correlation settles the judgement."""
    judged = event(
        "d",
        {},
        event_type="signal_detected",
        correlation_id="c",
        confidence=0.3,
        extra={"assertion": True},
    )
    assert score([judged, review("c", "confirmed")], RUBRIC).dimensions[0].score == 100


def test_who_measured_is_kept_with_the_number() -> None:
    """A server's method by its name, the edge by the model of its session."""
    start = event("s", {}, event_type="session_start", meta={"model_version": "edge-v0.3"})
    by_edge = event("a", {"accuracy": 0.9})
    by_server = event("b", {"accuracy": 0.9}, meta={"producer": "server"})
    assert score([start, by_edge, by_server], RUBRIC).measured_by == {
        "tune": ("edge edge-v0.3", "tune")
    }


def test_a_reviewer_is_the_server_and_nobody_else() -> None:
    """A device cannot settle its own doubts."""
    own = msgspec.structs.replace(review("a", "confirmed"), meta={"producer": "toy"})
    found = score([event("a", {"accuracy": 0.4}, confidence=0.3), own], RUBRIC)
    assert found.dimensions[0].score is None


def test_without_evidence_there_is_no_score() -> None:
    """Not 0 and no default: nothing is covered."""
    found = score([], RUBRIC)
    assert found.overall_score is None
    assert found.coverage == 0
    assert [(one.score, one.interval, one.evidence) for one in found.dimensions] == [
        (None, None, ()),
        (None, None, ()),
    ]


def test_without_confidence_an_event_weighs_a_half_and_is_listed() -> None:
    """(0.5 * 0 + 1 * 1) / 1.5 = 66.7 → 67."""
    bare = event("a", {"accuracy": 0}, confidence=None)
    found = score([bare, event("b", {"accuracy": 1})], RUBRIC)
    assert found.dimensions[0].score == 67
    assert [(item.event_id, item.state) for item in found.ledger] == [("a", "no_confidence")]


def test_a_triple_counts_once_by_its_judgement() -> None:
    """What was seen is left out where it was judged, and counts where it was not."""
    seen = event("o", {"seen": 0.2}, event_type="signal_observation", correlation_id="c")
    judged = event(
        "d", {}, event_type="signal_detected", correlation_id="c", extra={"assertion": True}
    )
    assert score([seen], RUBRIC).dimensions[0].score == 20
    both = score([seen, judged], RUBRIC).dimensions[0]
    assert (both.score, both.evidence) == (100, ("d",))


def test_a_contested_event_weighs_nothing() -> None:
    """Until somebody has looked at it; it is listed."""
    contest = event("c", {"event_id": "a"}, event_type="signal_contested")
    found = score([event("a", {"accuracy": 1}), contest], RUBRIC)
    assert found.dimensions[0].score is None
    assert [(item.event_id, item.contested) for item in found.ledger] == [("a", True)]


def test_a_triple_is_contested_whole() -> None:
    """A contest names what was seen; the judgement of the same triple weighs nothing either."""
    seen = event("o", {"seen": 1}, event_type="signal_observation", correlation_id="c")
    judged = event(
        "d", {}, event_type="signal_detected", correlation_id="c", extra={"assertion": True}
    )
    contest = event("x", {"event_id": "o"}, event_type="signal_contested", correlation_id="c")
    found = score([seen, judged, contest], RUBRIC)
    assert found.dimensions[0].score is None
    assert [(item.event_id, item.contested) for item in found.ledger] == [("d", True), ("o", True)]


def test_a_contested_metric_leaves_its_turn_alone() -> None:
    """A turn's metrics share its correlation, but are events of their own."""
    turn = event("o", {"seen": 1}, event_type="signal_observation", correlation_id="s:0")
    metric = event("m", {"accuracy": 0}, correlation_id="s:0")
    contest = event("x", {"event_id": "m"}, event_type="signal_contested", correlation_id="s:0")
    assert score([turn, metric, contest], RUBRIC).dimensions[0].evidence == ("o",)


def test_a_failed_gate_caps_the_whole() -> None:
    """Tune 100 weighs 3, care 0 weighs 1: 75, capped to 40; unobserved is not failed."""
    bare_hand = event("g", {"correct": False}, event_type="technique_observation", signal="gloves")
    found = score([event("a", {"accuracy": 1}), bare_hand], RUBRIC)
    assert (found.uncapped_score, found.overall_score) == (75, 40)
    assert (found.gates[0].failed, found.gates[0].evidence) == (True, ("g",))
    assert score([event("a", {"accuracy": 1})], RUBRIC).gates[0].failed is None


def test_wilson_by_hand() -> None:
    """Of 10 observations at 0.5: 0.2366 to 0.7634 (Wilson 1927)."""
    low, high = wilson(Fraction(1, 2), Fraction(10))
    assert (round(float(low), 4), round(float(high), 4)) == (0.2366, 0.7634)
    assert root(Fraction(1, 4)) == Fraction(1, 2)
    assert (half_up(Fraction(5, 2)), half_up(Fraction(-1, 2)), tenths(Fraction(1, 4))) == (
        3,
        0,
        0.3,
    )


VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0.5, 1)), min_size=1, max_size=12)


@given(VALUES, st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter_and_bounds_hold(
    values: list[tuple[float, float]], chance: Any
) -> None:
    """Any order gives the same; a score is within its interval, and both within 0 and 100."""
    events = [
        event(f"e{i}", {"accuracy": value}, confidence=confidence)
        for i, (value, confidence) in enumerate(values)
    ]
    found = score(events, RUBRIC)
    mixed = list(events)
    chance.shuffle(mixed)
    assert score(mixed + events[:1], RUBRIC) == found
    tune = found.dimensions[0]
    assert tune.score is not None
    assert tune.interval is not None
    assert 0 <= tune.interval[0] <= tune.score <= tune.interval[1] <= 100
