"""Statements on the session tables that are not the bulk path.

Every function works on the connection or unit of work it is given and starts no transaction.
"""

import hashlib
from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Select, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.records import Principal
from etude.sessions.records import SessionRow
from etude.sessions.tables import (
    session,
    session_event,
    session_quarantine,
    session_tombstone,
)
from etude.store.work import UnitOfWork

Newcomer = tuple[int, str, bytes, Principal]
"""`(session_key, event_id, line, who sent it)`."""

MAX_GAPS: Final = 1_000
COLUMNS = [session.c[name] for name in SessionRow.__struct_fields__]
_CHANGEABLE = [
    name for name in SessionRow.__struct_fields__ if name not in {"session_key", "session_id"}
]


def digest_of_id(session_id: str) -> str:
    """Return what a tombstone keeps of a session's id."""
    return hashlib.sha256(session_id.encode()).hexdigest()


async def find(connection: AsyncConnection, session_id: str) -> SessionRow | None:
    """Return the session with this id."""
    row = (await connection.execute(_select().where(session.c.session_id == session_id))).first()
    return None if row is None else to_record(row)


async def by_keys(
    connection: AsyncConnection, session_keys: Collection[int]
) -> dict[int, SessionRow]:
    """Return the sessions with these keys that exist."""
    found = await connection.execute(_select().where(session.c.session_key.in_(session_keys)))
    return {record.session_key: record for record in map(to_record, found)}


async def lock(work: UnitOfWork, session_ids: Collection[str]) -> dict[str, SessionRow]:
    """Return the sessions that exist, held against other writers until the transaction ends."""
    found = await work.connection.execute(
        _select()
        .where(session.c.session_id.in_(session_ids))
        .order_by(session.c.session_key)
        .with_for_update()
    )
    return {record.session_id: record for record in map(to_record, found)}


async def tombstones(connection: AsyncConnection, session_ids: Collection[str]) -> set[str]:
    """Return those ids that belonged to erased sessions."""
    digests = {digest_of_id(session_id): session_id for session_id in session_ids}
    found = await connection.scalars(
        select(session_tombstone.c.session_id_sha256).where(
            session_tombstone.c.session_id_sha256.in_(digests)
        )
    )
    return {digests[digest] for digest in found}


async def insert(work: UnitOfWork, sessions: Sequence[SessionRow]) -> None:
    """Add sessions (their `session_key` is ignored); ids that exist by now are left alone."""
    values = [
        {name: getattr(record, name) for name in ("session_id", *_CHANGEABLE)}
        for record in sorted(sessions, key=lambda record: record.session_id)
    ]
    make = sqlite_insert if work.database.dialect == "sqlite" else postgresql_insert
    await work.connection.execute(make(session).on_conflict_do_nothing(), values)


async def save(work: UnitOfWork, sessions: Sequence[SessionRow]) -> None:
    """Write every column of these sessions back."""
    if not sessions:
        return
    statement = (
        update(session)
        .where(session.c.session_key == bindparam("key"))
        .values({name: bindparam(f"new_{name}") for name in _CHANGEABLE})
    )
    values = [
        {
            "key": record.session_key,
            **{f"new_{name}": getattr(record, name) for name in _CHANGEABLE},
        }
        for record in sessions
    ]
    await work.connection.execute(statement, values)


async def watermark(work: UnitOfWork, session_key: int, reached: int) -> int:
    """Return the highest `seq` up to which nothing is missing, counting on from `reached`."""
    numbers = await work.connection.scalars(
        select(session_event.c.seq)
        .where(session_event.c.session_key == session_key, session_event.c.seq > reached)
        .distinct()
        .order_by(session_event.c.seq)
    )
    for number in numbers:
        if number != reached + 1:
            break
        reached = number
    return reached


async def quarantine(work: UnitOfWork, newcomers: Sequence[Newcomer], now_us: int) -> None:
    """Keep lines whose ids were taken; the same line from the same upload again is kept once."""
    values = [
        {
            "session_key": session_key,
            "event_id": event_id,
            "line_sha256": hashlib.sha256(line).hexdigest(),
            "line": line,
            "principal_kind": principal.kind,
            "principal_key": principal.key,
            "received_us": now_us,
        }
        for session_key, event_id, line, principal in newcomers
    ]
    make = sqlite_insert if work.database.dialect == "sqlite" else postgresql_insert
    await work.connection.execute(make(session_quarantine).on_conflict_do_nothing(), values)


async def missing(connection: AsyncConnection, record: SessionRow) -> list[tuple[int, int]]:
    """Return the gaps in `seq` below the highest one seen, as inclusive pairs: the first 1,000."""
    if record.max_seq is None or record.watermark == record.max_seq:
        return []
    following = func.lead(session_event.c.seq).over(order_by=session_event.c.seq)
    pairs = (
        select(session_event.c.seq, following.label("following"))
        .where(session_event.c.session_key == record.session_key, session_event.c.seq.is_not(None))
        .subquery()
    )
    rows = await connection.execute(
        select(pairs.c.seq, pairs.c.following)
        .where(pairs.c.following > pairs.c.seq + 1)
        .order_by(pairs.c.seq)
        .limit(MAX_GAPS)
    )
    gaps = [(row.seq + 1, row.following - 1) for row in rows]
    lowest = await connection.scalar(
        select(func.min(session_event.c.seq)).where(
            session_event.c.session_key == record.session_key
        )
    )
    before = [(1, lowest - 1)] if lowest is not None and lowest > 1 else []
    return [*before, *gaps][:MAX_GAPS]


def _select() -> Select[tuple[object, ...]]:
    return select(*COLUMNS)


def to_record(row: Row[tuple[object, ...]]) -> SessionRow:
    """Return a row of `COLUMNS` as its record."""
    return SessionRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
