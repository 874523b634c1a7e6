"""The journal: every event is on the disk before anything else happens to it.

One folder a session, one writer, one `write` of a whole line and one sync an event
(`docs/edge.md §The journal`). What stands in the folder: `etude.edge.layout`.

    with Journal.open(root, "s-1") as journal:
        journal.append(event)          # returned: it survives a power cut
        journal.seal(clock.now())      # the session is over

A full disk raises `JournalDiskFullError` at once; the event is kept in memory and written, in its
place, by the next `append` or `flush` that finds room. It is never to be appended again.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

import msgspec

from etude.edge import layout
from etude.edge.errors import (
    EventTooLongError,
    JournalClosedError,
    JournalForeignEventError,
    JournalLockedError,
    JournalNotSealedError,
    JournalSealedError,
    disk_error,
)
from etude.edge.interval_sync import IntervalSync
from etude.edge.locks import FolderLock
from etude.edge.reader import JournalFolder
from etude.edge.seal import Seal, measure
from etude.events.model import Event
from etude.events.ndjson import MAX_LINE_BYTES, encode_event
from etude.files import AppendFile, Files, crash_point, replace_file

_BLOCK_BYTES: Final = 1 << 16
_READ_ONLY: Final = 0o400


class SyncPolicy(StrEnum):
    """When an appended event survives a power cut (a killed process never loses one)."""

    ALWAYS = "always"
    """When `append` has returned. The default: a session has 10 to 200 events."""
    INTERVAL = "interval"
    """At most 250 ms after `append` has returned."""
    OS = "os"
    """When the operating system likes, and at the seal."""


class Journal:
    """The writer of one session's journal. Safe to use from several threads."""

    def __init__(
        self,
        session_id: str,
        path: Path,
        *,
        files: Files,
        policy: SyncPolicy,
        lock: FolderLock,
    ) -> None:
        """Use `open` or `open_contests`."""
        self.session_id = session_id
        self.path = path
        self._files = files
        self._policy = policy
        self._lock = lock
        self._guard = threading.RLock()
        self._waiting: deque[bytes] = deque()
        self._cut_to: int | None = None
        self._file: AppendFile | None = _open_mended(files, path)
        self._size = self._file.size()
        self._interval = IntervalSync(self.sync) if policy is SyncPolicy.INTERVAL else None

    @classmethod
    def open(
        cls,
        root: Path,
        session_id: str,
        *,
        files: Files | None = None,
        policy: SyncPolicy = SyncPolicy.ALWAYS,
    ) -> Self:
        """Begin the journal of a session, or go on with it after a crash.

        A half-written tail is moved to `events.torn` and cut off first.

        Raises:
            JournalSealedError: the session is over; see `open_contests`.
            JournalLockedError: another writer has it open.
            SessionIdUnusableError: no folder can have this name.
            JournalDiskFullError, JournalWriteError: the folder cannot be made or mended.
        """
        return cls._open(root, session_id, files or Files(), policy, contests=False)

    @classmethod
    def open_contests(
        cls,
        root: Path,
        session_id: str,
        *,
        files: Files | None = None,
        policy: SyncPolicy = SyncPolicy.ALWAYS,
    ) -> Self:
        """Open the next part behind the seal: `events.2.jsonl`, or one a crash left open.

        Raises:
            JournalNotSealedError: the session is not over; use `open`.
            JournalLockedError, JournalDiskFullError, JournalWriteError: see `open`.
        """
        return cls._open(root, session_id, files or Files(), policy, contests=True)

    @classmethod
    def _open(
        cls, root: Path, session_id: str, files: Files, policy: SyncPolicy, *, contests: bool
    ) -> Self:
        folder = root / layout.folder_name(session_id)
        with contextlib.ExitStack() as undo:
            try:
                _make_durable_folder(files, folder)
                lock = FolderLock(folder, lambda: JournalLockedError(session_id=session_id))
                undo.callback(lock.release)
                number = _part_to_write(folder, session_id, contests=contests)
                _remove_leftovers(files, folder)
                path = folder / layout.part_name(number)
                journal = cls(session_id, path, files=files, policy=policy, lock=lock)
            except OSError as error:
                raise disk_error(error, folder, 0) from error
            undo.pop_all()
        return journal

    @property
    def folder(self) -> Path:
        """The folder of the session."""
        return self.path.parent

    @property
    def waiting(self) -> int:
        """How many events are in memory because the disk would not take them."""
        return len(self._waiting)

    def append(self, event: Event) -> None:
        """Write one event. When this returns, it is as durable as the policy says.

        Raises:
            JournalDiskFullError, JournalWriteError: it waits in memory and keeps its place.
            EventTooLongError, JournalForeignEventError, NotEncodableError: it was refused.
            JournalClosedError: the journal is sealed or closed.
        """
        if event.session_id != self.session_id:
            raise JournalForeignEventError(session_id=self.session_id, event_id=event.event_id)
        line = encode_event(event)
        if len(line) > MAX_LINE_BYTES:
            raise EventTooLongError(event_id=event.event_id, limit_bytes=MAX_LINE_BYTES)
        with self._guard:
            self._open_file()
            self._waiting.append(line + b"\n")
            self._write_waiting()

    def flush(self) -> None:
        """Write what waits in memory and sync, whatever the policy. Raises as `append` does."""
        with self._guard:
            self._write_waiting()
            self.sync()

    def sync(self) -> None:
        """Make everything written so far durable. Raises as `append` does."""
        with self._guard:
            file = self._open_file()
            try:
                file.sync()
            except OSError as error:
                raise disk_error(error, self.path, self.waiting) from error

    def seal(self, at: datetime) -> Seal:
        """End this part: write its seal, make it read-only, close. `at` is aware.

        Raises:
            JournalDiskFullError, JournalWriteError: not sealed; call again when there is room.
        """
        with self._guard:
            self.flush()
            crash_point("edge.journal.before_seal")
            try:
                seal = self._write_seal(at)
            except OSError as error:
                raise disk_error(error, self.path, 0) from error
            self._release()
        return seal

    def close(self) -> None:
        """Write what waits, sync, and let go of the file; the session may go on another time.

        Raises:
            JournalDiskFullError, JournalWriteError: the journal is closed all the same, and
                `unwritten` holds the lines that the disk would not take.
        """
        with self._guard:
            if self._file is None:
                return
            try:
                self.flush()
            finally:
                self._release()

    @property
    def unwritten(self) -> Sequence[bytes]:
        """The lines that wait in memory, oldest first, each with its line end."""
        return tuple(self._waiting)

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def _open_file(self) -> AppendFile:
        if self._file is None:
            raise JournalClosedError(path=str(self.path))
        return self._file

    def _write_waiting(self) -> None:
        file = self._open_file()
        while self._waiting:
            try:
                self._write_line(file, self._waiting[0])
            except OSError as error:
                self._cut_back(file)
                raise disk_error(error, self.path, self.waiting) from error
            self._size += len(self._waiting.popleft())
            crash_point("edge.journal.appended")

    def _write_line(self, file: AppendFile, line: bytes) -> None:
        if self._cut_to is not None:
            file.truncate(self._cut_to)
            self._cut_to = None
        taken = file.write(line)
        if taken < len(line):
            file.write_all(line[taken:])
        crash_point("edge.journal.written")
        if self._policy is SyncPolicy.ALWAYS:
            file.sync()
        elif self._interval is not None:
            self._interval.wanted()

    def _cut_back(self, file: AppendFile) -> None:
        """Take a half-written line off again: what is written next may not stick to it."""
        try:
            file.truncate(self._size)
        except OSError:
            self._cut_to = self._size  # tried again before the next line

    def _write_seal(self, at: datetime) -> Seal:
        with self.path.open("rb") as content:
            seal = measure(content, at)
        replace_file(self._files, layout.seal_of(self.path), msgspec.json.encode(seal))
        crash_point("edge.journal.sealed")
        self._files.set_mode(self.path, _READ_ONLY)
        return seal

    def _release(self) -> None:
        if self._interval is not None:
            self._interval.stop()
        if self._file is not None:
            self._file.close()
            self._file = None
            self._lock.release()


