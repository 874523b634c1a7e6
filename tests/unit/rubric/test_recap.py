import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.rubric.recap import RECAP_VERSION, recap
from etude.testing.builders import event, session
from etude.testing.samples import import_triple, sample_lines


def counts(*events: Event) -> dict[str, tuple[int, int, int]]:
    """Return (positive, uncertain, issue) of each phase that has any."""
    summary = recap(events).phase_summary
    tuples = {name: (one.positive, one.uncertain, one.issue) for name, one in summary.items()}
    return {name: three for name, three in tuples.items() if any(three)}


def triple(*steps: str, confidence: float = 0.9, **others: Any) -> list[Event]:
    """Return steps of one triple; `assertion` goes to the judgement."""
    assertion = others.pop("assertion", True)
    return [
        event(
            f"t{number}",
            ts=float(number),
            event_type=f"signal_{step}",
            confidence=None if step == "check_requested" else confidence,
            value={},
            **{
                "correlation_id": "c1",
                "extra": {"assertion": assertion} if step == "detected" else {},
                **others,
            },
        )
        for number, step in enumerate(steps, 1)
    ]


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_the_protocols_example_session(locale: str) -> None:
    """The 13 lines give preparation 2/0/0, operation 4/1/0, cleanup 0/0/0, and three highlights."""
    made = recap(map(decode_line, sample_lines("violin-3min")), locale=locale)
    assert msgspec.to_builtins(made.phase_summary) == {
        "preparation": {"positive": 2, "uncertain": 0, "issue": 0},
        "operation": {"positive": 4, "uncertain": 1, "issue": 0},
        "cleanup": {"positive": 0, "uncertain": 0, "issue": 0},
    }
    assert list(made.phase_summary) == ["preparation", "operation", "cleanup"]
    assert made.highlights == HIGHLIGHTS[locale]
    assert made.highlight_event_ids == ("e010", "e007", "e004")
    assert (made.uncertainty_count, made.recap_version) == (1, RECAP_VERSION)


HIGHLIGHTS = {
    "en": (
        "Your pitch is 9 percentage points better than last time",
        "8 notes in a row, all of them right",
        "Your posture was ready at the first go",
    ),
    "zh-CN": (
        "音准比上次进步了 9 个百分点",
        "连续 8 个音符准确无误",
        "准备阶段姿态一次到位",
    ),
}


def test_the_protocols_triple_is_one_uncertainty() -> None:
    """Asked, seen and judged doubtfully count once, as uncertain."""
    made = recap(map(decode_line, import_triple(sample_lines("triples"))))
    assert made.phase_summary["preparation"].uncertain == made.uncertainty_count == 1
    assert made.highlights == ()


@given(
    count=st.integers(4, 60),
    seed=st.integers(0, 9),
    chance=st.randoms(use_true_random=False),
    numbered=st.booleans(),
)
def test_the_order_of_lines_does_not_matter(
    count: int, seed: int, chance: random.Random, *, numbered: bool
) -> None:
    """Any permutation of a session's lines, with or without `seq`, gives the same recap."""
    events = session(count, seed=seed)
    if not numbered:
        events = [msgspec.structs.replace(one, seq=None) for one in events]
    shuffled = list(events)
    chance.shuffle(shuffled)
    assert recap(shuffled) == recap(events)
    assert recap([*shuffled, *events]) == recap(events)


EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(["a", "b", "c", "d", "e"]),
        ts=st.sampled_from([0.0, 1.0, 2.0]),
        event_type=st.sampled_from(
            ["streak", "signal_detected", "signal_contested", "phase_transition", "unheard_of"]
        ),
        value=st.sampled_from([{}, {"to": "cleanup"}, {"event_id": "a"}, [1], "x", 5]),
        confidence=st.sampled_from([None, 0.2, 0.5, 0.9]),
        phase=st.sampled_from([None, "", "preparation", "operation", "rescue"]),
        seq=st.sampled_from([None, 1, 2]),
        correlation_id=st.sampled_from([None, "a", "c1"]),
        extra=st.sampled_from([{}, {"assertion": True}, {"assertion": False}, {"assertion": 1}]),
    ),
    max_size=8,
)


