"""Changes of what gateways cache: bindings, revocations, erasures (`docs/rules.md 44`).

Whoever changes such a thing marks it in the same transaction, by a kind and a surrogate key. A link
begins with a snapshot of every kind and then sends what is marked, read anew at that moment. So
marks hold nothing of anybody, two of one subject need no order, and one too many does no harm.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.tables import gateway_change
from etude.store import UnitOfWork

KEPT: Final = timedelta(minutes=10)
"""How long a mark stays: a link that has looked at none for so long begins anew."""


class ChangeSource(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of thing that gateways cache.

    Attributes:
        kind: its name on the link, at most 32 characters.
        everything: reads all that a gateway has to know, as structs.
        about: reads what it has to know now about these subjects (surrogate keys); a subject that
            is no more gives an item that says so.
    """

    kind: str
    everything: Callable[[AsyncConnection], Awaitable[Sequence[msgspec.Struct]]]
    about: Callable[[AsyncConnection, Collection[int]], Awaitable[Sequence[msgspec.Struct]]]


Reply = tuple[str, Sequence[msgspec.Struct]]
"""A kind and its items, for the gateway that has told something."""


class ReportSink(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of thing that gateways tell.

    Attributes:
        kind: its name on the link, at most 32 characters.
        store: stores items (JSON objects, not checked yet) that the gateway with this id tells, in
            this unit of work, and returns what the gateway is to be told in turn. An item may come
            again at any time. What it cannot read it passes over, or raises `InvalidError`: then
            the link is cut.
    """

    kind: str
    store: Callable[[UnitOfWork, str, Sequence[msgspec.Raw], datetime], Awaitable[Sequence[Reply]]]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One subject has changed."""

    change_key: int
    kind: str
    subject_key: int
    at: datetime


async def mark_changed(
    work: UnitOfWork, kind: str, subject_keys: Iterable[int], now: datetime
) -> None:
    """Mark subjects as changed, in the transaction that changes them."""
    rows = [{"kind": kind, "subject_key": key, "at_us": to_us(now)} for key in subject_keys]
    if rows:
        await work.connection.execute(insert(gateway_change), rows)
    crash_point("people.change.marked")


async def marks(connection: AsyncConnection, after: int = 0) -> tuple[Mark, ...]:
    """Return the marks that are still kept and have a key above `after`, oldest first.

    A mark may appear behind one with a higher key, because transactions commit in another order
    than they begin: so a reader remembers which it has seen, not how far it has come.
    """
    statement = (
        select(gateway_change)
        .where(gateway_change.c.change_key > after)
        .order_by(gateway_change.c.change_key)
    )
    rows = await connection.execute(statement)
    return tuple(
        Mark(
            change_key=row.change_key,
            kind=row.kind,
            subject_key=row.subject_key,
            at=from_us(row.at_us),
        )
        for row in rows
    )


async def forget_marks(work: UnitOfWork, now: datetime) -> None:
    """Remove the marks that every living link has seen."""
    await work.connection.execute(
        delete(gateway_change).where(gateway_change.c.at_us < to_us(now - KEPT))
    )