def _make_durable_folder(files: Files, folder: Path) -> None:
    """Make the folder and sync its entry, also where a killed process had made it already."""
    files.make_folder(folder)
    with contextlib.suppress(PermissionError):  # a sandbox may hide what is above the root
        files.sync_folder(folder.parent.parent)
    files.sync_folder(folder.parent)
    crash_point("edge.journal.folder_made")


def _part_to_write(folder: Path, session_id: str, *, contests: bool) -> int:
    journal = JournalFolder(folder)
    first_open = 1
    while journal.seal(first_open):
        first_open += 1
    if contests and first_open == 1:
        raise JournalNotSealedError(session_id=session_id)
    if not contests and first_open > 1:
        raise JournalSealedError(session_id=session_id)
    return first_open


def _remove_leftovers(files: Files, folder: Path) -> None:
    """Remove temporary files of a writer that died; the lock says that none is at work.

    The outbox's own (`.state.json.*`) are not under this lock and stay.
    """
    for leftover in folder.glob(".events*.tmp"):
        files.remove(leftover)


def _open_mended(files: Files, path: Path) -> AppendFile:
    """Open a part, cut off a torn tail, and make what is left durable before it is built upon."""
    file = files.open_append(path)
    try:
        whole = _whole_lines(path, file.size())
        if whole < file.size():
            _move_tail(files, path, whole)
            file.truncate(whole)
        file.sync()
        files.sync_folder(path.parent)
        crash_point("edge.journal.opened")
    except BaseException:
        file.close()
        raise
    return file


def _whole_lines(path: Path, size: int) -> int:
    """Return the length of `path` up to its last line end, read from the back in blocks."""
    with path.open("rb") as content:
        end = size
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            content.seek(start)
            found = content.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


def _move_tail(files: Files, path: Path, whole: int) -> None:
    """Keep the tail in `events.torn`, each on a line of its own; after a crash perhaps twice."""
    torn = files.open_append(path.with_name(layout.TORN))
    try:
        with path.open("rb") as content:
            content.seek(whole)
            if torn.size():
                torn.write_all(b"\n")
            while block := content.read(_BLOCK_BYTES):
                torn.write_all(block)
        torn.sync()
        files.sync_folder(path.parent)
        crash_point("edge.journal.tail_moved")
    finally:
        torn.close()


__all__ = ["Journal", "SyncPolicy"]
