"""Verification names what is not as the report says."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.errors import ReportUnreadableError
from etude.examiner.examining import make_report
from etude.examiner.journey import EarlierSession, Measure
from etude.examiner.page import render_page
from etude.examiner.report import Report, read_report, report_bytes
from etude.examiner.verify import read_rubric_json, verify
from etude.rubric.library import RubricLibrary, rubric_json
from etude.testing.samples import sample_lines

RUBRIC = RubricLibrary.load().get("violin-basic")
EVENTS = [
    msgspec.structs.replace(decode_line(line), journey_id="j")
    for line in sample_lines("violin-3min")
]
HISTORY = [
    EarlierSession(
        session_id=f"s-{number}",
        journey_id="j",
        started_at=datetime(2026, 2, number, tzinfo=UTC),
        rubric=RUBRIC.key,
        overall_score=70,
        measures={"pitch_accuracy": Measure(value="3/4", methods=("edge edge-v0.3",))},
    )
    for number in (1, 2)
]
MADE = make_report(
    EVENTS, RUBRIC, HISTORY, locale="zh-CN", clock=SystemClock(), ids=RandomIds(), media={"aa"}
)


def parts(report: Report, events: Any = EVENTS, rubric: Any = RUBRIC) -> set[str]:
    return {one.part for one in verify(report, events, rubric).differences}


def test_a_report_verifies_from_itself_events_and_rubric() -> None:
    """History, language and recordings are in the report; nothing else is needed."""
    result = verify(read_report(report_bytes(MADE)), EVENTS[::-1], RUBRIC)
    assert result.holds
    assert result.digest == MADE.digest


def test_a_report_verifies_against_the_rubric_that_was_kept() -> None:
    """The file may have changed since: the kept JSON is the version that the report names."""
    kept = read_rubric_json(rubric_json(RUBRIC))
    assert kept == RUBRIC
    assert verify(MADE, EVENTS, kept).holds
    heavier = msgspec.structs.replace(
        RUBRIC,
        dimensions=RUBRIC.dimensions
        | {"tone_quality": msgspec.structs.replace(RUBRIC.dimensions["tone_quality"], weight=5)},
    )
    assert parts(MADE, rubric=heavier) == {"rubric", "field"}


def test_a_broken_rubric_is_refused() -> None:
    """With a typed error."""
    with pytest.raises(ReportUnreadableError):
        read_rubric_json(b"{}")


def test_other_events_are_named() -> None:
    """One event less, or one changed."""
    assert "events" in parts(MADE, events=EVENTS[:-1])
    changed = msgspec.structs.replace(EVENTS[5], confidence=0.86)
    assert "events" in parts(MADE, events=[*EVENTS[:5], changed, *EVENTS[6:]])


def test_a_changed_score_is_named_by_its_place() -> None:
    """And so is the digest, which no longer fits; a digest made to fit does not help."""
    forged = msgspec.structs.replace(
        MADE,
        examiner_assessment=msgspec.structs.replace(MADE.examiner_assessment, overall_score=99),
    )
    found = verify(forged, EVENTS, RUBRIC).differences
    assert [(one.part, one.name) for one in found] == [
        ("digest", ""),
        ("field", "examiner_assessment.overall_score"),
    ]


def test_changed_history_is_named() -> None:
    """An earlier session's values have to fit the digest that stands beside them."""
    first, second = MADE.inputs.history
    other = msgspec.structs.replace(first.values, overall_score=1)
    inputs = msgspec.structs.replace(
        MADE.inputs, history=(msgspec.structs.replace(first, values=other), second)
    )
    found = verify(msgspec.structs.replace(MADE, inputs=inputs), EVENTS, RUBRIC).differences
    assert ("history", "s-1") in [(one.part, one.name) for one in found]


def test_a_reworded_text_that_makes_things_up_is_named() -> None:
    """Marked as a model's, it is checked again."""
    chain = MADE.examiner_assessment.evidence_chain
    forged = msgspec.structs.replace(chain[0], narrative="音准 99%。", narrative_source="model")
    assessment = msgspec.structs.replace(
        MADE.examiner_assessment, evidence_chain=(forged, *chain[1:])
    )
    report = msgspec.structs.replace(MADE, examiner_assessment=assessment)
    found = verify(report, EVENTS, RUBRIC).differences
    assert [(one.part, one.name) for one in found] == [("narrative", "intonation")]


def test_another_version_of_the_examiner_is_named() -> None:
    """So that a difference has its reason."""
    inputs = msgspec.structs.replace(MADE.inputs, examiner_version=0)
    assert "examiner_version" in parts(msgspec.structs.replace(MADE, inputs=inputs))


ANY = st.floats(allow_nan=False, allow_infinity=False)
SHARE = st.floats(0, 1)


@settings(max_examples=60)
@given(st.lists(st.tuples(ANY, SHARE, SHARE, st.booleans()), min_size=1, max_size=6))
def test_whatever_was_measured_the_report_is_read_back_and_holds(
    measured: list[tuple[float, float, float, bool]],
) -> None:
    """The smallest and the largest numbers that JSON can say, sure or reviewed."""
    events: list[Event] = []
    for place, (accuracy, confidence, sureness, reviewed) in enumerate(measured):
        about = Event(
            event_id=f"e{place}",
            session_id="s",
            ts=abs(accuracy),
            event_type="audio_observation",
            signal="pitch_accuracy",
            phase="operation",
            value={"accuracy": accuracy, "measure": accuracy},
            confidence=confidence,
            journey_id="j",
        )
        verdict = {"event_id": f"e{place}", "verdict": "confirmed", "confidence": sureness}
        events.append(about)
        if reviewed:
            changed = {"event_id": f"r{place}", "event_type": "signal_reviewed", "value": verdict}
            made_by = {"meta": {"producer": "server"}, "confidence": None, "alert_tier": None}
            events.append(msgspec.structs.replace(about, **changed, **made_by))
    made = make_report(events, RUBRIC, HISTORY, locale="en", clock=SystemClock(), ids=RandomIds())
    read = read_report(report_bytes(made))
    assert read == made
    assert verify(read, events, RUBRIC).holds
    assert render_page(made, events, RUBRIC)
