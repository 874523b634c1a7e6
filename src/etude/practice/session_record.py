"""One session's side of the disk: takes what happened, at the time it happened (`recorder`)."""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from etude.clock import Clock, Ids
from etude.edge.errors import (
    JournalLockedError,
    JournalWaitingError,
    MediaTooLargeError,
)
from etude.edge.journal import Journal, SyncPolicy
from etude.edge.media import keep_recording
from etude.edge.session_moves import State
from etude.edge.session_writer import Observation, SessionWriter
from etude.files import Files
from etude.practice import recordings, session_events
from etude.practice.records import EndReason, SessionStart, Turn
from etude.practice.session_events import Kept

UNUSABLE: Final = "unusable"
"""Why a turn has no recording: not one packet was Opus."""
TOO_LARGE: Final = "too_large"
"""Why a turn has no recording: longer than any upload may be."""
QUEUE_FULL: Final = "queue_full"
"""Why a turn has no recording: the disk was too slow, and memory is bounded."""


class Moment(msgspec.Struct, frozen=True):
    """When something happened, on both clocks."""

    now: datetime
    monotonic_s: float

    @classmethod
    def of(cls, clock: Clock) -> "Moment":
        """Return the present moment of a clock."""
        return cls(clock.now(), clock.monotonic())


class Began(msgspec.Struct, frozen=True):
    """The session began."""

    start: SessionStart


class TakenUp(msgspec.Struct, frozen=True):
    """The session was found without an end; `lost_at` is the step, None if that is written."""

    lost_at: int | None


class PhaseEntered(msgspec.Struct, frozen=True):
    """The session went to another phase."""

    to: str


class TurnEnded(msgspec.Struct, frozen=True):
    """A turn is over; `lost` says why its recording is not there any more."""

    turn: Turn
    signal: str
    lost: str | None = None


class Ended(msgspec.Struct, frozen=True):
    """The session ended."""

    reason: EndReason


Action = Began | TakenUp | PhaseEntered | Observation | TurnEnded | Ended


class Entry(msgspec.Struct, frozen=True):
    """Something that happened in a session."""

    moment: Moment
    action: Action


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how sessions are kept."""

    root: Path
    ids: Ids
    files: Files
    policy: SyncPolicy


class SessionRecord:
    """Writes one session into its journal. One thread.

    Attributes:
        settled: whether everything taken is in the journal's file, and an ended one sealed.
    """

    def __init__(self, place: Place, session_id: str) -> None:
        """Touch nothing yet; the first entry opens the journal."""
        self.session_id = session_id
        self.settled = True
        self._place = place
        self._clock = _SetClock()
        self._writer: SessionWriter | None = None
        self._journal: Journal | None = None

    @property
    def ended(self) -> bool:
        """Whether its end is written."""
        return self._writer is not None and self._writer.state is State.ENDED

    def take(self, entry: Entry) -> bool:
        """Write an entry; False if the disk would not have it and it has to come again.

        Raises:
            EtudeError: it can never be written.
        """
        self._clock.moment = entry.moment
        writer = self._writer
        before = writer.last_event if writer else None
        try:
            writer = writer or self._open()
            self._write(writer, entry.action)
        except (JournalWaitingError, JournalLockedError):  # locked: by a process that is ending
            self.settled = False
            # An event that waits in memory keeps its place: written twice, it would be doubled.
            return writer is not None and writer.last_event is not before
        return True

    def settle(self) -> None:
        """Write what waits in memory, seal an ended session; look at `settled` afterwards."""
        try:
            if self._writer:
                self._writer.flush()
        except JournalWaitingError:
            self.settled = False
        else:
            self.settled = True

    def sync(self) -> None:
        """Make what is written durable.

        Raises:
            JournalWaitingError: the disk failed.
        """
        if self._journal and not (self.ended and self.settled):
            self._journal.sync()

    def close(self) -> int:
        """Let go of the journal; return how many events could not be written."""
        if self._journal is None:
            return 0
        try:
            self._journal.close()
        except JournalWaitingError:
            return len(self._journal.unwritten)
        return 0

    def _open(self) -> SessionWriter:
        place = self._place
        journal = Journal.open(place.root, self.session_id, files=place.files, policy=place.policy)
        writer = SessionWriter.open(journal, clock=self._clock, ids=place.ids)
        self._journal, self._writer = journal, writer
        return writer

    def _write(self, writer: SessionWriter, action: Action) -> None:
        match action:
            case Began():
                writer.begin(
                    session_events.start_value(action.start),
                    session_events.start_meta(action.start),
                )
            case TakenUp(lost_at):
                if lost_at is not None and not self.ended:
                    writer.observe(session_events.connection("connection_lost", lost_at))
            case PhaseEntered(to):
                _enter(writer, to)
            case Observation():
                writer.observe(action)
            case TurnEnded():
                self._write_turn(writer, action)
            case Ended(reason):
                writer.end(session_events.end_value(reason))

    def _write_turn(self, writer: SessionWriter, ended: TurnEnded) -> None:
        kept, lost = None, ended.lost
        if ended.turn.packets:
            kept, lost = self._keep(writer, ended.turn)
        writer.observe(
            session_events.turn_seen(self.session_id, ended.turn, ended.signal, kept, lost)
        )

    def _keep(self, writer: SessionWriter, turn: Turn) -> tuple[Kept | None, str | None]:
        recording = recordings.record(turn.packets)
        if recording is None:
            return None, UNUSABLE
        try:
            sha256 = keep_recording(
                writer.folder, recording.data, recordings.CONTENT_TYPE, self._place.files
            )
        except MediaTooLargeError:
            return None, TOO_LARGE
        return Kept(sha256=sha256, duration_ms=recording.duration_ms), None


class _SetClock:
    """The clock of whatever is being written: it stands at the moment when that happened."""

    moment: Moment

    def now(self) -> datetime:
        return self.moment.now

    def monotonic(self) -> float:
        return self.moment.monotonic_s


def _enter(writer: SessionWriter, to: str) -> None:
    """Go to a phase. After a resume the session may be there already, which is no mistake."""
    if writer.phase != to:
        writer.transition(to, source="ai_detected")
