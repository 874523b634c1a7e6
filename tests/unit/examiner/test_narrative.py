"""The templates: what they say of each kind of signal, and that it is all in the evidence."""

from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.examiner.examining import make_report
from etude.examiner.numerals import numerals
from etude.examiner.report import EvidenceItem, Locale
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric

LIBRARY = RubricLibrary.load()
VIOLIN = LIBRARY.get("violin-basic")
CPR = LIBRARY.get("cpr-bls")
NOT_YET = False


def event(event_id: str, signal: str, value: Any, **fields: Any) -> Event:
    given_fields = {"event_type": "audio_observation", "phase": "operation", "confidence": 1.0}
    return Event(
        event_id=event_id,
        session_id="s",
        ts=fields.pop("ts", 1.0),
        signal=signal,
        value=value,
        **{**given_fields, **fields},
    )


def chain(events: list[Event], rubric: Rubric, locale: Locale = "en") -> dict[str, EvidenceItem]:
    made = make_report(events, rubric, locale=locale, clock=SystemClock(), ids=RandomIds())
    return {one.dimension: one for one in made.examiner_assessment.evidence_chain}


def step(events: list[Event], rubric: Rubric) -> tuple[str, ...]:
    made = make_report(events, rubric, locale="en", clock=SystemClock(), ids=RandomIds())
    return made.examiner_assessment.recommendations


def posture(*rights: bool) -> list[Event]:
    return [
        event(
            f"p{at}", "bow_hold_check", {"correct": right}, event_type="posture_observation", ts=at
        )
        for at, right in enumerate(rights, 10)
    ]


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ((True,), "Bow hold: right (at 10 s)."),
        ((False,), "Bow hold: not yet right (at 10 s)."),
        ((True, True), "Bow hold: right all 2 times."),
        ((True, False, False), "Bow hold: right 1 of 3 times; not yet: at 11 s, at 12 s."),
        (
            (False,) * 5,
            "Bow hold: not yet right (at 10 s, at 11 s, at 12 s and 2 more).",
        ),
    ],
)
def test_right_and_not_yet(rights: tuple[bool, ...], said: str) -> None:
    """How often, and where not yet."""
    narrative = chain(posture(*rights), VIOLIN)["posture"].narrative
    assert narrative == f"{said} Not observed: Left hand."


def test_measured_numbers_have_their_unit_and_their_weakest_place() -> None:
    """Rates of 110 and 90 a minute are 100 on average, weakest at 90."""
    events = [
        event("a", "compression_rate", {"per_minute": 110}, event_type="tempo_observation", ts=20),
        event("b", "compression_rate", {"per_minute": 90}, event_type="tempo_observation", ts=40),
    ]
    assert chain(events, CPR)["compressions"].narrative.startswith(
        "Compression rate: 100 a minute on average over 2 observations; "
        "weakest at 40 s with 90 a minute."
    )
    assert chain(events, CPR, "zh-CN")["compressions"].narrative.startswith(
        "按压频率：2 次观察，平均：每分钟 100 次；最弱在第 40 秒：每分钟 90 次。"  # noqa: RUF001 - as it is written
    )


def test_steps_in_order_are_counted() -> None:
    """Two of eight."""
    events = [
        event(name, "bls_step", {"step": name}, event_type="technique_observation", ts=at)
        for at, name in enumerate(("check_scene", "check_response"))
    ]
    said = chain(events, CPR)["steps"].narrative
    assert said.startswith("Order of the steps: 2 of 8 steps in their order.")


def test_a_broken_gate_is_said_and_comes_first() -> None:
    """What keeps people safe is the next step, whatever else is weak."""
    bare = event("g", "scene_safe", {"correct": False}, event_type="technique_observation")
    slow = event("b", "compression_rate", {"per_minute": 10}, event_type="tempo_observation")
    made = make_report([bare, slow], CPR, locale="en", clock=SystemClock(), ids=RandomIds())
    (gate,) = made.examiner_assessment.safety
    assert (gate.status, gate.evidence_events) == ("failed", ("g",))
    assert gate.says == (
        "The scene was not made safe before help began. The overall score is therefore at most 40."
    )
    assert made.examiner_assessment.recommendations == (
        "Stop before you kneel, look around and say aloud that the scene is safe.",
    )


def test_of_equals_the_heavier_signal_gets_the_step() -> None:
    """Bow hold weighs two thirds of posture, intonation all of its dimension."""
    weak = event("a", "pitch_accuracy", {"accuracy": 0})
    assert step([*posture(NOT_YET), weak], VIOLIN)[0].startswith("Play the hardest bar slowly")
    assert step(posture(NOT_YET), VIOLIN)[0].startswith("Play open strings slowly")


PLAYED = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(1, 400), st.integers(0, 100)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("locale", get_args(Locale))
@settings(max_examples=40, deadline=None)
@given(played=PLAYED)
def test_every_number_said_was_measured(locale: Locale, played: list[tuple[int, int, int]]) -> None:
    """Only counts, bars, means and the lowest value are said, of whatever was played."""
    events = [
        event(
            f"e{place}",
            "pitch_accuracy",
            {"accuracy": thousandths / 1000, "measure": bar},
            confidence=confidence / 100,
            cloud_review_available=confidence < 50,
        )
        for place, (thousandths, bar, confidence) in enumerate(played)
    ]
    item = chain(events, VIOLIN, locale)["intonation"]
    sure = [(Fraction(t, 1000), bar, Fraction(c, 100)) for t, bar, c in played if c >= 50]
    known = {Fraction(len(sure)), Fraction(len(played) - len(sure))}
    if sure:
        total = sum(weight for *_, weight in sure)
        mean = sum(value * weight for value, _, weight in sure) / total
        known |= {Fraction(bar) for _, bar, _ in sure}
        known |= {
            Fraction(int(one * 100 + Fraction(1, 2))) for one in (mean, *(v for v, *_ in sure))
        }
        known.add(Fraction(len({bar for _, bar, _ in sure}) - 3))
    assert {one.number for one in numerals(item.narrative)} <= known
    assert set(item.evidence_events) == {
        one.event_id
        for one, (_, _, confidence) in zip(events, played, strict=True)
        if confidence >= 50
    }
