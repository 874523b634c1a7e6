"""What may happen in a practice session, and when: pure, without clock, ids or disk.

`LEGAL` is the whole protocol of a session. `Progress` is a fold over its events, so a session that
is taken up again from its journal stands exactly where it was (`docs/events.md §Fields`,
`docs/rules.md 10, 11`).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from etude.edge.errors import (
    ConfidenceError,
    IllegalMoveError,
    PhasePlanError,
    PhaseUnknownError,
    RatingError,
)
from etude.events.model import TIER_MEDIUM_FROM, Event

TransitionSource = Literal["ai_detected", "user_manual", "timeout"]
Reply = Literal["continue", "proceed", "none"]

ANSWER_WINDOW_S: Final = 20.0
"""How long the time-out question waits before it counts as `none` (`docs/rules.md 10`)."""


class State(StrEnum):
    """Where a session is."""

    NEW = "new"
    RUNNING = "running"
    ASKING = "asking"
    """Running, and the time-out question is open."""
    ENDED = "ended"


class Move(StrEnum):
    """What can happen to a session."""

    BEGIN = "begin"
    FOCUS = "focus"
    OBSERVE = "observe"
    CONTEST = "contest"
    TRANSITION = "transition"
    ASK = "ask"
    ANSWER = "answer"
    ASSESS = "assess"
    END = "end"


_UNDER_WAY: Final = frozenset({State.RUNNING, State.ASKING})

LEGAL: Final[Mapping[Move, frozenset[State]]] = {
    Move.BEGIN: frozenset({State.NEW}),
    Move.FOCUS: frozenset({State.RUNNING}),
    Move.OBSERVE: _UNDER_WAY,
    Move.CONTEST: _UNDER_WAY,
    Move.TRANSITION: _UNDER_WAY,
    Move.ASK: frozenset({State.RUNNING}),
    Move.ANSWER: frozenset({State.ASKING}),
    Move.ASSESS: _UNDER_WAY,
    Move.END: _UNDER_WAY,
}

LIFECYCLE: Final = frozenset(
    {"session_start", "session_focus", "session_end", "phase_transition", "phase_timeout"}
)
"""Event types that only moves write; an observation may not pretend to be one."""


def require_legal(move: Move, state: State) -> None:
    """Raise `IllegalMoveError` if `move` may not happen in `state`."""
    if state not in LEGAL[move]:
        raise IllegalMoveError(move=move.value, state=state.value)


class PhasePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a session.

    Args:
        name: as the events carry it.
        threshold_s: the expected length, only reported; None = `timeout_s`.
        timeout_s: after how long the learner is asked whether to go on; None = never.
    """

    name: str
    threshold_s: float | None = None
    timeout_s: float | None = None


DEFAULT_PHASES: Final = (
    PhasePlan(name="preparation", threshold_s=60, timeout_s=90),
    PhasePlan(name="operation"),
    PhasePlan(name="cleanup"),
)


