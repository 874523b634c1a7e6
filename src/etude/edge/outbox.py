"""The outbox: every journal below a root reaches the server, each event once.

    with HttpClient("https://practice.example", bearer=token) as client:
        with Outbox(root, client, clock=SystemClock()) as outbox:
            outbox.run(stop)               # or run_due() from a loop of one's own

When it tries again: `docs/edge.md §The outbox`. A host calls `trigger` when a session has ended and
when the network is back; every five minutes it looks by itself. One outbox a root at a time;
journals may be written meanwhile.
"""

import random
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Self

from etude.clock import Clock
from etude.edge import schedule
from etude.edge.errors import (
    AnswerInvalidError,
    JournalUnreadableError,
    OutboxLockedError,
    disk_error,
)
from etude.edge.locks import FolderLock
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder, journal_folders
from etude.edge.upload_state import (
    Problem,
    UploadState,
    UploadStatus,
    load_state,
    save_state,
)
from etude.edge.uploader import SessionRefusedError, TryLaterError, Uploader
from etude.errors import EtudeError
from etude.files import Files
from etude.net import HttpClient

_LONGEST_PAUSE_S: Final = schedule.EVERY_S


class Outbox:
    """Uploads the journals below `root`. See the module.

    Args:
        root: the folder of the journals.
        client: the server, with the token of the device or learner.
        clock: wall-clock times of the schedule.
        files: the disk.
        chance: jitter, from 0 to 1.
        only: name of the one session folder to keep to; None = all.

    Raises:
        OutboxLockedError: another outbox is at work on the root.
        JournalWriteError, JournalDiskFullError: there is no such root and it cannot be made.
    """

    def __init__(
        self,
        root: Path,
        client: HttpClient,
        *,
        clock: Clock,
        files: Files | None = None,
        chance: Callable[[], float] = random.random,
        only: str | None = None,
    ) -> None:
        """Take the root; nothing is sent yet."""
        self._root = root
        self._client = client
        self._clock = clock
        self._files = files or Files()
        self._chance = chance
        self._only = only
        self._states: dict[str, UploadState] = {}
        self._wake = threading.Event()
        self._report: Callable[[UploadState], None] | None = None
        try:
            self._files.make_folder(root)
            self._lock = FolderLock(root, lambda: OutboxLockedError(path=str(root)))
        except OSError as error:
            raise disk_error(error, root, 0) from error
        self._remove_leftovers()

    def trigger(self) -> None:
        """Begin a new round now: a session has ended, or the network is back.

        May be called from any thread. Sessions that the server refused or erased stay at rest, and
        a `Retry-After` is kept to.
        """
        self._wake.set()

    def release(self, session_id: str | None = None) -> None:
        """Try refused sessions again, one or all: a person has seen to the token or the server."""
        for folder, state in self._known():
            if state.status is UploadStatus.REFUSED and session_id in {None, state.session_id}:
                fresh = state.but(
                    status=UploadStatus.WAITING, attempts=0, next_try_at=None, problem=None
                )
                self._store(folder, fresh)

    def states(self) -> list[UploadState]:
        """Return where the upload of every session stands."""
        return [state for _, state in self._known()]

    def run_due(self, report: Callable[[UploadState], None] | None = None) -> list[UploadState]:
        """Try every session that is due, once each, and return the states of those.

        No failure of one session keeps another from being tried. `report` is told each state as it
        is reached: after every acknowledgement, and at the end of every try.
        """
        self._report = report
        if self._wake.is_set():
            self._wake.clear()
            for folder, state in self._known():
                self._states[folder.path.name] = schedule.triggered(state)
        return [
            self._try(folder, state)
            for folder, state in self._known()
            if self._due_in_s(folder, state) == 0
        ]

    def next_wait_s(self) -> float:
        """Return in how many seconds `run_due` has something to do; at most five minutes."""
        waits = (self._due_in_s(folder, state) for folder, state in self._known())
        return min((wait for wait in waits if wait is not None), default=_LONGEST_PAUSE_S)

    def run(self, stop: threading.Event) -> None:
        """Upload until `stop` is set; to be woken by `trigger` after setting it."""
        while not stop.is_set():
            self.run_due()
            self._wake.wait(min(self.next_wait_s(), _LONGEST_PAUSE_S))

    def close(self) -> None:
        """Let another outbox work on the root."""
        self._lock.release()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def _known(self) -> list[tuple[JournalFolder, UploadState]]:
        found = ((folder, self._state(folder)) for folder in journal_folders(self._root))
        return [(folder, state) for folder, state in found if state]

    def _state(self, folder: JournalFolder) -> UploadState | None:
        name = folder.path.name
        if self._only not in {None, name}:
            return None
        if name not in self._states:
            session_id = _session_id(folder)
            if session_id is None:
                return None
            self._states[name] = self._first_seen(folder, load_state(folder.path, session_id))
        return self._states[name]

    def _first_seen(self, folder: JournalFolder, state: UploadState) -> UploadState:
        """Give a session that is still being written five minutes before it is sent in part.

        One whose outbox was killed between the last acknowledgement and its own last word is done.
        """
        try:
            if state.status is not UploadStatus.ERASED and _is_done(folder, state):
                return schedule.after_success(state, self._clock.now(), done=True)
            sealed = folder.sealed()
        except JournalUnreadableError:
            return state  # the first try shows it
        fresh = state.scheduled_at is None and state.status is UploadStatus.WAITING
        if not fresh or sealed:
            return state
        now = self._clock.now()
        later = now + timedelta(seconds=schedule.EVERY_S)
        return state.but(next_try_at=later, scheduled_at=now)

    def _due_in_s(self, folder: JournalFolder, state: UploadState) -> float | None:
        try:
            if not _has_unsent(folder, state):
                return None
        except JournalUnreadableError:
            pass  # what stands in the lines is sent all the same, and the try shows the damage
        return schedule.due_in_s(state, self._clock.now())

    def _try(self, folder: JournalFolder, state: UploadState) -> UploadState:
        uploader = Uploader(
            self._client,
            folder,
            state,
            save=partial(self._store, folder),
            clock=self._clock,
        )
        try:
            uploader.run()
            after = schedule.after_success(
                uploader.state, self._clock.now(), done=_is_done(folder, uploader.state)
            )
        except SessionRefusedError as refused:
            status = UploadStatus.ERASED if refused.erased else UploadStatus.REFUSED
            after = uploader.state.but(status=status, problem=refused.problem, next_try_at=None)
        except TryLaterError as failed:
            after = self._failed(uploader.state, failed.problem, failed.retry_after_s)
        except AnswerInvalidError as failed:
            reason = str(failed.params.get("reason", ""))
            after = self._failed(uploader.state, Problem(code=failed.code, message=reason))
        except EtudeError as failed:
            after = self._failed(uploader.state, Problem(code=failed.code, message=str(failed)))
        self._store(folder, after)
        return after

    def _failed(
        self, state: UploadState, problem: Problem, retry_after_s: float | None = None
    ) -> UploadState:
        return schedule.after_failure(
            state,
            self._clock.now(),
            problem,
            chance=self._chance(),
            retry_after_s=retry_after_s,
        )

    def _store(self, folder: JournalFolder, state: UploadState) -> None:
        """Keep a state; on a full disk it lives on in memory, and costs duplicates at worst."""
        self._states[folder.path.name] = state
        try:
            save_state(self._files, folder.path, state)
        except EtudeError as error:
            problem = state.problem or Problem(code=error.code, message=str(error))
            self._states[folder.path.name] = state.but(problem=problem)
        if self._report:
            self._report(self._states[folder.path.name])

    def _remove_leftovers(self) -> None:
        """Remove temporary states of an outbox that was killed; the lock says none is at work."""
        for leftover in self._root.glob("*/.state.json.*.tmp"):
            self._files.remove(leftover)


def _session_id(folder: JournalFolder) -> str | None:
    try:
        return folder.session_id()
    except EtudeError:
        return None


def _has_unsent(folder: JournalFolder, state: UploadState) -> bool:
    end, done = folder.end(), state.acknowledged
    if (done.part, done.offset) < (end.part, end.offset):
        return True
    settled = state.settled_media()
    return any(sha256 not in settled for sha256, _, _ in recordings(folder.path))


def _is_done(folder: JournalFolder, state: UploadState) -> bool:
    return folder.sealed() and not _has_unsent(folder, state)
