"""Rows that say which bytes are wanted, and by whom. The bytes themselves are `blobs`'s."""

from collections.abc import Collection, Iterable

from sqlalchemy import delete, exists, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.store.dialects import insert_if_absent
from etude.store.tables import blob, blob_reference
from etude.store.work import UnitOfWork


async def lock(work: UnitOfWork, digests: Iterable[str]) -> None:
    """Keep other transactions from referring to these bytes, or removing them, until the end.

    A SQLite transaction already excludes every other one.
    """
    if work.database.dialect == "sqlite":
        return
    statement = text("SELECT pg_advisory_xact_lock(:number)")
    for digest in sorted(set(digests)):  # in one order everywhere: no deadlock
        number = int.from_bytes(bytes.fromhex(digest[:16]), "big", signed=True)
        await work.connection.execute(statement, {"number": number})


async def add(work: UnitOfWork, sha256: str, size: int, owner: str, now_us: int) -> None:
    """Note that `owner` wants these bytes; twice is once."""
    row = {"sha256": sha256, "size": size, "created_us": now_us}
    await work.connection.execute(insert_if_absent(work, blob).values(row))
    reference = {"sha256": sha256, "owner": owner}
    await work.connection.execute(insert_if_absent(work, blob_reference).values(reference))


async def remove(work: UnitOfWork, owner: str) -> list[str]:
    """Drop all references of `owner`; return the digests that nobody wants any more."""
    mine = select(blob_reference.c.sha256).where(blob_reference.c.owner == owner)
    digests = (await work.connection.scalars(mine)).all()
    await lock(work, digests)
    of_owner = blob_reference.c.owner == owner
    await work.connection.execute(delete(blob_reference).where(of_owner))
    unwanted = [digest for digest in digests if not await is_wanted(work, digest)]
    for digest in unwanted:
        await work.connection.execute(delete(blob).where(blob.c.sha256 == digest))
    return unwanted


async def is_wanted(work: UnitOfWork, sha256: str) -> bool:
    """Whether anybody refers to these bytes."""
    anybody = select(exists().where(blob_reference.c.sha256 == sha256))
    return bool((await work.connection.execute(anybody)).scalar_one())


async def wanted(connection: AsyncConnection, digests: Collection[str]) -> frozenset[str]:
    """Which of `digests` (some hundreds at most) anybody refers to."""
    among = select(blob.c.sha256).where(blob.c.sha256.in_(digests))
    return frozenset((await connection.scalars(among)).all())
