"""Bytes by their digest in a local directory, kept as long as somebody refers to them.

A blob is a file named by its SHA-256 below two fan-out folders; it is written once, whole, and
synced before its name exists. Who refers to it stands in the database. The order of writing makes a
crash harmless at every instant: bytes are durable before a reference to them can be committed, and
they go only after the removal of the last reference was committed. What a crash leaves over is
bytes without a reference, which `sweep_orphans` removes.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import msgspec

from etude.clock import Clock, to_us
from etude.files import Files, crash_point
from etude.store import references
from etude.store.blob_files import IncomingFile, OpenBlob, digest_of, mapped_os_errors
from etude.store.engine import Database
from etude.store.errors import BlobCorrupt, BlobDigestMismatch, BlobMissing, BlobTooLarge
from etude.store.work import UnitOfWork

DEFAULT_MAX_BYTES: Final = 32 * 1024 * 1024
ORPHAN_AGE_S: Final = 3600
_SWEPT_AT_ONCE: Final = 200
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Stored bytes: their digest (64 hex digits) and how many they are."""

    sha256: str
    size: int


class Blobs:
    """The blobs of one data folder. Lives as long as the process; several processes may share it.

    >>> async def keep(blobs: Blobs, database: Database, recording: bytes) -> None:
    ...     stored = await blobs.put_bytes(recording)
    ...     async with database.transaction() as work:
    ...         await blobs.add_reference(work, stored.sha256, "session:17")
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        files: Files | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        """Keep blobs of at most `max_bytes` each below `folder`, which is made when needed."""
        self._folder = folder
        self._clock = clock
        self._files = files or Files()
        self._max_bytes = max_bytes

    async def put_bytes(self, data: bytes, *, expected_sha256: str | None = None) -> Blob:
        """Store `data`; see `put_stream`."""

        async def whole() -> AsyncIterator[bytes]:
            yield data

        return await self.put_stream(whole(), expected_sha256=expected_sha256)

    async def put_stream(
        self, chunks: AsyncIterable[bytes], *, expected_sha256: str | None = None
    ) -> Blob:
        """Store what `chunks` yields, one chunk in memory at a time; what is there already stays.

        The bytes are durable when this returns, but only a committed reference keeps them.

        Raises:
            BlobTooLarge: more than the limit came; nothing is kept.
            BlobDigestMismatch: the digest is not `expected_sha256`; nothing is kept.
            DiskFull: there was no room; nothing is kept.
        """
        incoming = IncomingFile(self._files, self._folder)
        try:
            async for chunk in chunks:
                if incoming.size + len(chunk) > self._max_bytes:
                    raise BlobTooLarge(max_bytes=self._max_bytes)
                await asyncio.to_thread(incoming.write, chunk)
            sha256 = incoming.sha256()
            if expected_sha256 is not None and sha256 != expected_sha256.lower():
                raise BlobDigestMismatch(expected=expected_sha256, found=sha256)
            await asyncio.to_thread(incoming.publish, self._path(sha256))
            return Blob(sha256=sha256, size=incoming.size)
        finally:
            incoming.discard()

    async def open(self, sha256: str) -> OpenBlob:
        """Open stored bytes for reading in chunks, after checking all of them.

        Raises:
            BlobMissing: there are none under this digest.
            BlobCorrupt: they are not what was stored.
        """
        return await asyncio.to_thread(self._open, sha256)

    def file_of(self, sha256: str) -> Path:
        """Return where stored bytes are, for a reader who checks every one of them itself.

        Raises:
            BlobMissing: `sha256` is no digest; whether there is such a file is not looked at.
        """
        return self._path(sha256)

    async def read(self, sha256: str) -> bytes:
        """Return stored bytes as a whole; errors as of `open`."""
        with await self.open(sha256) as opened:
            return b"".join([chunk async for chunk in opened])

    async def add_reference(self, work: UnitOfWork, sha256: str, owner: str) -> None:
        """Keep the bytes as long as `owner` (`<noun>:<key>`, no person's id) refers to them.

        Raises:
            BlobMissing: they are not there, or their last owner went just now: put them again.
        """
        path = self._path(sha256)
        await references.lock(work, [sha256])
        size = await asyncio.to_thread(_size_of, path)
        if size is None:
            raise BlobMissing(sha256=sha256)
        await references.add(work, sha256, size, owner, to_us(self._clock.now()))

    async def remove_references(self, work: UnitOfWork, owner: str) -> None:
        """Drop the references of `owner`; bytes that nobody wants then go after the commit."""
        for sha256 in await references.remove(work, owner):
            work.after_commit(functools.partial(self._remove, work.database, sha256, age_s=0))

    async def discard(self, database: Database, sha256: str) -> None:
        """Remove bytes that were put in vain, at once; where anybody refers to them they stay."""
        await self._remove(database, sha256, age_s=0)

    def keep_young(self, sha256: str) -> None:
        """Let bytes without a reference be as young as ones that were put now; blocks."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._path(sha256))

    async def sweep_orphans(self, database: Database, age_s: int = ORPHAN_AGE_S) -> int:
        """Remove bytes that nobody refers to; return how many blobs went.

        Args:
            database: where the references are.
            age_s: younger files stay, because their reference may be about to be committed.
        """
        await asyncio.to_thread(self._sweep_incoming, age_s)
        removed = 0
        stored = self._stored()
        while batch := await asyncio.to_thread(
            lambda: list(itertools.islice(stored, _SWEPT_AT_ONCE))
        ):
            async with database.read() as connection:
                wanted = await references.wanted(connection, batch)
            for sha256 in batch:
                if sha256 not in wanted:
                    removed += await self._remove(database, sha256, age_s)
        return removed

    async def _remove(self, database: Database, sha256: str, age_s: int) -> bool:
        crash_point("store.blob.unreferenced")
        async with database.transaction() as work:
            await references.lock(work, [sha256])
            if await references.is_wanted(work, sha256):
                return False
            return await asyncio.to_thread(self._remove_file, self._path(sha256), age_s)

    def _remove_file(self, path: Path, age_s: int) -> bool:
        if not self._is_older(path, age_s):
            return False
        with mapped_os_errors():
            self._files.remove(path)
            crash_point("store.blob.removed")
            self._files.sync_folder(path.parent)
        return True

    def _is_older(self, path: Path, age_s: int) -> bool:
        try:
            changed_s = path.stat().st_mtime
        except FileNotFoundError:
            return False
        return age_s <= 0 or self._clock.now().timestamp() - changed_s > age_s

    def _open(self, sha256: str) -> OpenBlob:
        opened = OpenBlob.open(self._path(sha256))
        with contextlib.ExitStack() as on_error:
            on_error.callback(opened.close)
            if digest_of(opened) != sha256:
                raise BlobCorrupt(sha256=sha256)
            on_error.pop_all()
        return opened

    def _path(self, sha256: str) -> Path:
        if not _DIGEST.fullmatch(sha256):
            raise BlobMissing(sha256=sha256[:64])
        return self._folder / sha256[:2] / sha256[2:4] / sha256

    def _stored(self) -> Iterator[str]:
        for folder in sorted(self._folder.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]")):
            for path in list(folder.iterdir()):  # whole: files go while the caller works
                if _DIGEST.fullmatch(path.name):
                    yield path.name

    def _sweep_incoming(self, age_s: int) -> None:
        for path in IncomingFile.left_over(self._folder):
            if self._is_older(path, age_s):
                self._files.remove(path)


def _size_of(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return None
