"""The files behind blobs: one that is coming in, and one that is read."""

import asyncio
import contextlib
import errno
import hashlib
import os
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from etude.files import AppendFile, Files, crash_point
from etude.store.errors import BlobMissing, DiskFull, StoreUnavailable

CHUNK_BYTES: Final = 256 * 1024
_INCOMING: Final = "incoming"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextlib.contextmanager
def mapped_os_errors() -> Iterator[None]:
    """Raise what the system says about our files as errors of the store."""
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "EIO")
        failure = DiskFull if error.errno in _FULL else StoreUnavailable
        raise failure(reason=name) from error


class IncomingFile:
    """Bytes on their way in: a file without its final name, which exists only once it is whole."""

    def __init__(self, files: Files, folder: Path) -> None:
        """Wait in the waiting room of the blobs in `folder`; the first `write` makes the file."""
        self._files = files
        self._path = folder / _INCOMING / uuid.uuid4().hex
        self._file: AppendFile | None = None
        self._digest = hashlib.sha256()
        # A cancelled upload discards the file while a thread may still be about to write to it.
        self._lock = threading.Lock()
        self._discarded = False
        self.size = 0

    @staticmethod
    def left_over(folder: Path) -> list[Path]:
        """Return the files in the waiting room: of uploads that run, or were killed."""
        return list((folder / _INCOMING).glob("*"))

    def write(self, chunk: bytes) -> None:
        """Append `chunk`."""
        with self._lock, mapped_os_errors():
            if self._discarded:
                return
            self._digest.update(chunk)
            self.size += len(chunk)
            file, view = self._opened(), memoryview(chunk)
            while view:
                view = view[file.write(bytes(view)) :]

    def sha256(self) -> str:
        """Digest of what was written so far."""
        return self._digest.hexdigest()

    def publish(self, path: Path) -> None:
        """Make the bytes durable under their final name; bytes that are there and whole stay."""
        with self._lock, mapped_os_errors():
            if self._discarded:
                return
            self._opened().sync()
            crash_point("store.blob.written")
            self._files.make_folder(path.parent)
            self._link(path)
            crash_point("store.blob.linked")
            # Also if somebody else linked it: they may not have come to this line yet.
            self._files.sync_folder(path.parent)
            crash_point("store.blob.durable")

    def discard(self) -> None:
        """Close and remove the waiting file; a published one keeps its final name."""
        with self._lock:
            self._discarded = True
            if self._file is not None:
                self._file.close()
                with contextlib.suppress(OSError):  # the sweeper's work then
                    self._files.remove(self._path)

    def _opened(self) -> AppendFile:
        if self._file is None:
            self._files.make_folder(self._path.parent)
            self._file = self._files.open_append(self._path)
        return self._file

    def _link(self, path: Path) -> None:
        try:
            self._files.link(self._path, path)
        except FileExistsError:
            if _is_whole(path, self.sha256()):
                return
            # Damaged by the disk, or removed just now: these bytes are good.
            self._files.rename(self._path, path)


class OpenBlob:
    """Stored bytes, open and checked. Iterate it, in a `with` block."""

    def __init__(self, file: BinaryIO) -> None:
        """Bind an open file; use `Blobs.open`."""
        self._file = file
        self.size = os.fstat(file.fileno()).st_size

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file of a blob."""
        try:
            with mapped_os_errors():
                return cls(path.open("rb", buffering=0))
        except StoreUnavailable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise BlobMissing(sha256=path.name) from error
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes from the beginning, a bounded chunk at a time."""
        offset = 0
        while chunk := await asyncio.to_thread(self.read_at, offset):
            offset += len(chunk)
            yield chunk

    def read_at(self, offset: int) -> bytes:
        """Return the chunk that begins at `offset`; empty at the end."""
        with mapped_os_errors():
            return os.pread(self._file.fileno(), CHUNK_BYTES, offset)


def digest_of(opened: OpenBlob) -> str:
    """Return the SHA-256 of all bytes of an open blob, 64 hex digits."""
    digest, offset = hashlib.sha256(), 0
    while chunk := opened.read_at(offset):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        with OpenBlob.open(path) as opened:
            if digest_of(opened) != sha256:
                return False
        os.utime(path)  # as young as one put now: the sweeper leaves it alone
    except (BlobMissing, FileNotFoundError):
        return False
    return True
