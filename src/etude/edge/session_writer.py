"""The one recorder of a practice session: mints, orders and writes its events.

    writer = SessionWriter.open(Journal.open(root, "s-1"), clock=SystemClock(), ids=RandomIds())
    writer.begin({"instrument": "violin"}, meta={"device": "toy-7"})
    writer.observe(Observation(event_type="posture_observation", signal="bow_hold_check",
                               value={"correct": True}, confidence=0.88))
    writer.transition("operation", source="user_manual")
    writer.end()

Opening it again after a crash goes on where the journal stops. Every method may raise
`JournalWaitingError` (a full or failing disk): the move has happened all the same, its events wait
in memory, and the session goes on. One thread at a time.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from etude.clock import Clock, Ids
from etude.edge.errors import IllegalMoveError, JournalWaitingError
from etude.edge.journal import Journal
from etude.edge.reader import JournalFolder
from etude.edge.session_moves import (
    ANSWER_WINDOW_S,
    LIFECYCLE,
    Move,
    Phases,
    Progress,
    Reply,
    State,
    TransitionSource,
    fold,
    needs_review,
    require_confidence,
    require_legal,
    require_rating,
)
from etude.events.model import Event

_LONGEST_GAP_S: Final = 24 * 3600.0  # a session is abandoned after it; beyond, the clock was set


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written as one event; fields as in the protocol.

    `cloud_review_available` is set by itself below confidence 0.5; `extra` holds fields that the
    protocol does not name (`detail`, `assertion`, `coach_line`).
    """

    event_type: str
    signal: str
    value: Any = {}
    confidence: float = 1.0
    cloud_review_available: bool = False
    perception_level: str | None = None
    primitive: str | None = None
    correlation_id: str | None = None
    transition_source: str | None = None
    meta: dict[str, Any] | None = None
    extra: dict[str, Any] = {}


class Question(msgspec.Struct, frozen=True):
    """The time-out question: the learner has been in `phase` for `elapsed_s`; go on or proceed?"""

    phase: str
    elapsed_s: float
    threshold_s: float