@given(EVENTS, st.randoms(use_true_random=False))
def test_anything_has_one_recap(events: list[Event], chance: random.Random) -> None:
    """Any events, equal ids with other content too, have one recap whatever their order."""
    shuffled = list(events)
    chance.shuffle(shuffled)
    made = recap(events)
    assert recap(shuffled) == made
    assert len(made.highlights) == len(set(made.highlights)) <= 3
    counted = sum(p.positive + p.uncertain + p.issue for p in made.phase_summary.values())
    assert counted <= len({one.event_id for one in events})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"value": {"correct": True}}, (1, 0, 0)),
        ({"value": {"correct": False}}, (0, 0, 1)),
        ({"value": {"correct": "yes"}}, None),
        ({"signal": "pitch_accuracy", "value": {"accuracy": 0.8}}, (1, 0, 0)),
        ({"signal": "pitch_accuracy", "value": {"accuracy": 0.79}}, (0, 0, 1)),
        ({"signal": "tone_quality", "value": {"quality": "good"}}, (1, 0, 0)),
        ({"signal": "tone_quality", "value": {"quality": "harsh"}}, (0, 0, 1)),
        ({"event_type": "tempo_observation", "value": {"bpm": 72}}, None),
        ({"event_type": "achievement", "value": {}}, (1, 0, 0)),
        ({"event_type": "improvement", "value": {}}, (1, 0, 0)),
        ({"event_type": "streak", "value": {}}, (1, 0, 0)),
        ({"event_type": "session_start", "value": {}}, None),
        ({"event_type": "phase_timeout", "value": {}, "confidence": 0.2}, None),
        ({"event_type": "listen_window_closed", "value": {"heard": True}}, None),
        ({"signal": "self_assessment", "value": {"correct": False}}, None),
        ({"event_type": "unheard_of", "value": {"correct": True}}, None),
        ({"confidence": 0.49}, (0, 1, 0)),
        ({"confidence": 0.49, "value": {"bpm": 72}}, (0, 1, 0)),
        ({"confidence": 0.5}, (1, 0, 0)),
        ({"confidence": None}, (1, 0, 0)),
        ({"alert_tier": "low"}, (0, 1, 0)),
        ({"cloud_review_available": True}, (0, 1, 0)),
        ({"event_type": "streak", "confidence": 0.3, "value": {}}, (0, 1, 0)),
        ({"meta": {"producer": "server"}}, None),
    ],
)
def test_what_an_event_counts_as(
    fields: dict[str, Any], expected: tuple[int, int, int] | None
) -> None:
    """Polarity, doubts and origin decide where one event is counted, or that it is not."""
    assert counts(event(**fields)) == ({"operation": expected} if expected else {})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (triple("check_requested", "observation", "detected"), (1, 0, 0)),
        (triple("check_requested", "detected"), (1, 0, 0)),
        (triple("detected", assertion=False), (0, 0, 1)),
        (triple("detected", assertion="no"), None),
        (triple("observation", "detected", confidence=0.3), (0, 1, 0)),
        (triple("check_requested"), None),
        (triple("check_requested", "observation"), None),
        (triple("check_requested", "observation", "observation", confidence=0.4), (0, 1, 0)),
        (triple("observation", "detected", "contested", assertion=False), (0, 1, 0)),
        (triple("observation", "contested"), (0, 1, 0)),
        (triple("detected", "detected"), (1, 0, 0)),
        (triple("detected", correlation_id=None), (1, 0, 0)),
    ],
)
def test_a_triple_counts_once(
    steps: Sequence[Event], expected: tuple[int, int, int] | None
) -> None:
    """A triple counts by its judgement, contested as uncertain; asked and seen only if doubtful."""
    assert counts(*steps) == ({"operation": expected} if expected else {})


def test_the_last_judgement_of_a_triple_counts() -> None:
    """Judged twice, the later judgement is the triple's."""
    first, second = triple("detected", "detected")
    changed = msgspec.structs.replace(second, extra={"assertion": False})
    assert counts(first, changed) == {"operation": (0, 0, 1)}