class Phases:
    """The phases of a session, in order; a session only goes forward through them."""

    def __init__(self, plans: Sequence[PhasePlan] = DEFAULT_PHASES) -> None:
        """Take the phases of a rubric, or the protocol's own three.

        Raises:
            PhasePlanError: none, one twice, a time-out ≤ 0, or one on the last phase.
        """
        self._plans = {plan.name: plan for plan in plans}
        self.names = tuple(self._plans)
        if not plans or len(self.names) != len(plans) or "" in self._plans:
            raise PhasePlanError(reason="each needs a name of its own")
        if any(plan.timeout_s is not None and plan.timeout_s <= 0 for plan in plans):
            raise PhasePlanError(reason="a time-out must be positive")
        if plans[-1].timeout_s is not None:
            raise PhasePlanError(reason="nothing follows the last phase, so it has no time-out")

    @property
    def first(self) -> str:
        """Where a session begins."""
        return self.names[0]

    @property
    def last(self) -> str:
        """Where a session is rated."""
        return self.names[-1]

    def plan(self, name: str) -> PhasePlan:
        """Return the plan of a phase; one that the plan does not know never times out."""
        return self._plans.get(name, PhasePlan(name=name))

    def following(self, name: str) -> str:
        """Return the next phase.

        Raises:
            PhaseUnknownError: there is none.
        """
        place = self._place(name) + 1
        if place >= len(self.names):
            raise PhaseUnknownError(phase=name, wanted="-")
        return self.names[place]

    def require_forward(self, current: str, wanted: str) -> None:
        """Raise `PhaseUnknownError` unless `wanted` is a phase behind `current`."""
        if wanted not in self._plans or self._place(wanted) <= self._place(current):
            raise PhaseUnknownError(phase=current, wanted=wanted)

    def _place(self, name: str) -> int:
        return self.names.index(name) if name in self._plans else -1


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session stands after the events written so far. Seconds count from its begin.

    Args:
        state: never `asking`: the open question is not an event.
        phase: the phase that is open; None before the begin.
        phase_since_s: when it was entered.
        quiet_from_s: from when its time-out counts (its begin, or the last answer).
        spent_s: seconds spent in each phase that was left.
        focused: whether the focus ritual was done.
        last_seq: the highest `seq`.
        last_ts_s: the highest `ts`.
        started_at: `meta.started_at`, aware.
    """

    state: State = State.NEW
    phase: str | None = None
    phase_since_s: float = 0.0
    quiet_from_s: float = 0.0
    spent_s: dict[str, float] = {}
    focused: bool = False
    last_seq: int = 0
    last_ts_s: float = 0.0
    started_at: datetime | None = None

    def after(self, event: Event) -> "Progress":
        """Return the progress with one more event."""
        step = _FOLD.get(event.event_type)
        changed = step(self, event) if step else {}
        return msgspec.structs.replace(
            self,
            last_seq=max(self.last_seq, event.seq or 0),
            last_ts_s=max(self.last_ts_s, event.ts),
            **changed,
        )

    def leave_phase(self, at_s: float) -> dict[str, float]:
        """Return the seconds spent in each phase if the open one is left at `at_s`."""
        if self.phase is None:
            return dict(self.spent_s)
        spent_s = self.spent_s.get(self.phase, 0.0) + at_s - self.phase_since_s
        return {**self.spent_s, self.phase: round(spent_s, 3)}


def fold(events: Iterable[Event]) -> Progress:
    """Return the progress of a session after `events`, in their order."""
    progress = Progress()
    for event in events:
        progress = progress.after(event)
    return progress


def require_confidence(confidence: float) -> None:
    """Raise `ConfidenceError` unless it lies between 0 and 1."""
    if not 0 <= confidence <= 1:
        raise ConfidenceError(confidence=confidence)


def require_rating(rating: int) -> None:
    """Raise `RatingError` unless it is 1 to 5."""
    if rating not in range(1, 6):
        raise RatingError(rating=rating)


def needs_review(confidence: float, *, offered: bool) -> bool:
    """Whether an event must say `cloud_review_available`: always below 0.5."""
    return offered or confidence < TIER_MEDIUM_FROM


def _begun(_: Progress, event: Event) -> dict[str, Any]:
    try:
        started_at = msgspec.convert((event.meta or {}).get("started_at"), datetime)
    except msgspec.ValidationError:
        started_at = None
    return {
        "state": State.RUNNING,
        "phase": event.phase,
        "phase_since_s": event.ts,
        "quiet_from_s": event.ts,
        "started_at": started_at if started_at and started_at.tzinfo else None,
    }


def _moved_on(progress: Progress, event: Event) -> dict[str, Any]:
    return {
        "spent_s": progress.leave_phase(event.ts),
        "phase": event.phase,
        "phase_since_s": event.ts,
        "quiet_from_s": event.ts,
    }


def _ended(progress: Progress, event: Event) -> dict[str, Any]:
    return {"state": State.ENDED, "spent_s": progress.leave_phase(event.ts)}


_FOLD: Final = {
    "session_start": _begun,
    "session_focus": lambda _, __: {"focused": True},
    "phase_transition": _moved_on,
    "phase_timeout": lambda _, event: {"quiet_from_s": event.ts},
    "session_end": _ended,
}
