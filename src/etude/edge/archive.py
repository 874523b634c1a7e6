"""Old journals: packed after 30 days, deleted only once the cloud has every event of them.

archive = Archive(root, clock=SystemClock())
archive.pack_old()      # events.jsonl → events.jsonl.gz
archive.delete_old()    # sessions of which everything is acknowledged
"""

import gzip
import io
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from etude.clock import Clock
from etude.edge import layout
from etude.edge.errors import (
    JournalLockedError,
    JournalUnreadableError,
    SealBrokenError,
    disk_error,
)
from etude.edge.locks import FolderLock
from etude.edge.media import recordings
from etude.edge.reader import JournalFolder, journal_folders, open_part
from etude.edge.seal import Seal
from etude.edge.upload_state import load_state
from etude.files import AppendFile, Files, crash_point

KEPT_DAYS: Final = 30
_BLOCK_BYTES: Final = 1 << 16
_DELETED: Final = ".deleted-"  # no session's folder begins with a dot


class Archive:
    """Keeps the journals below `root` from growing without end.

    A session that is still open, that another process writes, or whose seal is broken, is left as
    it is.
    """

    def __init__(
        self, root: Path, *, clock: Clock, files: Files | None = None, kept_days: int = KEPT_DAYS
    ) -> None:
        """Touch nothing yet; `kept_days` is how long a sealed journal stays as it is."""
        self._root = root
        self._clock = clock
        self._files = files or Files()
        self._kept = timedelta(days=kept_days)

    def pack_old(self) -> list[Path]:
        """Compress every old part; return the files made.

        The original goes only after the packed one is durable and unpacks to what the seal says.

        Raises:
            JournalDiskFullError, JournalWriteError: it stopped there; nothing is lost.
        """
        made: list[Path] = []
        for folder in journal_folders(self._root):
            for part, seal in self._old_parts(folder):
                made += self._pack(part, seal) if part.suffix != layout.COMPRESSED else []
        return made

    def delete_old(self) -> list[str]:
        """Remove old sessions of which everything is acknowledged; return their ids.

        One with a line or recording that the server refused is not among them.
        """
        for leftover in self._root.glob(f"{_DELETED}*"):
            self._files.remove_tree(leftover)
        found = (self._delete(folder) for folder in journal_folders(self._root))
        return [session_id for session_id in found if session_id]

    def _old_parts(self, folder: JournalFolder) -> Iterator[tuple[Path, Seal]]:
        for number, part in folder.parts():
            seal = _readable_seal(folder, number)
            if seal and self._clock.now() - seal.sealed_at >= self._kept:
                yield part, seal

    def _may_go(self, folder: JournalFolder) -> str | None:
        """Return the session's id if the session may go."""
        parts = len(list(folder.parts()))
        if len(list(self._old_parts(folder))) < parts:
            return None
        session_id = folder.session_id()
        if session_id is None:
            return None
        state = load_state(folder.path, session_id)
        end, done = folder.end(), state.acknowledged
        events = (done.part, done.offset) >= (end.part, end.offset)
        sent = all(sha256 in state.media for sha256, _, _ in recordings(folder.path))
        return session_id if events and sent and not state.refused_count else None

    def _pack(self, part: Path, seal: Seal) -> list[Path]:
        packed = part.with_name(part.name + layout.COMPRESSED)
        try:
            with FolderLock(part.parent, JournalLockedError):
                self._write_packed(part, packed, seal)
                self._files.remove(part)
                self._files.sync_folder(part.parent)
        except (JournalLockedError, SealBrokenError):
            return []
        except OSError as error:
            raise disk_error(error, packed, 0) from error
        return [packed]

    def _write_packed(self, part: Path, packed: Path, seal: Seal) -> None:
        temporary = part.with_name(f".{part.name}.tmp{layout.COMPRESSED}")
        self._files.remove(temporary)
        file = self._files.open_append(temporary)
        try:
            sink = gzip.GzipFile(fileobj=_Sink(file), mode="wb", mtime=0)
            with part.open("rb") as content, sink:
                shutil.copyfileobj(content, sink, _BLOCK_BYTES)
            file.sync()
        finally:
            file.close()
        with open_part(temporary) as unpacked:
            seal.check(unpacked, part.name)
        crash_point("edge.archive.packed")
        self._files.rename(temporary, packed)
        self._files.sync_folder(packed.parent)
        crash_point("edge.archive.renamed")

    def _delete(self, folder: JournalFolder) -> str | None:
        """Take the folder out of sight in one step, then remove it; a crash leaves it hidden.

        Looks before it locks, so that it is in nobody's way, and again behind the lock, because a
        contest may have been written in between.
        """
        hidden = folder.path.with_name(f"{_DELETED}{folder.path.name}")
        try:
            if self._may_go(folder) is None:
                return None
            with FolderLock(folder.path, JournalLockedError):
                session_id = self._may_go(folder)
                if session_id is None:
                    return None
                self._files.rename(folder.path, hidden)
                self._files.sync_folder(self._root)
                crash_point("edge.archive.hidden")
            self._files.remove_tree(hidden)
        except (JournalLockedError, JournalUnreadableError):
            return None
        except OSError as error:
            raise disk_error(error, folder.path, 0) from error
        return session_id


def _readable_seal(folder: JournalFolder, number: int) -> Seal | None:
    """Return a seal, None for one that is broken too: what it belongs to is left as it is."""
    try:
        return folder.seal(number)
    except JournalUnreadableError:
        return None


class _Sink(io.RawIOBase):
    """An append file as something that gzip can write to."""

    def __init__(self, file: AppendFile) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # gzip hands over bytes alone
        self._file.write_all(data)
        return len(data)
