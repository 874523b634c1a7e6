"""Who may read which session, and what there is to read besides its lines."""

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.events.fields import is_id
from etude.people import audit
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Page, Principal
from etude.sessions import repository
from etude.sessions.errors import SessionErasedError, SessionIdInvalidError, SessionUnknownError
from etude.sessions.records import QuarantinedLine, SessionRow
from etude.sessions.tables import session, session_event, session_quarantine
from etude.store.engine import Database

_PAGE_ROWS: Final = 2_000


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a list is about; None does not narrow it."""

    learner_key: int | None = None
    device_key: int | None = None
    status: str | None = None
    since: datetime | None = None


def check_session_id(session_id: str) -> str:
    """Return a session id from a path; `SessionIdInvalidError` if it breaks the rule for ids."""
    if not is_id(session_id):
        raise SessionIdInvalidError
    return session_id


def may_read(record: SessionRow, principal: Principal) -> bool:
    """Say whether the session is the principal's own or the principal may read everybody's."""
    if principal.kind in {"staff", "service"}:
        return True
    if principal.kind == "learner" and principal.key == record.learner_key:
        return True
    return (principal.kind, principal.key) == (record.principal_kind, record.principal_key)


async def readable(
    database: Database, principal: Principal, session_id: str, now: datetime
) -> SessionRow:
    """Return a session for reading; a person's look at a learner's record is audited.

    Raises:
        SessionIdInvalidError: the id breaks the rule for ids.
        SessionErasedError: it was erased.
        SessionUnknownError: it is not there, or not for this principal; which, is not told.
    """
    check_session_id(session_id)
    async with database.read() as connection:
        record = await repository.find(connection, session_id)
        if record is None and await repository.tombstones(connection, [session_id]):
            raise SessionErasedError
    if record is None or not may_read(record, principal):
        raise SessionUnknownError(session_id=session_id)
    if principal.kind == "staff" and record.learner_key is not None:
        async with database.transaction() as work:
            await audit.record(
                work,
                principal,
                "session.read",
                subject=("learner", record.learner_key),
                now=now,
                detail={"session": record.session_key},
            )
    return record


async def listed(
    connection: AsyncConnection, wanted: Filter, *, after_key: int, limit: int
) -> Sequence[SessionRow]:
    """Return up to `limit` sessions behind `after_key`, in the order in which they first came."""
    statement = (
        select(*repository.COLUMNS)
        .where(session.c.session_key > after_key)
        .order_by(session.c.session_key)
        .limit(limit)
    )
    rows = await connection.execute(narrowed(statement, wanted))
    return [repository.to_record(row) for row in rows]


async def lines_of_type(
    connection: AsyncConnection, session_keys: Collection[int], event_type: str
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the lines of one type of event as they came, each behind the key of its session."""
    rows = await connection.stream(
        select(session_event.c.session_key, session_event.c.line)
        .where(
            session_event.c.session_key.in_(session_keys),
            session_event.c.event_type == event_type,
        )
        .order_by(session_event.c.receipt),
        execution_options={"yield_per": _PAGE_ROWS},
    )
    async for row in rows:
        yield row.session_key, row.line


def own(principal: Principal, wanted: Filter) -> Filter:
    """Narrow a filter to what the principal may read."""
    if principal.kind == "learner":
        return msgspec.structs.replace(wanted, learner_key=principal.key)
    if principal.kind == "device":
        return msgspec.structs.replace(wanted, device_key=principal.key)
    return wanted


async def quarantined(
    connection: AsyncConnection,
    session_key: int,
    *,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[QuarantinedLine]:
    """Return a page of the lines of a session whose ids were taken, in order of receipt."""
    statement = (
        select(session_quarantine)
        .where(
            session_quarantine.c.session_key == session_key,
            session_quarantine.c.quarantine_key > key_after(cursor),
        )
        .order_by(session_quarantine.c.quarantine_key)
        .limit(limit + 1)
    )
    rows = (await connection.execute(statement)).all()
    return page(rows, limit, _quarantined_line, "quarantine_key")


async def count_quarantined(connection: AsyncConnection, session_key: int) -> int:
    """Return how many lines of a session are in quarantine."""
    return (
        await connection.scalar(
            select(func.count()).where(session_quarantine.c.session_key == session_key)
        )
        or 0
    )


def _quarantined_line(row: Row[Any]) -> QuarantinedLine:
    return QuarantinedLine(
        event_id=row.event_id,
        line=row.line,
        principal_kind=row.principal_kind,
        received=from_us(row.received_us),
    )


def narrowed(statement: Select[Any], wanted: Filter) -> Select[Any]:
    """Return a query on sessions narrowed to those of the filter."""
    if wanted.learner_key is not None:
        statement = statement.where(session.c.learner_key == wanted.learner_key)
    if wanted.device_key is not None:
        statement = statement.where(session.c.device_key == wanted.device_key)
    if wanted.status is not None:
        statement = statement.where(session.c.status == wanted.status)
    if wanted.since is not None:
        statement = statement.where(session.c.started_us >= to_us(wanted.since))
    return statement
