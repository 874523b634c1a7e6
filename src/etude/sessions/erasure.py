"""What `sessions` does when a learner's data is exported or erased (`rulings.md` 13, 49, 50)."""

from collections.abc import AsyncIterator

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, to_us
from etude.sessions import repository
from etude.sessions.export import events_digest
from etude.sessions.tables import (
    session,
    session_event,
    session_media,
    session_quarantine,
    session_tombstone,
)
from etude.store.blobs import Blobs
from etude.store.work import UnitOfWork


def media_owner(session_key: int) -> str:
    """Return the owner under which a session's recordings are kept in the blob store."""
    return f"session:{session_key}"


async def sessions_of(connection: AsyncConnection, learner_key: int) -> list[tuple[int, str]]:
    """Return `(session_key, session_id)` of every session of the learner, oldest first."""
    rows = await connection.execute(
        select(session.c.session_key, session.c.session_id)
        .where(session.c.learner_key == learner_key)
        .order_by(session.c.session_key)
    )
    return [(row.session_key, row.session_id) for row in rows]


async def erase_learner(work: UnitOfWork, learner_key: int, *, blobs: Blobs, clock: Clock) -> None:
    """Remove every session of the learner; each leaves a tombstone that refuses it for ever."""
    for session_key, session_id in await sessions_of(work.connection, learner_key):
        await work.connection.execute(
            insert(session_tombstone),
            {
                "session_id_sha256": repository.digest_of_id(session_id),
                "events_digest": await events_digest(work.connection, session_key),
                "erased_us": to_us(clock.now()),
            },
        )
        await blobs.remove_references(work, media_owner(session_key))
        for table in (session_event, session_quarantine, session_media, session):
            await work.connection.execute(delete(table).where(table.c.session_key == session_key))


async def exported_sessions(
    connection: AsyncConnection, learner_key: int
) -> AsyncIterator[tuple[int, str]]:
    """Yield the learner's sessions for an export."""
    for found in await sessions_of(connection, learner_key):
        yield found
