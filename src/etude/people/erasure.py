"""Erasing a learner, and refusing what comes late (`docs/rules.md 13, 49, 50`).

In one transaction every context removes what is the learner's, the learner's row and tokens become
tombstones, and a job is enqueued that clears the deleted bytes out of the database's files. Once
that job is done nothing of the learner is left.
"""

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.files import crash_point
from etude.jobs import Job, enqueue
from etude.people import audit
from etude.people.errors import LearnerErasedError
from etude.people.holders import learner_key_at
from etude.people.learner_data import LearnerDataRegistry
from etude.people.learners import get_learner
from etude.people.records import Actor, Principal
from etude.people.tables import learner
from etude.store import Blobs, Database, UnitOfWork

SCRUB: Final = "people.scrub"


async def erase_learner(
    work: UnitOfWork,
    registry: LearnerDataRegistry,
    learner_id: str,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> int:
    """Erase the learner in this unit of work; return the surrogate key, which is what stays.

    The learner's row is locked first, so that an upload under way (`principal_tombstone` with
    `lock`) is either seen by this erasure or refused because of it.

    Raises `LearnerUnknownError`, or `LearnerErasedError` if it was done before.
    """
    learner_key = (await get_learner(work.connection, learner_id, lock=True)).learner_key
    await registry.erase_learner(work, learner_key)
    crash_point("people.erasure.rows_removed")
    await audit.record(work, actor, "learner.erased", subject=("learner", learner_key), now=now)
    await enqueue(work, SCRUB, str(learner_key), {"learner_key": learner_key}, now=now)
    crash_point("people.erasure.enqueued")
    return learner_key


async def principal_tombstone(
    connection: AsyncConnection,
    *,
    learner_key: int | None = None,
    device_key: int | None = None,
    at: datetime | None = None,
    lock: bool = False,
) -> None:
    """Refuse what belongs to an erased learner: raise `LearnerErasedError` (410).

    Args:
        connection: with `lock`, of a transaction for writing.
        learner_key: whose the upload is, if that is known.
        device_key: what recorded it; counts together with `at`.
        at: when it was recorded: a device in the hands of an erased learner is refused for that
            time, and until somebody else is given it or it is released.
        lock: keep the learner's row from being erased until the transaction ends. Take it in the
            transaction that stores something of the learner for the first time.
    """
    if learner_key is None and device_key is not None and at is not None:
        learner_key = await learner_key_at(connection, device_key, at)
    if learner_key is None:
        return
    statement = select(learner.c.erased_us).where(learner.c.learner_key == learner_key)
    if lock:
        statement = statement.with_for_update(read=True)
    if (await connection.execute(statement)).scalar_one_or_none() is not None:
        raise LearnerErasedError


async def erased_among(
    connection: AsyncConnection,
    learner_keys: Collection[int],
    *,
    lock: bool = False,
    wait: bool = True,
) -> set[int]:
    """Return which of these learners were erased; `lock` as for `principal_tombstone`.

    Without `wait` a row that somebody else has locked is a `StoreBusy` at once (PostgreSQL): for a
    transaction that holds what an erasure takes after the learner.
    """
    if not learner_keys:
        return set()
    statement = (
        select(learner.c.learner_key, learner.c.erased_us)
        .where(learner.c.learner_key.in_(learner_keys))
        .order_by(learner.c.learner_key)
    )
    if lock:
        statement = statement.with_for_update(read=True, nowait=not wait)
    rows = await connection.execute(statement)
    return {row.learner_key for row in rows if row.erased_us is not None}


def scrub_handler(
    database: Database, blobs: Blobs, registry: LearnerDataRegistry
) -> Callable[[Job], Awaitable[None]]:
    """Return the handler of `people.scrub` jobs.

    It may run any number of times. Failing (`StoreBusy`: somebody reads), it is tried again.
    """

    async def scrub(_job: Job) -> None:
        await scrub_files(database, blobs, registry)

    return scrub


async def scrub_files(database: Database, blobs: Blobs, registry: LearnerDataRegistry) -> None:
    """Clear deleted rows out of the database's files, and files that nobody refers to any more."""
    crash_point("people.scrub.before")
    await database.scrub(registry.tables)
    crash_point("people.scrub.rewritten")
    await blobs.sweep_orphans(database)
