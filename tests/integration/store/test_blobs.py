import asyncio
import contextlib
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from etude.files import Files, armed
from etude.store import Blobs, Database
from etude.store.blob_files import CHUNK_BYTES
from etude.store.errors import (
    BlobCorrupt,
    BlobDigestMismatch,
    BlobMissing,
    BlobTooLarge,
    DiskFull,
)
from etude.store.tables import blob, blob_reference
from etude.testing.clocks import ManualClock
from etude.testing.lossy_files import LossyFiles, PowerCutError
from etude.testing.waiting import within

Run = Callable[..., Any]
DATA = b"a short recording"
SHA256 = hashlib.sha256(DATA).hexdigest()
POINTS = (
    "store.blob.written",
    "store.blob.linked",
    "store.blob.durable",
    "store.transaction.before_commit",
    "store.transaction.committed",
    "store.blob.unreferenced",
    "store.blob.removed",
)


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def blobs(folder: Path, clock: ManualClock) -> Blobs:
    return Blobs(folder, clock, max_bytes=3 * CHUNK_BYTES)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def newest_change(folder: Path) -> float:
    return max(path.stat().st_mtime for path in folder.rglob("*") if path.is_file())


async def refer(database: Database, blobs: Blobs, sha256: str, owner: str) -> None:
    async with database.transaction() as work:
        await blobs.add_reference(work, sha256, owner)


async def forget(database: Database, blobs: Blobs, owner: str) -> None:
    async with database.transaction() as work:
        await blobs.remove_references(work, owner)


def test_bytes_come_back(run: Run, blobs: Blobs, folder: Path) -> None:
    """What is put is read again, lies under its digest in two fan-out folders, and nothing else."""

    async def main() -> None:
        stored = await blobs.put_bytes(DATA, expected_sha256=SHA256.upper())
        assert (stored.sha256, stored.size) == (SHA256, len(DATA))
        assert await blobs.read(SHA256) == DATA

    run(main())
    assert (folder / SHA256[:2] / SHA256[2:4] / SHA256).read_bytes() == DATA
    assert files_in(folder) == {SHA256}


def test_streams_are_read_in_bounded_chunks(run: Run, blobs: Blobs) -> None:
    """A stream of many pieces comes back whole, in chunks of the stated size."""
    data = os.urandom(2 * CHUNK_BYTES + 7)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 10_000):
            yield data[start : start + 10_000]

    async def main() -> None:
        stored = await blobs.put_stream(pieces())
        with await blobs.open(stored.sha256) as opened:
            chunks = [chunk async for chunk in opened]
            assert opened.size == len(data)
        assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, CHUNK_BYTES, 7]
        assert b"".join(chunks) == data

    run(main())


def test_empty_blob(run: Run, blobs: Blobs) -> None:
    """No bytes at all are a blob too."""

    async def main() -> None:
        stored = await blobs.put_bytes(b"")
        assert await blobs.read(stored.sha256) == b""

    run(main())


def test_second_put_changes_nothing(run: Run, blobs: Blobs, folder: Path) -> None:
    """Put if absent: the same bytes put again leave the first file as it is."""

    async def main() -> None:
        await blobs.put_bytes(DATA)

    run(main())
    path = folder / SHA256[:2] / SHA256[2:4] / SHA256
    inode = path.stat().st_ino
    run(main())
    assert path.stat().st_ino == inode
    assert files_in(folder) == {SHA256}


def test_sixteen_puts_at_once_are_one(run: Run, blobs: Blobs, folder: Path) -> None:
    """Puts of the same bytes that race all succeed and leave one file."""

    async def main() -> None:
        stored = await asyncio.gather(*(blobs.put_bytes(DATA) for _ in range(16)))
        assert {each.sha256 for each in stored} == {SHA256}

    run(main())
    assert files_in(folder) == {SHA256}


def test_too_much_is_refused_and_kept_nowhere(run: Run, blobs: Blobs, folder: Path) -> None:
    """One byte over the limit: `BLOB_TOO_LARGE`, no file left; the limit itself is allowed."""
    with pytest.raises(BlobTooLarge):
        run(blobs.put_bytes(bytes(3 * CHUNK_BYTES + 1)))
    assert files_in(folder) == set()
    run(blobs.put_bytes(bytes(3 * CHUNK_BYTES)))


