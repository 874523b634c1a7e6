"""The recorder of a gateway: what every session does becomes events on the disk.

    recorder = Recorder(data / "journals", clock=clock, ids=RandomIds(), on_ended=uploads.ended)
    recorder.start()
    recording = recorder.begin(SessionStart(device_id="toy-7", …))
    recording.turn(turn, "read_aloud")
    recording.end(EndReason.LIST_COMPLETED)
    recorder.close()

Bounds: `docs/edge.md §A gateway as an edge`. All calls come from one thread, the event loop's. Each
returns at once and never fails: another thread does the disk, with the time of the call. A full or
slow disk costs no turn; the session goes on, and is written when there is room (`record_queue`).
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import structlog

from etude.clock import Clock, Ids
from etude.edge.journal import SyncPolicy
from etude.edge.session_writer import Observation
from etude.files import Files
from etude.practice import session_events
from etude.practice.record_queue import RecordQueue
from etude.practice.records import EndReason, SessionStart, Turn, Unfinished
from etude.practice.session_record import (
    Action,
    Began,
    Ended,
    Entry,
    Moment,
    PhaseEntered,
    Place,
    TakenUp,
    TurnEnded,
)
from etude.practice.unfinished import RESUMED_WITHIN_S, Found, find_unfinished, first_missing

_log = structlog.get_logger("etude.recorder")


class _Session:
    """What the recorder remembers of a session that has not ended.

    Attributes:
        lost: when its connection was lost; None while it is connected.
        holder: the recording that speaks for it; an older one is not listened to any more.
    """

    def __init__(self, session_id: str, start: SessionStart) -> None:
        self.session_id = session_id
        self.start = start
        self.first_step = 0
        self.steps: set[int] = set()
        self.lost: Moment | None = None
        self.holder: Recording | None = None

    def unfinished(self, lost: Moment) -> Unfinished:
        return Unfinished(
            session_id=self.session_id,
            start=self.start,
            next_step=first_missing(self.steps, self.first_step),
            disconnected_at_s=lost.now.timestamp(),
        )


class Recorder:
    """Records every session of a gateway. See the module.

    Args:
        root: the folder of the journals.
        clock: both times of every call.
        ids: of sessions and events.
        files: the disk.
        policy: when an event survives a power cut; `interval` = within 250 ms of being written.
        on_ended: called in the recorder's thread once a session is sealed.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        ids: Ids,
        files: Files | None = None,
        policy: SyncPolicy = SyncPolicy.INTERVAL,
        on_ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Touch nothing yet."""
        self._root = root
        self._clock = clock
        self._ids = ids
        self._sessions: dict[str, _Session] = {}
        place = Place(root=root, ids=ids, files=files or Files(), policy=policy)
        self._queue = RecordQueue(place, on_ended)

    def start(self) -> None:
        """Read what is unfinished on the disk, then start the thread."""
        for found in find_unfinished(self._root):
            self._take_up(found)
        self._queue.start()

    def close(self) -> None:
        """Write what is queued, for ten seconds at most, and stop the thread."""
        self._queue.close()

    def begin(self, start: SessionStart) -> "Recording":
        """Begin a session."""
        return self._spoken_for(self._begun(start))

    def resume(self, unfinished: Unfinished) -> "Recording":
        """Go on with a session, at `unfinished.next_step`.

        One that has ended meanwhile cannot: another one is begun then, which `resumes` it.
        """
        session = self._sessions.get(unfinished.session_id)
        if session is None:
            start = msgspec.structs.replace(unfinished.start, resumes=unfinished.session_id)
            session = self._begun(start)
            session.first_step = unfinished.next_step
        session.lost = None
        self.put(session, session_events.connection("connection_resumed", unfinished.next_step))
        return self._spoken_for(session)

    def unfinished(self, device_id: str) -> Unfinished | None:
        """Return the session that a device may go on with, the one lost last; from memory.

        None without one, or after ten minutes (`docs/rules.md 18`).
        """
        now_s = self._clock.monotonic()
        lost = [
            (session.lost.monotonic_s, session.unfinished(session.lost))
            for session in self._sessions.values()
            if session.lost
            and session.start.device_id == device_id
            and now_s - session.lost.monotonic_s <= RESUMED_WITHIN_S
        ]
        return max(lost, key=lambda each: each[0])[1] if lost else None

    @property
    def practising(self) -> tuple[SessionStart, ...]:
        """How the sessions began that have not ended; from memory."""
        return tuple(session.start for session in self._sessions.values())

    def expire(self) -> None:
        """End the sessions that were lost more than ten minutes ago, each once.

        They end at the time they were lost: nobody practised after it.
        """
        now_s = self._clock.monotonic()
        for session in list(self._sessions.values()):
            if session.lost and now_s - session.lost.monotonic_s > RESUMED_WITHIN_S:
                self.put(session, Ended(EndReason.DISCONNECTED), at=session.lost)
                self.forget(session)

    def put(self, session: _Session, action: Action, at: Moment | None = None) -> None:
        """Have something written that happens now, or happened `at`; for `Recording`."""
        self._queue.put(session.session_id, Entry(at or self.now(), action))

    def forget(self, session: _Session) -> None:
        """Listen to nobody about a session any more; for `Recording`."""
        session.holder = None
        self._sessions.pop(session.session_id, None)

    def now(self) -> Moment:
        """Return the present moment."""
        return Moment.of(self._clock)

    def _begun(self, start: SessionStart) -> _Session:
        session = _Session(self._ids.new(), start)
        self._sessions[session.session_id] = session
        self.put(session, Began(start))
        return session

    def _take_up(self, found: Found) -> None:
        session = _Session(found.session_id, found.start)
        session.first_step, session.steps = found.first_step, set(found.steps)
        lost = session.lost = _moment_at(found.alive_at_s, self.now())
        step = None if found.lost or found.ended else session.unfinished(lost).next_step
        if not found.ended:
            self._sessions[session.session_id] = session
        self.put(session, TakenUp(step), at=lost)

    def _spoken_for(self, session: _Session) -> "Recording":
        session.holder = recording = Recording(self, session)
        return recording


class Recording:
    """One session, as the connection that practises sees it; made by `begin` and `resume`.

    After the session's end, or once another connection has resumed it, calls do nothing.
    """

    def __init__(self, recorder: Recorder, session: _Session) -> None:
        """Use `Recorder.begin` or `Recorder.resume`."""
        self.session_id = session.session_id
        self._recorder = recorder
        self._session = session

    def phase(self, to: str) -> None:
        """Write that the session went to another phase; nothing if it is there already."""
        self._put(PhaseEntered(to))

    def asked(
        self, step_index: int, signal: str, prompt_text: str, expected_text: str | None
    ) -> None:
        """Write that a step begins."""
        self._put(
            session_events.asked(self.session_id, step_index, signal, prompt_text, expected_text)
        )

    def window_closed(self, step_index: int, signal: str, window_ms: int, heard: bool) -> None:  # noqa: FBT001 - a fact of the window, not a switch
        """Write that the clock of a window has ended it."""
        self._put(
            session_events.window_closed(
                self.session_id, step_index, signal, window_ms, heard=heard
            )
        )

    def turn(self, turn: Turn, signal: str) -> None:
        """Write a turn and keep its recording. A step has one turn: a second one is left out."""
        if turn.step_index in self._session.steps:
            _log.warning("a step had two turns", action="recorder.doubled", step=turn.step_index)
        elif self._put(TurnEnded(turn, signal)):
            self._session.steps.add(turn.step_index)

    def positive(self, event_type: str, signal: str, value: Mapping[str, Any]) -> None:
        """Write what went well (`docs/rules.md 21`)."""
        self._put(Observation(event_type=event_type, signal=signal, value=dict(value)))

    def disconnected(self, step_index: int) -> None:
        """Write, once, that the connection was lost; from now on the session is `unfinished`.

        A turn whose recognition is still under way may follow.
        """
        if self._session.lost is None and self._put(
            session_events.connection("connection_lost", step_index)
        ):
            self._session.lost = self._recorder.now()

    def end(self, reason: EndReason) -> None:
        """Write the end, and seal."""
        if self._put(Ended(reason)):
            self._recorder.forget(self._session)

    def _put(self, action: Action) -> bool:
        if self._session.holder is not self:
            _log.info("said after its end", action="recorder.late", session_id=self.session_id)
            return False
        self._recorder.put(self._session, action)
        return True


def _moment_at(wall_s: float, present: Moment) -> Moment:
    """Return a moment of the past, by the wall clock; one in the future counts as now."""
    ago_s = max(0.0, present.now.timestamp() - wall_s)
    return Moment(present.now - timedelta(seconds=ago_s), present.monotonic_s - ago_s)
