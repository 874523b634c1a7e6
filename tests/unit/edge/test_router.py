from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge import errors
from etude.edge.reader import JournalFolder
from etude.edge.router import LEGAL, Check, CheckMove, Route, Router, route_of
from etude.edge.session_writer import SessionWriter
from etude.events.model import Event
from etude.testing.clocks import CountingIds
from etude.testing.lossy_files import LossyFiles


@pytest.fixture
def check(writer: SessionWriter) -> Check:
    asked = Router(writer, CountingIds("c")).check("hand_position_check", perception_level="L2")
    asked.request()
    return asked


def triple(writer: SessionWriter) -> list[Event]:
    return [e for e in JournalFolder(writer.folder).events() if e.correlation_id == "c001"]


def test_a_triple_shares_its_correlation(check: Check, writer: SessionWriter) -> None:
    """Asked, seen, judged: three events of one signal, level and correlation."""
    check.saw("hands off the middle line", confidence=0.6)
    check.judge(assertion=False, confidence=0.6, coach_line="not sure, noted")
    asked, seen, judged = triple(writer)
    assert [asked.event_type, seen.event_type, judged.event_type] == [
        "signal_check_requested",
        "signal_observation",
        "signal_detected",
    ]
    assert {each.signal for each in (asked, seen, judged)} == {"hand_position_check"}
    assert {each.perception_level for each in (asked, seen, judged)} == {"L2"}
    assert seen.extra == {"detail": "hands off the middle line"}
    assert judged.extra == {"assertion": False, "coach_line": "not sure, noted"}
    assert check.route is Route.SUPPORTED
    assert not judged.cloud_review_available


def test_a_sure_judgement_may_leave_the_observation_out(
    check: Check, writer: SessionWriter
) -> None:
    """At 0.8 and above: asked, judged."""
    check.judge(assertion=True, confidence=0.8)
    assert [each.event_type for each in triple(writer)] == [
        "signal_check_requested",
        "signal_detected",
    ]
    assert check.route is Route.ASSERTED


def test_a_judgement_below_may_not_leave_it_out(check: Check, writer: SessionWriter) -> None:
    """Below 0.8 what was seen has to be written first; nothing is written instead."""
    with pytest.raises(errors.ObservationMissingError):
        check.judge(assertion=True, confidence=0.79)
    assert len(triple(writer)) == 1


def test_a_doubtful_judgement_is_uncertain_and_goes_to_review(
    check: Check, writer: SessionWriter
) -> None:
    """Below 0.5 it says what it may be, and asks the examiner."""
    check.saw("little finger perhaps stiff", confidence=0.42)
    judged = check.judge(assertion=False, confidence=0.42)
    assert check.route is Route.UNCERTAIN
    assert judged.cloud_review_available
    assert judged.alert_tier == "low"
    assert judged.value == {"edge_assessment": "possible_issue"}
    assert triple(writer)[1].cloud_review_available


def test_what_the_learner_contests_is_uncertain_however_sure(
    check: Check, writer: SessionWriter
) -> None:
    """Contested at the observation: the judgement goes to review even at 0.95."""
    check.saw("bottle on the table", confidence=0.95)
    contest = check.contest("it is not")
    judged = check.judge(assertion=True, confidence=0.95)
    assert contest.correlation_id == judged.correlation_id == "c001"
    assert contest.cloud_review_available
    assert judged.cloud_review_available
    assert check.route is Route.UNCERTAIN
    assert len(triple(writer)) == 4


def test_a_judgement_can_be_contested_after_it(check: Check) -> None:
    """The contest follows the judgement; the route becomes uncertain."""
    check.judge(assertion=False, confidence=0.9)
    assert check.contest().value["event_id"]
    assert check.route is Route.UNCERTAIN


def test_nothing_can_be_contested_before_something_was_seen(check: Check) -> None:
    """A question alone says nothing about the learner."""
    with pytest.raises(errors.IllegalMoveError):
        check.contest()


def test_a_check_is_not_judged_twice(check: Check) -> None:
    """A new judgement is a new check."""
    check.judge(assertion=True, confidence=0.9)
    with pytest.raises(errors.IllegalMoveError):
        check.judge(assertion=False, confidence=0.9)


def test_nothing_is_seen_after_the_judgement(check: Check) -> None:
    """Observations come before."""
    check.judge(assertion=True, confidence=0.9)
    with pytest.raises(errors.IllegalMoveError):
        check.saw("more", confidence=0.9)


def test_nothing_is_seen_before_the_question(writer: SessionWriter) -> None:
    """A triple begins with its question."""
    with pytest.raises(errors.IllegalMoveError):
        Router(writer, CountingIds()).check("x").saw("early", confidence=0.9)


def test_a_question_is_not_asked_twice(check: Check) -> None:
    """One check, one question."""
    with pytest.raises(errors.IllegalMoveError):
        check.request()


def test_every_move_of_a_check_has_its_states() -> None:
    """The table is complete."""
    assert set(LEGAL) == set(CheckMove)


def test_a_check_goes_on_while_the_disk_is_full(open_writer: object, tmp_path: Path) -> None:
    """The error is said, the triple stays whole and in order."""
    disk = LossyFiles(tmp_path)
    writer: SessionWriter = open_writer(files=disk)  # type: ignore[operator]  # the fixture
    writer.begin({})
    check = Router(writer, CountingIds("c")).check("x")
    disk.space_bytes = 0
    with pytest.raises(errors.JournalDiskFullError):
        check.request()
    with pytest.raises(errors.JournalDiskFullError):
        check.saw("something", confidence=0.7)
    disk.space_bytes = None
    check.judge(assertion=True, confidence=0.7)
    assert [each.seq for each in triple(writer)] == [2, 3, 4]


@given(confidence=st.floats(0, 1), contested=st.booleans())
def test_the_route_follows_the_two_bounds(confidence: float, *, contested: bool) -> None:
    """< 0.5 or contested: uncertain; ≥ 0.8: asserted; between: supported."""
    route = route_of(confidence, contested=contested)
    assert (route is Route.UNCERTAIN) == (contested or confidence < 0.5)
    assert (route is Route.ASSERTED) == (not contested and confidence >= 0.8)