def test_other_digest_is_refused_and_kept_nowhere(run: Run, blobs: Blobs, folder: Path) -> None:
    """Bytes that are not what was announced: `BLOB_DIGEST_MISMATCH`, no file left."""
    with pytest.raises(BlobDigestMismatch):
        run(blobs.put_bytes(DATA, expected_sha256="0" * 64))
    assert files_in(folder) == set()


def test_broken_off_upload_leaves_nothing(run: Run, blobs: Blobs, folder: Path) -> None:
    """A stream that fails, and a task that is cancelled, leave no file."""

    async def broken() -> AsyncIterator[bytes]:
        yield DATA
        raise ConnectionResetError

    began = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield DATA
        began.set()
        yield DATA
        await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(blobs.put_stream(endless()))
        await within(began.wait(), "the first piece")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pytest.raises(ConnectionResetError):
        run(blobs.put_stream(broken()))
    assert files_in(folder) == set()
    run(cancelled())
    assert files_in(folder) == set()


@pytest.mark.parametrize("name", ["0" * 64, "../../etc/passwd", "", SHA256.upper()])
def test_unknown_digest_is_missing(run: Run, blobs: Blobs, name: str) -> None:
    """What is not there, and what is no digest, is `BLOB_MISSING`."""
    with pytest.raises(BlobMissing):
        run(blobs.read(name))


def test_damage_is_found_and_healed(run: Run, blobs: Blobs, folder: Path) -> None:
    """A flipped bit is `BLOB_CORRUPT` before a byte is given out; putting the bytes again heals."""
    run(blobs.put_bytes(DATA))
    path = folder / SHA256[:2] / SHA256[2:4] / SHA256
    path.write_bytes(bytes([DATA[0] ^ 1]) + DATA[1:])
    with pytest.raises(BlobCorrupt):
        run(blobs.open(SHA256))
    run(blobs.put_bytes(DATA))
    assert run(blobs.read(SHA256)) == DATA


def test_full_disk_is_said_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    """No space: `DISK_FULL`; with space again the same put succeeds."""
    (tmp_path / "disk").mkdir()
    disk = LossyFiles(tmp_path / "disk", space_bytes=5)
    blobs = Blobs(tmp_path / "disk" / "blobs", ManualClock(), files=disk)
    with pytest.raises(DiskFull) as caught:
        run(blobs.put_bytes(DATA))
    assert caught.value.params == {"reason": errno.errorcode[errno.ENOSPC]}
    assert files_in(tmp_path / "disk") == set()
    disk.space_bytes = None
    run(blobs.put_bytes(DATA))
    assert run(blobs.read(SHA256)) == DATA


def test_bytes_go_with_their_last_owner(
    run: Run, database: Database, blobs: Blobs, folder: Path
) -> None:
    """A blob of two owners stays when one leaves and goes, with its rows, after the other."""

    async def main() -> None:
        await blobs.put_bytes(DATA)
        for owner in ("session:1", "session:1", "session:2"):
            await refer(database, blobs, SHA256, owner)
        await forget(database, blobs, "session:1")
        assert await blobs.read(SHA256) == DATA
        await forget(database, blobs, "session:2")
        async with database.read() as connection:
            for table in (blob, blob_reference):
                assert (await connection.execute(select(table))).all() == []

    run(main())
    assert files_in(folder) == set()


def test_bytes_stay_when_the_removal_is_rolled_back(
    run: Run, database: Database, blobs: Blobs
) -> None:
    """Removing references in a transaction that fails removes nothing."""

    async def forget_and_fail() -> None:
        async with database.transaction() as work:
            await blobs.remove_references(work, "session:1")
            raise ZeroDivisionError

    async def main() -> None:
        await blobs.put_bytes(DATA)
        await refer(database, blobs, SHA256, "session:1")
        with pytest.raises(ZeroDivisionError):
            await forget_and_fail()
        assert await blobs.read(SHA256) == DATA
        assert await blobs.sweep_orphans(database, age_s=0) == 0

    run(main())


def test_no_reference_to_missing_bytes(run: Run, database: Database, blobs: Blobs) -> None:
    """A reference to bytes that are not there is refused."""
    with pytest.raises(BlobMissing):
        run(refer(database, blobs, SHA256, "session:1"))


