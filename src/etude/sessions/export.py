"""A session word for word again: the lines as they were sent, in the session's own order."""

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from sqlalchemy import func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.sessions.errors import SessionTooLongError
from etude.sessions.records import SessionRow
from etude.sessions.tables import session_event
from etude.store.engine import Database

PAGE_LINES: Final = 2_000
LIMIT_BYTES: Final = 16 * 1024 * 1024
"""The most of one session that is read at once: for a recap, a report, an instance."""
# Stands for "no seq": beyond every number that the format allows (2^53).
_NO_SEQ: Final = 2**60

_order = (
    func.coalesce(session_event.c.seq, _NO_SEQ),
    session_event.c.ts_s,
    session_event.c.event_id,
)


async def lines(database: Database, session_key: int) -> AsyncIterator[bytes]:
    """Yield the session's lines in their order (`docs/rules.md 6`), without newlines.

    Read in pages, so that neither a large session nor a slow reader holds a transaction open.
    Lines that arrive meanwhile may or may not be among them.
    """
    after: tuple[int, float, str] | None = None
    while True:
        async with database.read() as connection:
            page = await _page(connection, session_key, after)
        for *_, line in page:
            yield line
        if len(page) < PAGE_LINES:
            return
        seq, ts_s, event_id, _ = page[-1]
        after = (seq, ts_s, event_id)


async def lines_within(
    database: Database, session: SessionRow, limit_bytes: int = LIMIT_BYTES
) -> list[bytes]:
    """Return the session's lines in order, all of them in memory.

    Raises `SessionTooLongError` if they have more than `limit_bytes`.
    """
    held: list[bytes] = []
    size_bytes = 0
    async for line in lines(database, session.session_key):
        size_bytes += len(line)
        if size_bytes > limit_bytes:
            raise SessionTooLongError(session_id=session.session_id, limit_bytes=limit_bytes)
        held.append(line)
    return held


async def first_lines(connection: AsyncConnection, session_key: int, count: int) -> list[bytes]:
    """Return the `count` lines of the session that came first, as they came.

    Nothing that was stored goes or changes, so these are what the session was made of when it had
    so many.
    """
    found = await connection.scalars(
        select(session_event.c.line)
        .where(session_event.c.session_key == session_key)
        .order_by(session_event.c.receipt)
        .limit(count)
    )
    return list(found)


async def events_digest(connection: AsyncConnection, session_key: int) -> str:
    """Return the sha256 over the session's lines in order, each followed by a newline."""
    digest = hashlib.sha256()
    ordered = select(session_event.c.line).where(session_event.c.session_key == session_key)
    found = await connection.stream_scalars(
        ordered.order_by(*_order), execution_options={"yield_per": PAGE_LINES}
    )
    async for line in found:
        digest.update(line)
        digest.update(b"\n")
    return digest.hexdigest()


async def _page(
    connection: AsyncConnection, session_key: int, after: tuple[int, float, str] | None
) -> list[tuple[int, float, str, bytes]]:
    statement = (
        select(*_order, session_event.c.line)
        .where(session_event.c.session_key == session_key)
        .order_by(*_order)
        .limit(PAGE_LINES)
    )
    if after is not None:
        statement = statement.where(tuple_(*_order) > tuple_(*after))
    return [(row[0], row[1], row[2], row[3]) for row in await connection.execute(statement)]
