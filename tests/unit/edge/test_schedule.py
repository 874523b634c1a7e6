from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.edge import schedule
from etude.edge.upload_state import Problem, UploadState, UploadStatus

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
PROBLEM = Problem(code="NETWORK_CONNECT")


def failed(
    state: UploadState, now: datetime = NOW, chance: float = 0.0, **more: float
) -> UploadState:
    return schedule.after_failure(state, now, PROBLEM, chance=chance, **more)


def test_the_waits_double_up_to_a_minute() -> None:
    """1, 2, 4, 8, 16, 32, 60, 60, 60 seconds between ten tries."""
    assert [schedule.wait_s(attempts, 0) for attempts in range(1, 10)] == [
        1, 2, 4, 8, 16, 32, 60, 60, 60,
    ]  # fmt: skip


@given(attempts=st.integers(1, 50), chance=st.floats(0, 1))
def test_jitter_only_shortens(attempts: int, chance: float) -> None:
    """No wait is longer than its bound, none shorter than three quarters of it."""
    longest = schedule.wait_s(attempts, 0)
    assert longest * 0.75 <= schedule.wait_s(attempts, chance) <= longest <= 60


def test_after_ten_tries_a_session_is_pending_for_five_minutes() -> None:
    """Then the next round begins, with its first wait."""
    state = UploadState(session_id="s-1")
    for _ in range(9):
        state = failed(state)
        assert state.status is UploadStatus.RETRYING
    state = failed(state)
    assert (state.status, state.attempts) == (UploadStatus.PENDING, 10)
    assert schedule.due_in_s(state, NOW) == 300
    again = failed(state, NOW + timedelta(seconds=300))
    assert (again.status, again.attempts) == (UploadStatus.RETRYING, 1)


def test_a_trigger_begins_a_new_round() -> None:
    """What waits or is pending is due at once."""
    state = UploadState(session_id="s-1")
    for _ in range(10):
        state = failed(state)
    assert schedule.due_in_s(schedule.triggered(state), NOW) == 0
    assert failed(schedule.triggered(state)).attempts == 1


@pytest.mark.parametrize("status", [UploadStatus.REFUSED, UploadStatus.ERASED])
def test_what_is_at_rest_is_never_due(status: UploadStatus) -> None:
    """Neither time nor a trigger brings it back."""
    state = UploadState(session_id="s-1", status=status)
    assert schedule.due_in_s(schedule.triggered(state), NOW + timedelta(days=99)) is None


def test_retry_after_is_kept_to_even_by_a_trigger() -> None:
    """The server's wish is longer than the schedule and stronger than a trigger."""
    state = failed(UploadState(session_id="s-1"), retry_after_s=120)
    assert schedule.due_in_s(state, NOW) == 120
    assert schedule.due_in_s(schedule.triggered(state), NOW + timedelta(seconds=20)) == 100


def test_a_short_retry_after_does_not_shorten_the_schedule() -> None:
    """The later of both counts."""
    assert schedule.due_in_s(failed(UploadState(session_id="s-1"), retry_after_s=0.2), NOW) == 1


def test_an_absurd_retry_after_ends_within_a_day() -> None:
    """No server can silence a device for ever."""
    assert (
        schedule.due_in_s(failed(UploadState(session_id="s-1"), retry_after_s=1e12), NOW) == 86400
    )


def test_a_clock_that_was_set_back_makes_it_due() -> None:
    """A device that believed it was 2036 does not wait ten years."""
    state = failed(UploadState(session_id="s-1"), NOW + timedelta(days=3650))
    assert schedule.due_in_s(state, NOW) == 0


def test_success_waits_for_more_or_is_done() -> None:
    """An open session is looked at again in five minutes, a sealed one never."""
    state = failed(UploadState(session_id="s-1"))
    waiting = schedule.after_success(state, NOW, done=False)
    assert (waiting.status, waiting.attempts, waiting.problem) == (UploadStatus.WAITING, 0, None)
    assert schedule.due_in_s(waiting, NOW) == 300
    assert schedule.after_success(state, NOW, done=True).status is UploadStatus.DONE