@pytest.mark.parametrize("named", [{"value": {"event_id": "e1"}}, {"correlation_id": "e1"}])
def test_a_contested_event_is_uncertain_and_counts_once(named: dict[str, Any]) -> None:
    """What the learner disagrees with is uncertain; the contest itself adds nothing."""
    contest = event("x", event_type="signal_contested", **{"value": {}, **named})
    assert counts(event("e1", value={"correct": False}), contest) == {"operation": (0, 1, 0)}


def test_an_event_without_phase_counts_under_the_open_one() -> None:
    """Before any phase it is the first; a transition opens the phase that it leads to."""
    made = counts(
        event("a", ts=0, phase=None),
        event("b", ts=1, phase="", event_type="streak"),
        event("c", ts=2, phase="preparation", event_type="phase_transition", value={"to": "x"}),
        event("d", ts=3, phase=None),
        event("e", ts=4, phase="cleanup"),
        event("f", ts=5, phase=None),
    )
    assert made == {"preparation": (2, 0, 0), "x": (1, 0, 0), "cleanup": (2, 0, 0)}


def test_phases_of_the_rubric_follow_the_usual_ones() -> None:
    """The usual phases come first and are always there; others in the order of the session."""
    made = recap([event("a", ts=2, phase="z"), event("b", ts=3, phase="y")])
    assert list(made.phase_summary) == ["preparation", "operation", "cleanup", "z", "y"]


def test_strengths_come_in_order() -> None:
    """Improvement, streak, achievement, observation; then confidence; then time; at most three."""
    events = [
        event("observed", confidence=1.0),
        event("achieved", event_type="achievement", confidence=0.9),
        event("late", event_type="streak", confidence=0.8, ts=9, value={"streak_length": 7}),
        event("soon", event_type="streak", confidence=0.8, ts=3, value={"streak_length": 4}),
        event("surer", event_type="streak", confidence=0.9, ts=9, value={"streak_length": 3}),
        event("unsaid", event_type="improvement", confidence=None, signal="y"),
    ]
    assert recap(events).highlight_event_ids == ("unsaid", "surer", "soon")
    assert recap(events[:2]).highlight_event_ids == ("achieved", "observed")


def test_nothing_doubtful_and_no_issue_is_a_highlight() -> None:
    """Doubtful events and issues are never shown."""
    made = recap(
        [
            event("a", event_type="improvement", confidence=0.4),
            event("b", event_type="streak", cloud_review_available=True),
            event("c", value={"correct": False}),
        ]
    )
    assert made.highlights == ()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {
                "signal": "rhythm_more_stable",
                "value": {"previous_accuracy": 0.715, "current_accuracy": 0.73},
            },
            "Your rhythm is 2 percentage points steadier than last time",
        ),
        (
            {"signal": "depth", "value": {"previous_accuracy": 0.9, "current_accuracy": 0.91}},
            "You did better than last time",
        ),
        (
            {"signal": "depth", "value": {"previous_accuracy": 0.9, "current_accuracy": 0.8}},
            "You did better than last time",
        ),
        (
            {"signal": "depth", "value": {"previous_accuracy": 82, "current_accuracy": 91}},
            "You did better than last time",
        ),
        ({"signal": "depth", "value": "x"}, "You did better than last time"),
    ],
)
def test_an_improvement_is_said_in_points(fields: dict[str, Any], sentence: str) -> None:
    """A gain of ratios is spoken in whole percentage points, anything else without a number."""
    assert recap([event(event_type="improvement", **fields)]).highlights == (sentence,)


@pytest.mark.parametrize("length", [True, "8", 1.5, -3, 1, None])
def test_a_streak_without_a_length_has_no_number(length: object) -> None:
    """A streak is counted aloud only if its length is a whole number above one."""
    streak = event(event_type="streak", value={"streak_length": length})
    assert recap([streak]).highlights == ("You kept it up without a slip",)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_ids_are_not_for_learners(locale: str) -> None:
    """A signal that has no sentence is praised without its name."""
    for event_type in ("improvement", "streak", "achievement", "posture_observation"):
        (sentence,) = recap(
            [event(event_type=event_type, signal="secret_id", value={"correct": True})],
            locale=locale,
        ).highlights
        assert "secret" not in sentence
