"""Learners: those who practise."""

from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Row, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.people.errors import LearnerErasedError, LearnerUnknownError
from etude.people.names import can_be_id, check_name
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Learner, Page
from etude.people.tables import learner

DEFAULT_LOCALE: Final = "zh-CN"


def learner_id_sha256(learner_id: str) -> bytes:
    """Return what is left of a public id after erasure: 32 bytes that lead back to no id.

    That holds because ids are random (`Ids.new`): the hash of a guessable id could be guessed.
    """
    return sha256(learner_id.encode()).digest()


async def add_learner(
    connection: AsyncConnection, *, learner_id: str, display_name: str, locale: str, now: datetime
) -> Learner:
    """Store a learner under a fresh random `learner_id` (from `Ids.new`).

    Raises `NameInvalidError`.
    """
    values = {
        "learner_id": learner_id,
        "display_name": check_name(display_name),
        "locale": locale,
        "created_us": to_us(now),
    }
    return _record(
        (await connection.execute(insert(learner).values(values).returning(learner))).one()
    )


async def get_learner(
    connection: AsyncConnection, learner_id: str, *, lock: bool = False
) -> Learner:
    """Return the learner with this public id; `lock` keeps the row until the transaction ends.

    Raises `LearnerUnknownError`, or `LearnerErasedError` if there was such a learner.
    """
    if not can_be_id(learner_id):
        raise LearnerUnknownError(learner_id=learner_id)
    statement = select(learner).where(
        or_(
            learner.c.learner_id == learner_id,
            learner.c.learner_id_sha256 == learner_id_sha256(learner_id),
        )
    )
    if lock:
        statement = statement.with_for_update()
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise LearnerUnknownError(learner_id=learner_id)
    if row.erased_us is not None:
        raise LearnerErasedError
    return _record(row)


async def get_learner_by_key(connection: AsyncConnection, learner_key: int) -> Learner:
    """Return the learner with this surrogate key; raises like `get_learner`."""
    row = (
        await connection.execute(select(learner).where(learner.c.learner_key == learner_key))
    ).one_or_none()
    if row is None:
        raise LearnerUnknownError(learner_key=learner_key)
    if row.erased_us is not None:
        raise LearnerErasedError
    return _record(row)


async def list_learners(
    connection: AsyncConnection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Learner]:
    """Return a page of the learners who are not erased, oldest first."""
    statement = (
        select(learner)
        .where(learner.c.learner_key > key_after(cursor), learner.c.erased_us.is_(None))
        .order_by(learner.c.learner_key)
        .limit(limit + 1)
    )
    rows = (await connection.execute(statement)).all()
    return page(rows, limit, _record, "learner_key")


async def bury_learner(connection: AsyncConnection, learner_key: int, now: datetime) -> None:
    """Reduce the learner's row to its tombstone; part of the erasure (`docs/rules.md 13`).

    Waits for transactions that hold the row (`principal_tombstone(lock=True)`), so that an upload
    is either seen by the erasure or sees it. Raises like `get_learner_by_key`.
    """
    row = (
        await connection.execute(
            select(learner).where(learner.c.learner_key == learner_key).with_for_update()
        )
    ).one_or_none()
    if row is None:
        raise LearnerUnknownError(learner_key=learner_key)
    if row.erased_us is not None:
        raise LearnerErasedError
    await connection.execute(
        update(learner)
        .where(learner.c.learner_key == learner_key)
        .values(
            learner_id=None,
            learner_id_sha256=learner_id_sha256(row.learner_id),
            display_name=None,
            locale=None,
            created_us=None,
            erased_us=to_us(now),
        )
    )


def _record(row: Row[Any]) -> Learner:
    return Learner(
        learner_key=row.learner_key,
        learner_id=row.learner_id,
        display_name=row.display_name,
        locale=row.locale,
        created_at=from_us(row.created_us),
    )