def test_put_and_removal_at_once_leave_no_dangling_reference(
    run: Run, database: Database, blobs: Blobs
) -> None:
    """While owners come and go, a committed reference always has its bytes."""

    async def come(owner: str) -> None:
        while True:
            await blobs.put_bytes(DATA)
            try:
                await refer(database, blobs, SHA256, owner)
            except BlobMissing:  # the last other owner went in between: put again
                continue
            assert await blobs.read(SHA256) == DATA
            return

    async def come_and_go(owner: str) -> None:
        for _ in range(8):
            await come(owner)
            await forget(database, blobs, owner)

    async def main() -> None:
        await asyncio.gather(*(come_and_go(f"session:{number}") for number in range(4)))
        await come("session:9")
        assert await blobs.sweep_orphans(database, age_s=0) == 0
        assert await blobs.read(SHA256) == DATA

    run(main())


def test_sweeper_takes_old_orphans_only(
    run: Run, database: Database, blobs: Blobs, folder: Path, clock: ManualClock
) -> None:
    """Bytes without a reference, and waiting files, go after an hour; referenced bytes stay."""
    other = b"another recording"

    async def main() -> None:
        await blobs.put_bytes(DATA)
        await refer(database, blobs, SHA256, "session:1")
        orphan = await blobs.put_bytes(other)
        waiting = folder / "incoming" / "left-over"
        await asyncio.to_thread(waiting.write_bytes, b"half a recording")
        newest = newest_change(folder)
        clock.advance(newest + 3599 - clock.now().timestamp())
        assert await blobs.sweep_orphans(database) == 0
        clock.advance(2)
        assert await blobs.sweep_orphans(database) == 1
        with pytest.raises(BlobMissing):
            await blobs.read(orphan.sha256)
        assert await blobs.read(SHA256) == DATA

    run(main())
    assert files_in(folder) == {SHA256}


async def live(database: Database, blobs: Blobs, acknowledged: set[str]) -> None:
    """Put and refer, replace, remove: every kind of write that blobs have."""
    await blobs.put_bytes(DATA)
    await refer(database, blobs, SHA256, "session:1")
    acknowledged.add("session:1")
    await blobs.put_bytes(DATA)
    await refer(database, blobs, SHA256, "session:2")
    acknowledged.add("session:2")
    acknowledged.discard("session:1")  # from here on it may be gone
    await forget(database, blobs, "session:1")
    acknowledged.discard("session:2")
    await forget(database, blobs, "session:2")


async def check_whole(database: Database, blobs: Blobs, acknowledged: set[str]) -> None:
    """No acknowledged reference is lost, and each one that is there has its bytes."""
    async with database.read() as connection:
        rows = (await connection.execute(select(blob_reference))).all()
    assert acknowledged <= {row.owner for row in rows}
    for row in rows:
        assert await blobs.read(row.sha256) == DATA
    await blobs.sweep_orphans(database, age_s=0)
    for row in rows:
        assert await blobs.read(row.sha256) == DATA


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_end_at_each_crash_point(
    run: Run, database: Database, folder: Path, point: str, count: int
) -> None:
    """Ended at any crash point: no acknowledged blob is lost, no reference dangles, none leaks."""
    left = count
    acknowledged: set[str] = set()

    def crash(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            raise Crash

    blobs = Blobs(folder, ManualClock())
    with armed(crash):
        try:
            run(live(database, blobs, acknowledged))
        except Crash:
            pass
        else:
            assert left > 0
    run(check_whole(database, blobs, acknowledged))
    run(forget(database, blobs, "session:1"))
    run(forget(database, blobs, "session:2"))
    run(blobs.sweep_orphans(database, age_s=0))
    assert files_in(folder) == set()


def test_power_cut_at_each_operation(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """What was not synced is thrown away at every operation; what was acknowledged is there."""

    async def main() -> None:
        async with await Database.open(sqlite_url) as database:
            operations = await _cut_at(database, tmp_path / "all", None)
            assert operations > 10
            for cut_at in range(operations):
                await _cut_at(database, tmp_path / f"cut-{cut_at}", cut_at)

    run(main())


async def _cut_at(database: Database, root: Path, cut_at: int | None) -> int:
    """Live on a disk that loses power; check on what survives; return the operations done."""
    live_folder = root / "live"
    await asyncio.to_thread(live_folder.mkdir, parents=True)
    disk = LossyFiles(live_folder, cut_at=cut_at)
    acknowledged: set[str] = set()
    with contextlib.suppress(PowerCutError):
        await live(database, Blobs(live_folder / "blobs", ManualClock(), files=disk), acknowledged)
    survivors = disk.survivors(root / "after")
    after = Blobs(survivors / "blobs", ManualClock(), files=Files())
    await check_whole(database, after, acknowledged)
    for owner in ("session:1", "session:2"):
        await forget(database, after, owner)
    return len(disk.operations)