class SessionWriter:
    """Writes one session into its journal. See the module for use and errors.

    Attributes:
        last_event: the event written last by this writer, on the disk or still in memory.
    """

    def __init__(
        self,
        journal: Journal,
        progress: Progress,
        *,
        phases: Phases,
        clock: Clock,
        ids: Ids,
        journey_id: str | None,
    ) -> None:
        """Use `open`."""
        self._journal = journal
        self._progress = progress
        self._phases = phases
        self._clock = clock
        self._ids = ids
        self._journey_id = journey_id
        self._question: Question | None = None
        self.last_event: Event | None = None
        self._asked_at_s = 0.0
        self._zero_s = clock.monotonic() - _elapsed_s(progress, clock)

    @classmethod
    def open(
        cls,
        journal: Journal,
        *,
        clock: Clock,
        ids: Ids,
        phases: Phases | None = None,
        journey_id: str | None = None,
    ) -> Self:
        """Begin a session, or go on with one that a crash interrupted; takes over the journal.

        A session whose end was written but not sealed is sealed now; its state is `ended`.

        Raises:
            JournalUnreadableError: the journal cannot be read; it is closed.
            JournalDiskFullError, JournalWriteError: an ended session cannot be sealed.
        """
        with contextlib.ExitStack() as undo:
            undo.callback(journal.close)
            progress = fold(JournalFolder(journal.folder).events())
            writer = cls(
                journal,
                progress,
                phases=phases or Phases(),
                clock=clock,
                ids=ids,
                journey_id=journey_id,
            )
            if writer.state is State.ENDED:
                writer.flush()
            undo.pop_all()
        return writer

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._journal.session_id

    @property
    def folder(self) -> Path:
        """The folder of the session's journal."""
        return self._journal.folder

    @property
    def state(self) -> State:
        """Where the session is."""
        return State.ASKING if self._question else self._progress.state

    @property
    def phase(self) -> str | None:
        """The phase that is open."""
        return self._progress.phase

    @property
    def waiting(self) -> int:
        """How many events are in memory because the disk would not take them."""
        return self._journal.waiting

    def now_s(self) -> float:
        """Seconds since the session began, to the millisecond; never less than the last `ts`."""
        return max(round(self._clock.monotonic() - self._zero_s, 3), self._progress.last_ts_s)

    def begin(self, value: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> Event:
        """Write `session_start`; `meta.started_at` is the device's wall-clock time."""
        self._require(Move.BEGIN)
        self._zero_s = self._clock.monotonic()
        started_at = self._clock.now().isoformat()
        return self._write(
            Observation(
                event_type="session_start",
                signal="session_begin",
                value=dict(value),
                meta={**(meta or {}), "started_at": started_at},
            ),
            phase=self._phases.first,
        )

    def focus(self, focus_duration_s: float, ritual_type: str) -> Event:
        """Write `session_focus`: the ritual, done once, in the first phase (`docs/rules.md 11`)."""
        self._require(Move.FOCUS)
        if self._progress.focused or self.phase != self._phases.first:
            raise IllegalMoveError(move=Move.FOCUS.value, state=self.state.value)
        value = {"focus_duration_s": focus_duration_s, "ritual_type": ritual_type}
        return self._write(
            Observation(event_type="session_focus", signal="focus_completed", value=value)
        )

    def observe(self, observation: Observation) -> Event:
        """Write what was observed.

        Raises:
            ConfidenceError: a confidence outside 0 to 1.
            IllegalMoveError: not under way, or an event type that only a move writes.
        """
        self._require(Move.OBSERVE)
        require_confidence(observation.confidence)
        if observation.event_type in LIFECYCLE:
            raise IllegalMoveError(move=observation.event_type, state=self.state.value)
        return self._write(observation)

    def contest(self, about: Event, comment: str | None = None) -> Event:
        """Write that the learner disagrees with an event; it always goes to review."""
        self._require(Move.CONTEST)
        return self._write(contest_of(about, comment))

    def transition(
        self, to: str, *, source: TransitionSource = "user_manual", confidence: float = 1.0
    ) -> Event:
        """Go to a later phase; an open question counts as not answered.

        Raises:
            PhaseUnknownError: no such phase, or not a later one.
        """
        self._require(Move.TRANSITION)
        require_confidence(confidence)
        self._phases.require_forward(self._open_phase(), to)
        return self._write(
            self._transition(to, source, confidence), before=self._unanswered(), phase=to
        )

    def ask_if_due(self) -> Question | None:
        """Let time pass: return the time-out question when it has to be put to the learner.

        After 20 s without `answer` the question closes as `none`, which continues, and is put
        again after another `timeout_s` (`docs/rules.md 10`). To be called now and then, at least
        every `next_check_s`.
        """
        if self._question:
            if self.now_s() - self._asked_at_s < ANSWER_WINDOW_S:
                return None
            self._write(self._timeout("none"))
        if self.state is not State.RUNNING or self._ask_in_s() != 0:
            return None
        plan = self._phases.plan(self._open_phase())
        self._asked_at_s = self.now_s()
        elapsed_s = round(self._asked_at_s - self._progress.phase_since_s, 3)
        threshold_s = plan.threshold_s or plan.timeout_s or 0.0
        self._question = Question(plan.name, elapsed_s, threshold_s)
        return self._question

    def next_check_s(self) -> float | None:
        """Return in how many seconds `ask_if_due` has something to do; None = never."""
        if self._question:
            return max(0.0, self._asked_at_s + ANSWER_WINDOW_S - self.now_s())
        return self._ask_in_s() if self.state is State.RUNNING else None

    def answer(self, reply: Reply) -> Event:
        """Write the learner's answer; `proceed` also goes to the next phase, by `timeout`."""
        self._require(Move.ANSWER)
        asked = self._timeout(reply)
        if reply != "proceed":
            return self._write(asked)
        to = self._phases.following(self._open_phase())
        return self._write(self._transition(to, "timeout", 1.0), before=(asked,), phase=to)

    def assess(self, rating: int, comment: str | None = None) -> Event:
        """Write the learner's own rating, 1 to 5, in the last phase (`docs/rules.md 11`).

        Raises:
            RatingError: not 1 to 5.
            IllegalMoveError: not in the last phase.
        """
        self._require(Move.ASSESS)
        require_rating(rating)
        if self.phase != self._phases.last:
            raise IllegalMoveError(move=Move.ASSESS.value, state=str(self.phase))
        value: dict[str, Any] = {"student_rating": rating}
        if comment:
            value["student_comment"] = comment
        return self._write(
            Observation(event_type="technique_observation", signal="self_assessment", value=value)
        )

    def end(self, value: Mapping[str, Any] | None = None) -> Event:
        """Write `session_end` with the time spent in each phase, and seal the journal.

        `value` is what the host adds to that: why and how the session ended.
        """
        self._require(Move.END)
        now_s = self.now_s()
        spent = {"total_duration_s": now_s, "phases": self._progress.leave_phase(now_s)}
        written = self._write(
            Observation(
                event_type="session_end",
                signal="session_complete",
                value={**(value or {}), **spent},
            ),
            before=self._unanswered(),
        )
        self.flush()
        return written

    def flush(self) -> None:
        """Write what waits in memory; seal an ended session that is not sealed yet."""
        if self._progress.state is State.ENDED:
            self._journal.seal(self._clock.now())
        else:
            self._journal.flush()

    def close(self) -> None:
        """Let go of the journal; a session that has not ended may be opened again."""
        self._journal.close()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def _require(self, move: Move) -> None:
        require_legal(move, self.state)

    def _open_phase(self) -> str:
        return self._progress.phase or self._phases.first

    def _ask_in_s(self) -> float | None:
        timeout_s = self._phases.plan(self._open_phase()).timeout_s
        if timeout_s is None:
            return None
        return max(0.0, self._progress.quiet_from_s + timeout_s - self.now_s())

    def _transition(self, to: str, source: TransitionSource, confidence: float) -> Observation:
        left = self._open_phase()
        spent_s = self._progress.leave_phase(self.now_s())[left]
        return Observation(
            event_type="phase_transition",
            signal=f"{left}_to_{to}",
            value={"from": left, "to": to, f"{left}_duration_s": spent_s},
            confidence=confidence,
            transition_source=source,
        )

    def _timeout(self, reply: Reply) -> Observation:
        question = self._question or Question(self._open_phase(), 0.0, 0.0)
        return Observation(
            event_type="phase_timeout",
            signal=f"{question.phase}_timeout",
            value={
                "elapsed_s": question.elapsed_s,
                "threshold_s": question.threshold_s,
                "user_response": reply,
            },
            transition_source="timeout",
        )

    def _unanswered(self) -> tuple[Observation, ...]:
        return (self._timeout("none"),) if self._question else ()

    def _write(
        self,
        observation: Observation,
        *,
        before: tuple[Observation, ...] = (),
        phase: str | None = None,
    ) -> Event:
        """Write the events of one move: `before` in the open phase, then the move's own in `phase`.

        A disk that takes nothing does not undo the move: all its events wait in memory, and the
        error comes at the end.
        """
        refused: list[JournalWaitingError] = []
        for earlier in before:
            self._append(earlier, self._open_phase(), refused)
        event = self._append(observation, phase or self._open_phase(), refused)
        if refused:
            raise refused[0]
        return event

    def _append(
        self, observation: Observation, phase: str, refused: list[JournalWaitingError]
    ) -> Event:
        event = self._mint(observation, phase)
        try:
            self._journal.append(event)
        except JournalWaitingError as error:
            refused.append(error)
        self._progress = self._progress.after(event)
        self.last_event = event
        if event.event_type == "phase_timeout":
            self._question = None
        return event

    def _mint(self, observation: Observation, phase: str) -> Event:
        return Event(
            event_id=self._ids.new(),
            session_id=self.session_id,
            ts=self.now_s(),
            event_type=observation.event_type,
            phase=phase,
            signal=observation.signal,
            value=observation.value,
            confidence=observation.confidence,
            cloud_review_available=needs_review(
                observation.confidence, offered=observation.cloud_review_available
            ),
            transition_source=observation.transition_source,
            meta=observation.meta,
            journey_id=self._journey_id,
            perception_level=observation.perception_level,
            primitive=observation.primitive,
            correlation_id=observation.correlation_id,
            seq=self._progress.last_seq + 1,
            extra=observation.extra,
        )


def contest_of(about: Event, comment: str | None) -> Observation:
    """Return the contest of an event: same signal and correlation, always for review."""
    value = {"event_id": about.event_id} | ({"comment": comment} if comment else {})
    return Observation(
        event_type="signal_contested",
        signal=about.signal,
        value=value,
        cloud_review_available=True,
        correlation_id=about.correlation_id or about.event_id,
    )


def _elapsed_s(progress: Progress, clock: Clock) -> float:
    """Return how far into the session it is now, for one that is taken up again.

    By the wall clock, unless that was set in between: then time goes on from the last event.
    """
    if progress.started_at is None:
        return progress.last_ts_s
    elapsed_s = (clock.now() - progress.started_at).total_seconds()
    plausible = 0 <= elapsed_s - progress.last_ts_s <= _LONGEST_GAP_S
    return elapsed_s if plausible else progress.last_ts_s
