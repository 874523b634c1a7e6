"""A learner disagrees with a session that is over (`docs/rules.md 9`)."""

from pathlib import Path

from etude.clock import Clock, Ids
from etude.edge import layout
from etude.edge.errors import EventUnknownError
from etude.edge.journal import Journal
from etude.edge.reader import JournalFolder
from etude.edge.session_moves import fold
from etude.edge.session_writer import contest_of
from etude.events.model import Event
from etude.files import Files


class Contests:
    """Writes contests behind the seal of a session's journal, into a part of their own.

    Each takes `ts` and `phase` from the event it is about; `seq` goes on where the session ended.

    Args:
        root: the folder of the journals.
        session_id: a session whose journal is sealed.
    """

    def __init__(
        self, root: Path, session_id: str, *, clock: Clock, ids: Ids, files: Files | None = None
    ) -> None:
        """Keep what is needed; nothing is opened before `write`."""
        self._root = root
        self._session_id = session_id
        self._clock = clock
        self._ids = ids
        self._files = files

    def write(self, event_id: str, comment: str | None = None) -> Event:
        """Write one contest of the event `event_id` and seal its part.

        Raises:
            JournalNotSealedError: the session is not over.
            EventUnknownError: the session has no such event.
            JournalLockedError, JournalDiskFullError, JournalWriteError: see `Journal`.
        """
        folder = JournalFolder(self._root / layout.folder_name(self._session_id))
        with Journal.open_contests(self._root, self._session_id, files=self._files) as journal:
            about = next((each for each in folder.events() if each.event_id == event_id), None)
            if about is None:
                raise EventUnknownError(session_id=self._session_id, event_id=event_id)
            seq = fold(folder.events()).last_seq + 1
            contest = self._mint(about, comment, seq)
            journal.append(contest)
            journal.seal(self._clock.now())
        return contest

    def _mint(self, about: Event, comment: str | None, seq: int) -> Event:
        wanted = contest_of(about, comment)
        return Event(
            event_id=self._ids.new(),
            session_id=self._session_id,
            ts=about.ts,
            event_type=wanted.event_type,
            phase=about.phase,
            signal=wanted.signal,
            value=wanted.value,
            confidence=wanted.confidence,
            cloud_review_available=wanted.cloud_review_available,
            journey_id=about.journey_id,
            correlation_id=wanted.correlation_id,
            seq=seq,
        )
