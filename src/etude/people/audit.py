"""The audit log: who did what to whom, when. Append-only: nothing here changes or removes an entry.

Every change to people, devices and tokens is entered in the transaction that makes it, and every
read of a learner's record by somebody else (`docs/people.md §The audit log`). Entries hold
surrogate keys and code words, never names or texts, so that an erasure has nothing to change here.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Row, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Actor, AuditEntry, Page, Principal, Subject
from etude.people.tables import audit
from etude.store import UnitOfWork

_WORD: Final = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}")
_NOTHING: Final[Mapping[str, int | str]] = {}


async def record(
    work: UnitOfWork,
    actor: Actor | Principal,
    action: str,
    *,
    subject: Subject,
    now: datetime,
    detail: Mapping[str, int | str] = _NOTHING,
) -> None:
    """Enter one action in the transaction of what it records.

    Args:
        work: the caller's unit of work.
        actor: who did it: the principal, or `HOST` on the command line.
        action: noun and verb in code words, such as `learner.read`.
        subject: whom or what it was done to.
        now: when.
        detail: code words and numbers that say more; `ValueError` for anything else.
    """
    await record_all(work, actor, action, subjects=(subject,), now=now, detail=detail)


async def record_all(
    work: UnitOfWork,
    actor: Actor | Principal,
    action: str,
    *,
    subjects: Iterable[Subject],
    now: datetime,
    detail: Mapping[str, int | str] = _NOTHING,
) -> None:
    """Enter one action once for each of several subjects, as when a list of learners is read."""
    words = (action, *detail, *(value for value in detail.values() if isinstance(value, str)))
    if not all(_WORD.fullmatch(word) for word in words):
        raise ValueError(_WORD.pattern)  # a defect of the caller; the word itself may be a name
    who = Actor.of(actor) if isinstance(actor, Principal) else actor
    entry = {
        "at_us": to_us(now),
        "actor_kind": who.kind,
        "actor_key": who.key,
        "token_key": who.token_key,
        "action": action,
        "detail": msgspec.json.encode(detail).decode(),
    }
    rows = [entry | {"subject_kind": kind, "subject_key": key} for kind, key in subjects]
    if rows:
        await work.connection.execute(insert(audit), rows)


async def list_audit(
    connection: AsyncConnection,
    *,
    subject: Subject | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[AuditEntry]:
    """Return a page of entries, oldest first; of one subject only if it is given."""
    statement = (
        select(audit)
        .where(audit.c.audit_key > key_after(cursor))
        .order_by(audit.c.audit_key)
        .limit(limit + 1)
    )
    if subject is not None:
        statement = statement.where(
            audit.c.subject_kind == subject[0], audit.c.subject_key == subject[1]
        )
    return page((await connection.execute(statement)).all(), limit, _record, "audit_key")


def _record(row: Row[Any]) -> AuditEntry:
    return AuditEntry(
        audit_key=row.audit_key,
        at=from_us(row.at_us),
        actor=Actor(kind=row.actor_kind, key=row.actor_key, token_key=row.token_key),
        action=row.action,
        subject=(row.subject_kind, row.subject_key),
        detail=msgspec.json.decode(row.detail, type=dict[str, int | str]),
    )
