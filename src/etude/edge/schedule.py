"""When an upload is tried again: pure (`docs/edge.md §The outbox`).

A trigger (session end, every five minutes, network back) begins a round: up to ten tries, 1, 2, 4,
8 … at most 60 seconds apart, each a little early by chance so that many devices do not come at
once. Then the session is pending until the next trigger. All of it stands in `state.json`, so a
restart changes nothing.
"""

from datetime import datetime, timedelta
from typing import Final

from etude.edge.upload_state import Problem, UploadState, UploadStatus

MAX_TRIES: Final = 10
LONGEST_WAIT_S: Final = 60.0
EVERY_S: Final = 300.0
JITTER: Final = 0.25
LONGEST_RETRY_AFTER_S: Final = 24 * 3600.0

_AT_REST: Final = frozenset({UploadStatus.REFUSED, UploadStatus.ERASED})


def wait_s(attempts: int, chance: float) -> float:
    """Return the wait after `attempts` (≥ 1) failed tries; `chance` from 0 to 1 shortens it."""
    longest = min(LONGEST_WAIT_S, 2.0 ** (min(attempts, MAX_TRIES) - 1))
    return longest * (1 - JITTER * chance)


def after_failure(
    state: UploadState,
    now: datetime,
    problem: Problem,
    *,
    chance: float,
    retry_after_s: float | None = None,
) -> UploadState:
    """Return the state after one more failed try; `Retry-After` is kept to, up to a day."""
    attempts = 1 if state.status is UploadStatus.PENDING else state.attempts + 1
    pending = attempts >= MAX_TRIES
    delay_s = EVERY_S if pending else wait_s(attempts, chance)
    pause = timedelta(seconds=min(retry_after_s or 0.0, LONGEST_RETRY_AFTER_S))
    return state.but(
        status=UploadStatus.PENDING if pending else UploadStatus.RETRYING,
        attempts=attempts,
        next_try_at=now + max(timedelta(seconds=delay_s), pause),
        scheduled_at=now,
        not_before=now + pause if pause else None,
        problem=problem,
    )


def after_success(state: UploadState, now: datetime, *, done: bool) -> UploadState:
    """Return the state after everything there was has been acknowledged."""
    return state.but(
        status=UploadStatus.DONE if done else UploadStatus.WAITING,
        attempts=0,
        next_try_at=None if done else now + timedelta(seconds=EVERY_S),
        scheduled_at=now,
        not_before=None,
        problem=None,
    )


def triggered(state: UploadState) -> UploadState:
    """Return the state at the beginning of a new round; what is at rest stays at rest."""
    return state if state.status in _AT_REST else state.but(attempts=0, next_try_at=None)


def due_in_s(state: UploadState, now: datetime) -> float | None:
    """Return in how many seconds a session with something unsent is to be tried; None = never."""
    if state.status in _AT_REST:
        return None
    if state.scheduled_at and now < state.scheduled_at:
        return 0.0  # the clock was set back
    due = [at for at in (state.next_try_at, state.not_before) if at]
    return max(0.0, (max(due) - now).total_seconds()) if due else 0.0
