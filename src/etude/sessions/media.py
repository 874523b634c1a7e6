"""Recordings of a session: bytes by their sha256, put if absent, kept with the session.

Events name them in `meta.media`; the outbox sends them after the events (`docs/rules.md 5`). The
bytes live in the blob store; here is which session has which.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, from_us, to_us
from etude.files import crash_point
from etude.sessions import repository
from etude.sessions.errors import (
    MediaDigestInvalidError,
    MediaTypeMissingError,
    MediaUnknownError,
    SessionErasedError,
)
from etude.sessions.records import Media, SessionRow
from etude.sessions.tables import session_media
from etude.store.blobs import Blobs
from etude.store.engine import Database
from etude.store.errors import BlobMissing, StoreBusy
from etude.store.work import UnitOfWork

MAX_BYTES: Final = 32 * 1024 * 1024
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
# RFC 9110 §8.3.1, without parameters: enough to say how to play it.
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")

OnNew = Callable[[UnitOfWork, int, int], Awaitable[None]]
"""Is told, in the same transaction, of which session (key) a recording came, and when (µs)."""


def owner(session_key: int) -> str:
    """Return the owner under which a session's recordings are kept in the blob store."""
    return f"session:{session_key}"


def check_digest(sha256: str) -> str:
    """Return the sha256 of a path; `MediaDigestInvalidError` if it is none."""
    if not _DIGEST.fullmatch(sha256):
        raise MediaDigestInvalidError
    return sha256


def check_content_type(header: str | None) -> str:
    """Return the media type without parameters; `MediaTypeMissingError` if there is none."""
    kind = (header or "").partition(";")[0].strip().lower()
    if not _TYPE.fullmatch(kind):
        raise MediaTypeMissingError
    return kind


async def put(  # noqa: PLR0913 - what a recording is, each by name
    database: Database,
    blobs: Blobs,
    clock: Clock,
    session: SessionRow,
    *,
    sha256: str,
    content_type: str,
    chunks: AsyncIterator[bytes],
    on_new: OnNew | None = None,
) -> bool:
    """Keep a recording of the session; return whether it was new there.

    The bytes are durable before the row that names them, so a crash leaves at most bytes that
    nothing refers to, which the blob store sweeps.

    Raises:
        BlobTooLarge: over 32 MiB; nothing is kept.
        BlobDigestMismatch: the bytes are not those of the path; nothing is kept.
        SessionErasedError: the session was erased meanwhile.
        StoreBusy: somebody else's copy of the same bytes was erased just now; send it again.
    """
    blob = await blobs.put_stream(chunks, expected_sha256=sha256)
    crash_point("sessions.media.stored")
    now_us = to_us(clock.now())
    async with database.transaction() as work:
        if session.session_id not in await repository.lock(work, [session.session_id]):
            raise SessionErasedError
        make = sqlite_insert if database.dialect == "sqlite" else postgresql_insert
        added = await work.connection.execute(
            make(session_media)
            .values(
                session_key=session.session_key,
                sha256=sha256,
                size_bytes=blob.size,
                content_type=content_type,
                received_us=now_us,
            )
            .on_conflict_do_nothing()
        )
        try:
            await blobs.add_reference(work, sha256, owner(session.session_key))
        except BlobMissing as error:
            raise StoreBusy(reason="blob") from error
        if on_new is not None and added.rowcount == 1:
            await on_new(work, session.session_key, now_us)
        crash_point("sessions.media.before_commit")
    return added.rowcount == 1


async def get(connection: AsyncConnection, session: SessionRow, sha256: str) -> Media:
    """Return what is known of a recording of the session; `MediaUnknownError` if there is none."""
    for media in await listed(connection, session.session_key):
        if media.sha256 == sha256:
            return media
    raise MediaUnknownError(session_id=session.session_id, sha256=sha256)


async def recorded_among(
    connection: AsyncConnection, session_keys: Collection[int]
) -> frozenset[int]:
    """Return those of the sessions that have a recording."""
    rows = await connection.scalars(
        select(session_media.c.session_key)
        .where(session_media.c.session_key.in_(session_keys))
        .distinct()
    )
    return frozenset(rows)


async def listed(connection: AsyncConnection, session_key: int) -> list[Media]:
    """Return the recordings of a session in order of receipt."""
    rows = await connection.execute(
        select(session_media)
        .where(session_media.c.session_key == session_key)
        .order_by(session_media.c.received_us, session_media.c.sha256)
    )
    return [
        Media(
            sha256=row.sha256,
            size_bytes=row.size_bytes,
            content_type=row.content_type,
            received=from_us(row.received_us),
        )
        for row in rows
    ]
