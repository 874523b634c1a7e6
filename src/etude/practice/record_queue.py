"""The recorder's thread: what happened waits here until the disk has taken it.

`put` never waits for the disk. Each session has its own line, in order; one whose disk fails is
tried again later and holds up no other. Sound waits within a bound, text without one: a turn's text
is a few hundred bytes, and losing it would lose the turn.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import structlog

from etude.edge.errors import JournalWaitingError
from etude.edge.interval_sync import INTERVAL_S
from etude.edge.journal import SyncPolicy
from etude.errors import EtudeError
from etude.files import crash_point
from etude.practice.session_record import (
    QUEUE_FULL,
    Ended,
    Entry,
    Place,
    SessionRecord,
    TurnEnded,
)

AUDIO_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""So much sound may wait for the disk; then the oldest is dropped."""
CLOSE_TIMEOUT_S: Final = 10.0
_PACKET_OVERHEAD_BYTES: Final = 64  # what an object in memory needs beside its content
_AT_ONCE: Final = 16  # entries of one session, before another one's turn
_FIRST_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 30.0

_log = structlog.get_logger("etude.recorder")
_Result = TypeVar("_Result")


class _Waiting:
    """An entry in a line, and how much memory its sound takes."""

    __slots__ = ("audio_bytes", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        packets = entry.action.turn.packets if isinstance(entry.action, TurnEnded) else ()
        self.audio_bytes = sum(len(one) + _PACKET_OVERHEAD_BYTES for one in packets)

    def drop_audio(self) -> None:
        action = self.entry.action
        if isinstance(action, TurnEnded):
            turn = msgspec.structs.replace(action.turn, packets=())
            action = TurnEnded(turn, action.signal, QUEUE_FULL)
            self.entry = Entry(self.entry.moment, action)
        self.audio_bytes = 0


class _Line:
    """One session: its journal, and what it has not taken yet."""

    __slots__ = ("entries", "given_up", "record", "retry_at_s", "retry_s")

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.entries: deque[_Waiting] = deque()
        self.given_up = False
        self.retry_at_s = 0.0
        self.retry_s = _FIRST_RETRY_S

    @property
    def over(self) -> bool:
        return self.given_up or (self.record.ended and self.record.settled and not self.entries)


class RecordQueue:
    """See the module.

    Args:
        place: where sessions are kept. Under the policy `interval` this thread syncs for all of
            them, where each journal by itself would need a thread of its own.
        on_ended: called in this thread with the id of a session that has been sealed.
        audio_limit_bytes: how much sound may wait.
        time_s: the disk's time, which is real also where the practice's runs faster.
    """

    def __init__(
        self,
        place: Place,
        on_ended: Callable[[str], None],
        *,
        audio_limit_bytes: int = AUDIO_LIMIT_BYTES,
        time_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start nothing yet."""
        self._syncs = place.policy is SyncPolicy.INTERVAL
        policy = SyncPolicy.OS if self._syncs else place.policy
        self._place = msgspec.structs.replace(place, policy=policy)
        self._on_ended = on_ended
        self._audio_limit_bytes = audio_limit_bytes
        self._time_s = time_s
        self._changed = threading.Condition()  # never held while the disk is at work
        self._lines: dict[str, _Line] = {}
        self._ready: dict[str, _Line] = {}
        self._stalled: dict[str, _Line] = {}
        self._sounding: dict[_Waiting, None] = {}
        self._audio_bytes = 0
        self._unsynced: dict[str, SessionRecord] = {}
        self._sync_at_s: float | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, session_id: str, entry: Entry) -> None:
        """Have an entry written behind all others of its session. Returns at once, never fails."""
        waiting = _Waiting(entry)
        with self._changed:
            line = self._lines.get(session_id)
            if line is None:
                line = self._lines[session_id] = _Line(SessionRecord(self._place, session_id))
            line.entries.append(waiting)
            if waiting.audio_bytes:
                self._sounding[waiting] = None
                self._audio_bytes += waiting.audio_bytes
                self._keep_within_limit()
            if session_id not in self._stalled:
                self._ready[session_id] = line
            self._changed.notify()

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Write what waits, for `timeout_s` at most, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            _log.error("the disk did not answer before the end", action="recorder.stuck")

    def drain(self) -> None:
        """Write whatever can be written now; what the thread does again and again."""
        while (line := self._next_line()) is not None:
            self._work(line)
            self._sync_if_due()
        self._sync_if_due()

    def _run(self) -> None:
        while not self._at_end():
            self.drain()
        for line in list(self._lines.values()):
            self._finish(line)

    def _at_end(self) -> bool:
        """Wait until there is something to do; say whether that is to end."""
        with self._changed:
            if not self._ready and not self._closing:
                self._changed.wait(self._pause_s())
            return self._closing and not self._ready

    def _pause_s(self) -> float | None:
        due = [line.retry_at_s for line in self._stalled.values()]
        if self._sync_at_s is not None:
            due.append(self._sync_at_s)
        return max(0.0, min(due) - self._time_s()) if due else None

    def _next_line(self) -> _Line | None:
        now_s = self._time_s()
        with self._changed:
            for session_id, line in list(self._stalled.items()):
                if line.retry_at_s <= now_s:
                    self._ready[session_id] = self._stalled.pop(session_id)
            first = next(iter(self._ready), None)
            return None if first is None else self._ready.pop(first)

    def _work(self, line: _Line) -> None:
        if not line.record.settled:
            self._guarded(line, line.record.settle)
        for _ in range(_AT_ONCE):
            if not line.record.settled or not self._take_first(line):
                break
        self._after_work(line)

    def _take_first(self, line: _Line) -> bool:
        """Write the first entry of a line; False if there is none, or if it has to come again."""
        with self._changed:
            if not line.entries:
                return False
            first = line.entries[0]
            self._sounding.pop(first, None)  # in work: dropping its sound now would free nothing
        taken = self._guarded(line, lambda: line.record.take(first.entry))
        with self._changed:
            if taken is False:
                if first.audio_bytes:
                    self._sounding = {first: None, **self._sounding}
                return False
            line.entries.popleft()
            self._audio_bytes -= first.audio_bytes
        line.given_up = taken is None and isinstance(first.entry.action, Ended)
        if self._syncs and not line.given_up:
            self._unsynced[line.record.session_id] = line.record
            if self._sync_at_s is None:
                self._sync_at_s = self._time_s() + INTERVAL_S
        return True

    def _after_work(self, line: _Line) -> None:
        session_id = line.record.session_id
        with self._changed:
            if line.over:
                del self._lines[session_id]
                self._ready.pop(session_id, None)
                self._unsynced.pop(session_id, None)
            elif not line.record.settled:
                self._ready.pop(session_id, None)
                self._stalled[session_id] = line
                line.retry_at_s = self._time_s() + line.retry_s
                line.retry_s = min(2 * line.retry_s, _LONGEST_RETRY_S)
            else:
                line.retry_s = _FIRST_RETRY_S
                if line.entries:
                    self._ready[session_id] = line
        if line.given_up:
            self._guarded(line, line.record.close)
        elif line.over:
            crash_point("practice.recorder.ended")
            self._tell_ended(session_id)

    def _tell_ended(self, session_id: str) -> None:
        try:
            self._on_ended(session_id)
        except Exception:  # noqa: BLE001 - whoever is told is no part of this thread
            _log.exception("nobody was told", action="recorder.on_ended", session_id=session_id)

    def _sync_if_due(self) -> None:
        if self._sync_at_s is None or self._time_s() < self._sync_at_s:
            return
        unsynced, self._unsynced, self._sync_at_s = self._unsynced, {}, None
        for session_id, record in unsynced.items():
            try:
                record.sync()
            except JournalWaitingError:
                self._unsynced[session_id] = record
                self._sync_at_s = self._time_s() + INTERVAL_S

    def _finish(self, line: _Line) -> None:
        """At the end of the process: try once more, then let go."""
        self._work(line)
        if line.over:
            return
        unwritten = self._guarded(line, line.record.close) or 0
        if unwritten or line.entries:
            _log.error(
                "a session ends with the disk full",
                action="recorder.lost",
                session_id=line.record.session_id,
                events=unwritten + len(line.entries),
            )

    def _keep_within_limit(self) -> None:
        while self._audio_bytes > self._audio_limit_bytes and self._sounding:
            oldest = next(iter(self._sounding))
            del self._sounding[oldest]
            self._audio_bytes -= oldest.audio_bytes
            oldest.drop_audio()
            _log.warning("a recording was dropped, the disk is too slow", action="recorder.dropped")

    def _guarded(self, line: _Line, write: Callable[[], _Result]) -> _Result | None:
        """Write; a failure that no repetition can mend is logged and costs this entry alone."""
        try:
            return write()
        except EtudeError as error:
            code = error.code
        except Exception as error:  # noqa: BLE001 - the one thread of all sessions must go on
            code = type(error).__name__
        _log.error(
            "an event could not be written",
            action="recorder.refused",
            session_id=line.record.session_id,
            error_code=code,
        )
        return None
