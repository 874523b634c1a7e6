from collections.abc import Callable

import pytest

from etude.edge import errors
from etude.edge.reader import JournalFolder
from etude.edge.session_moves import LEGAL, Move, PhasePlan, Phases, State
from etude.edge.session_writer import Observation, SessionWriter
from etude.events.model import Event
from etude.testing.clocks import ManualClock

OpenWriter = Callable[..., SessionWriter]
PITCH = Observation(event_type="audio_observation", signal="pitch_accuracy", confidence=0.87)


def written(writer: SessionWriter) -> list[Event]:
    return list(JournalFolder(writer.folder).events())


def test_a_session_like_the_protocol_s_own_example(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """Start, focus, observations, two transitions, self-assessment, end: times, phases, seq."""
    clock.advance(2.5)
    writer.focus(2.5, "breathing")
    clock.advance(32.5)
    writer.transition("operation", source="ai_detected", confidence=0.92)
    clock.advance(15)
    writer.observe(PITCH)
    clock.advance(90)
    writer.transition("cleanup", source="user_manual")
    clock.advance(15)
    writer.assess(4, "better than yesterday")
    clock.advance(25)
    writer.end()
    events = written(writer)
    assert [(each.ts, each.event_type, each.phase) for each in events] == [
        (0.0, "session_start", "preparation"),
        (2.5, "session_focus", "preparation"),
        (35.0, "phase_transition", "operation"),
        (50.0, "audio_observation", "operation"),
        (140.0, "phase_transition", "cleanup"),
        (155.0, "technique_observation", "cleanup"),
        (180.0, "session_end", "cleanup"),
    ]
    assert [each.seq for each in events] == [1, 2, 3, 4, 5, 6, 7]
    assert len({each.event_id for each in events}) == 7
    assert events[2].value == {
        "from": "preparation",
        "to": "operation",
        "preparation_duration_s": 35.0,
    }
    assert events[2].signal == "preparation_to_operation"
    assert [each.transition_source for each in events if each.transition_source] == [
        "ai_detected",
        "user_manual",
    ]
    assert events[5].value == {"student_rating": 4, "student_comment": "better than yesterday"}
    assert events[6].value == {
        "total_duration_s": 180.0,
        "phases": {"preparation": 35.0, "operation": 105.0, "cleanup": 40.0},
    }


@pytest.mark.parametrize(
    ("confidence", "tier", "review"),
    [
        (1.0, "high", False),
        (0.85, "high", False),
        (0.84, "medium", False),
        (0.5, "medium", False),
        (0.49, "low", True),
        (0.0, "low", True),
    ],
)
def test_tier_and_review_follow_from_the_confidence(
    writer: SessionWriter, confidence: float, tier: str, *, review: bool
) -> None:
    """The tier is derived; below 0.5 an event is always offered for review."""
    event = writer.observe(
        Observation(event_type="posture_observation", signal="x", confidence=confidence)
    )
    assert (event.alert_tier, event.cloud_review_available) == (tier, review)


def test_a_sure_event_may_be_offered_for_review_too(writer: SessionWriter) -> None:
    """The rule adds reviews, it takes none away."""
    offered = Observation(event_type="achievement", signal="x", cloud_review_available=True)
    assert writer.observe(offered).cloud_review_available


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_confidence_outside_its_range_is_refused(
    writer: SessionWriter, confidence: float
) -> None:
    """Nothing is written, the next event takes the next number."""
    with pytest.raises(errors.ConfidenceError):
        writer.observe(Observation(event_type="streak", signal="x", confidence=confidence))
    assert writer.observe(PITCH).seq == 2


def test_a_refused_event_leaves_no_gap(writer: SessionWriter) -> None:
    """An event that is too long is not numbered."""
    long = Observation(event_type="streak", signal="x", value={"text": "x" * 70_000})
    with pytest.raises(errors.EventTooLongError):
        writer.observe(long)
    assert writer.observe(PITCH).seq == 2


# Illegal moves: one test each, named like a sentence.


def test_nothing_is_observed_before_the_session_begins(open_writer: OpenWriter) -> None:
    """`observe` needs a running session."""
    with pytest.raises(errors.IllegalMoveError):
        open_writer().observe(PITCH)


def test_a_session_does_not_end_before_it_begins(open_writer: OpenWriter) -> None:
    """`end` needs a running session."""
    with pytest.raises(errors.IllegalMoveError):
        open_writer().end()


def test_a_session_does_not_begin_twice(writer: SessionWriter) -> None:
    """`begin` needs a new session."""
    with pytest.raises(errors.IllegalMoveError):
        writer.begin({})


def test_there_is_no_focus_before_the_begin(open_writer: OpenWriter) -> None:
    """`focus` needs a running session."""
    with pytest.raises(errors.IllegalMoveError):
        open_writer().focus(2.5, "breathing")


def test_the_ritual_is_not_done_twice(writer: SessionWriter) -> None:
    """`focus` happens once."""
    writer.focus(2.5, "breathing")
    with pytest.raises(errors.IllegalMoveError):
        writer.focus(2.5, "breathing")


def test_the_ritual_belongs_into_the_first_phase(writer: SessionWriter) -> None:
    """`focus` after the first transition is refused."""
    writer.transition("operation")
    with pytest.raises(errors.IllegalMoveError):
        writer.focus(2.5, "breathing")


def test_an_answer_needs_a_question(writer: SessionWriter) -> None:
    """`answer` without an open question is refused."""
    with pytest.raises(errors.IllegalMoveError):
        writer.answer("continue")


def test_there_is_no_self_assessment_before_the_last_phase(writer: SessionWriter) -> None:
    """`assess` waits for the clean-up."""
    with pytest.raises(errors.IllegalMoveError):
        writer.assess(4)


def test_a_session_does_not_end_twice(writer: SessionWriter) -> None:
    """`end` after the end is refused."""
    writer.end()
    with pytest.raises(errors.IllegalMoveError):
        writer.end()


def test_nothing_is_observed_after_the_end(writer: SessionWriter) -> None:
    """`observe` after the end is refused."""
    writer.end()
    with pytest.raises(errors.IllegalMoveError):
        writer.observe(PITCH)


def test_nothing_is_contested_in_an_ended_session_itself(writer: SessionWriter) -> None:
    """`contest` after the end goes through `Contests`."""
    event = writer.observe(PITCH)
    writer.end()
    with pytest.raises(errors.IllegalMoveError):
        writer.contest(event)


def test_there_is_no_transition_after_the_end(writer: SessionWriter) -> None:
    """`transition` after the end is refused."""
    writer.end()
    with pytest.raises(errors.IllegalMoveError):
        writer.transition("cleanup")


def test_an_observation_may_not_pretend_to_be_a_move(writer: SessionWriter) -> None:
    """Lifecycle events are written by moves alone."""
    with pytest.raises(errors.IllegalMoveError):
        writer.observe(Observation(event_type="session_end", signal="session_complete"))


def test_a_session_does_not_go_back(writer: SessionWriter) -> None:
    """Phases only follow each other."""
    writer.transition("operation")
    for wanted in ("preparation", "operation"):
        with pytest.raises(errors.PhaseUnknownError):
            writer.transition(wanted)


def test_a_session_does_not_enter_a_phase_that_is_not_planned(writer: SessionWriter) -> None:
    """An unknown phase is refused."""
    with pytest.raises(errors.PhaseUnknownError):
        writer.transition("encore")


@pytest.mark.parametrize("rating", [0, 6, -1])
def test_a_rating_is_one_to_five(writer: SessionWriter, rating: int) -> None:
    """Others are refused."""
    writer.transition("cleanup")
    with pytest.raises(errors.RatingError):
        writer.assess(rating)


def test_every_move_has_its_states() -> None:
    """The table is complete, and nothing is legal once the session has ended."""
    assert set(LEGAL) == set(Move)
    assert all(State.ENDED not in states for states in LEGAL.values())


def test_a_phase_may_be_skipped(writer: SessionWriter) -> None:
    """From the preparation straight to the clean-up, with the signal's true name."""
    assert writer.transition("cleanup").signal == "preparation_to_cleanup"


def test_the_phases_may_be_a_rubric_s_own(open_writer: OpenWriter, clock: ManualClock) -> None:
    """Any names, any number."""
    writer = open_writer(Phases([PhasePlan(name="wet"), PhasePlan(name="lather")]))
    assert writer.begin({}).phase == "wet"
    clock.advance(3)
    writer.transition("lather", source="ai_detected", confidence=0.7)
    clock.advance(4)
    assert writer.end().value["phases"] == {"wet": 3.0, "lather": 4.0}


@pytest.mark.parametrize(
    "plans",
    [
        [],
        [PhasePlan(name="a"), PhasePlan(name="a")],
        [PhasePlan(name="")],
        [PhasePlan(name="a", timeout_s=0), PhasePlan(name="b")],
        [PhasePlan(name="a", timeout_s=5)],
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(plans: list[PhasePlan]) -> None:
    """No phases, doubled ones, empty names, time-outs that cannot be."""
    with pytest.raises(errors.PhasePlanError):
        Phases(plans)


# The time-out question (`docs/rules.md 10`).


def test_the_question_comes_at_the_time_out_and_not_before(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """Preparation is asked about at 90 s; the expected 60 s are only reported."""
    clock.advance(89.9)
    assert writer.ask_if_due() is None
    assert writer.next_check_s() == pytest.approx(0.1)
    clock.advance(0.1)
    question = writer.ask_if_due()
    assert question is not None
    assert (question.phase, question.elapsed_s, question.threshold_s) == ("preparation", 90.0, 60)
    assert writer.state is State.ASKING
    assert writer.ask_if_due() is None


def test_continuing_is_written_like_the_protocol_s_example(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """`phase_timeout` with `user_response: continue`; the session stays in its phase."""
    clock.advance(90)
    writer.ask_if_due()
    event = writer.answer("continue")
    assert (event.ts, event.event_type, event.phase, event.signal) == (
        90.0,
        "phase_timeout",
        "preparation",
        "preparation_timeout",
    )
    assert event.value == {"elapsed_s": 90.0, "threshold_s": 60, "user_response": "continue"}
    assert event.transition_source == "timeout"
    assert (writer.phase, writer.state) == ("preparation", State.RUNNING)


def test_proceeding_also_goes_to_the_next_phase(writer: SessionWriter, clock: ManualClock) -> None:
    """`proceed` writes the time-out and then a transition by `timeout`."""
    clock.advance(95)
    writer.ask_if_due()
    writer.answer("proceed")
    asked, moved = written(writer)[-2:]
    assert (asked.phase, asked.value["user_response"]) == ("preparation", "proceed")
    assert (moved.event_type, moved.phase, moved.transition_source) == (
        "phase_transition",
        "operation",
        "timeout",
    )


def test_no_answer_for_twenty_seconds_is_none_and_asked_again(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """`none` continues; the question comes back after another `timeout_s`."""
    clock.advance(90)
    writer.ask_if_due()
    clock.advance(19.9)
    assert writer.ask_if_due() is None
    assert writer.state is State.ASKING
    clock.advance(0.1)
    assert writer.ask_if_due() is None
    assert writer.state is State.RUNNING
    assert written(writer)[-1].value["user_response"] == "none"
    clock.advance(89.9)
    assert writer.ask_if_due() is None
    clock.advance(0.1)
    again = writer.ask_if_due()
    assert again is not None
    assert again.elapsed_s == 200.0


def test_a_phase_without_time_out_never_asks(writer: SessionWriter, clock: ManualClock) -> None:
    """Operation may take as long as it likes."""
    writer.transition("operation")
    clock.advance(10_000)
    assert writer.ask_if_due() is None
    assert writer.next_check_s() is None


@pytest.mark.parametrize("move", ["transition", "end"])
def test_a_move_closes_an_open_question_as_none(
    writer: SessionWriter, clock: ManualClock, move: str
) -> None:
    """Detecting the next phase, or stopping, while the question is open answers it with none."""
    clock.advance(90)
    writer.ask_if_due()
    if move == "end":
        writer.end()
    else:
        writer.transition("operation", source="ai_detected")
    asked, moved = written(writer)[-2:]
    assert asked.value["user_response"] == "none"
    assert moved.event_type == ("session_end" if move == "end" else "phase_transition")


def test_observing_goes_on_while_the_question_is_open(
    writer: SessionWriter, clock: ManualClock
) -> None:
    """The question stops nothing."""
    clock.advance(90)
    writer.ask_if_due()
    writer.observe(PITCH)
    assert writer.state is State.ASKING


# Crashes, clocks, full disks.


# Contests.


def test_a_host_adds_to_the_end_why_it_came(writer: SessionWriter) -> None:
    """Beside what the writer measures, which it cannot change."""
    ended = writer.end({"end_reason": "exit_phrase", "total_duration_s": -1})
    assert ended.value["end_reason"] == "exit_phrase"
    assert ended.value["total_duration_s"] == 0.0
