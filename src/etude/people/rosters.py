"""Rosters: which learner was in which class when.

Dated like holdings of devices, in half-open intervals; a learner may be in several classes, and in
one of them again after having left. The class's row is locked while that is checked and written.
Every change is marked for the gateways (`roster_feed`) in the transaction that makes it.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, Select, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.changes import mark_changed
from etude.people.class_errors import MemberIntervalError, MemberOverlapError, MemberUnknownError
from etude.people.classes import get_active_class, get_class
from etude.people.learners import get_learner
from etude.people.records import Actor, Learner, Member, Principal, SchoolClass, Subject
from etude.people.roster_records import ROSTERS
from etude.people.tables import class_member, learner, school_class
from etude.people.times import check_time
from etude.store import UnitOfWork

_MEMBER: Final = (
    class_member.c.learner_key,
    learner.c.learner_id,
    learner.c.display_name,
    class_member.c.starts_us,
    class_member.c.ends_us,
)


class InClassOf(msgspec.Struct, frozen=True, kw_only=True):
    """A learner's time in a class, as it is exported."""

    class_id: str
    class_name: str
    starts_at: datetime
    ends_at: datetime | None


async def join_class(
    work: UnitOfWork,
    class_id: str,
    learner_id: str,
    *,
    starts_at: datetime,
    ends_at: datetime | None = None,
    actor: Actor | Principal,
    now: datetime,
) -> Member:
    """Put a learner into a class from `starts_at` until just before `ends_at`.

    Who is in it from then or before until the same end stays, and nothing changes.

    Raises:
        MemberIntervalError, TimeOutOfRangeError: the time is empty, or no usable time.
        MemberOverlapError: the learner is in the class for another time that overlaps.
        ClassUnknownError, ClassArchivedError, LearnerUnknownError, LearnerErasedError: as they say.
    """
    starts_us = to_us(check_time(starts_at))
    ends_us = None if ends_at is None else to_us(check_time(ends_at))
    if ends_us is not None and ends_us <= starts_us:
        raise MemberIntervalError(starts_at=starts_at.isoformat(), ends_at=str(ends_at))
    found = await get_active_class(work.connection, class_id)
    joining = await get_learner(work.connection, learner_id, lock=True)
    overlapping = await _rows(
        work.connection,
        class_member.c.class_key == found.class_key,
        class_member.c.learner_key == joining.learner_key,
        or_(class_member.c.ends_us.is_(None), class_member.c.ends_us > starts_us),
        *(() if ends_us is None else (class_member.c.starts_us < ends_us,)),
    )
    for row in overlapping:
        if row.starts_us <= starts_us and row.ends_us == ends_us:
            return _record(row)
        raise MemberOverlapError(
            starts_at=from_us(row.starts_us).isoformat(),
            ends_at="…" if row.ends_us is None else from_us(row.ends_us).isoformat(),
        )
    await store_members(work, found, [joining], (starts_us, ends_us), actor=actor, now=now)
    return Member(
        learner_key=joining.learner_key,
        learner_id=learner_id,
        display_name=joining.display_name,
        starts_at=from_us(starts_us),
        ends_at=None if ends_us is None else from_us(ends_us),
    )


async def store_members(
    work: UnitOfWork,
    found: SchoolClass,
    joining: Collection[Learner],
    times: tuple[int, int | None],
    *,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    """Store learners as members of a locked class for the same time, audited and marked.

    That none of them is in it for a part of that time is the caller's to see to.
    """
    if not joining:
        return
    keys = [each.learner_key for each in joining]
    starts_us, ends_us = times
    rows = [
        {
            "class_key": found.class_key,
            "learner_key": key,
            "starts_us": starts_us,
            "ends_us": ends_us,
        }
        for key in keys
    ]
    await work.connection.execute(insert(class_member), rows)
    crash_point("people.class.joined")
    await _enter(work, "class.joined", found, keys, actor, now)
    await mark_changed(work, ROSTERS, keys, now)


async def leave_class(
    work: UnitOfWork,
    class_id: str,
    learner_id: str,
    *,
    at: datetime,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    """Take a learner out of a class from `at` on; twice is once. What was before stays.

    Raises `ClassUnknownError`, `LearnerUnknownError`, `LearnerErasedError`, `TimeOutOfRangeError`,
    or `MemberUnknownError` if the learner has never been in the class.
    """
    at_us = to_us(check_time(at))
    found = await get_class(work.connection, class_id, lock=True)
    leaving = await get_learner(work.connection, learner_id, lock=True)
    of_both = (
        class_member.c.class_key == found.class_key,
        class_member.c.learner_key == leaving.learner_key,
    )
    if not await _rows(work.connection, *of_both):
        raise MemberUnknownError(class_id=class_id)
    never = await work.connection.execute(
        delete(class_member).where(*of_both, class_member.c.starts_us >= at_us)
    )
    ended = await work.connection.execute(
        update(class_member)
        .where(*of_both, or_(class_member.c.ends_us.is_(None), class_member.c.ends_us > at_us))
        .values(ends_us=at_us)
    )
    if not never.rowcount + ended.rowcount:
        return
    crash_point("people.class.left")
    await _enter(work, "class.left", found, [leaving.learner_key], actor, now)
    await mark_changed(work, ROSTERS, [leaving.learner_key], now)


async def roster_at(
    connection: AsyncConnection, class_key: int, at: datetime
) -> tuple[Member, ...]:
    """Return who is in a class at `at`, in order of joining."""
    at_us = to_us(at)
    return await _members(
        connection,
        class_member.c.class_key == class_key,
        class_member.c.starts_us <= at_us,
        or_(class_member.c.ends_us.is_(None), class_member.c.ends_us > at_us),
    )


async def roster_ever(connection: AsyncConnection, class_key: int) -> tuple[Member, ...]:
    """Return who was, is or is to be in a class and when, in order of joining."""
    return await _members(connection, class_member.c.class_key == class_key)


async def classes_of_learner(
    connection: AsyncConnection, learner_key: int
) -> tuple[InClassOf, ...]:
    """Return all of a learner's times in classes, in order of time."""
    statement = (
        select(
            school_class.c.class_id,
            school_class.c.name,
            class_member.c.starts_us,
            class_member.c.ends_us,
        )
        .join(school_class, school_class.c.class_key == class_member.c.class_key)
        .where(class_member.c.learner_key == learner_key)
        .order_by(class_member.c.starts_us, class_member.c.member_key)
    )
    return tuple(
        InClassOf(
            class_id=row.class_id,
            class_name=row.name,
            starts_at=from_us(row.starts_us),
            ends_at=None if row.ends_us is None else from_us(row.ends_us),
        )
        for row in await connection.execute(statement)
    )


async def forget_learner(work: UnitOfWork, learner_key: int, now: datetime) -> None:
    """Remove a learner from every roster and its history; part of the erasure."""
    removed = await work.connection.execute(
        delete(class_member).where(class_member.c.learner_key == learner_key)
    )
    if removed.rowcount:
        await mark_changed(work, ROSTERS, [learner_key], now)


async def _enter(
    work: UnitOfWork,
    action: str,
    found: SchoolClass,
    learner_keys: Collection[int],
    actor: Actor | Principal,
    now: datetime,
) -> None:
    subjects: list[Subject] = [("learner", key) for key in learner_keys]
    detail = {"class": found.class_key}
    await audit.record_all(work, actor, action, subjects=subjects, now=now, detail=detail)


def _select() -> Select[Any]:
    return (
        select(*_MEMBER)
        .join(learner, learner.c.learner_key == class_member.c.learner_key)
        .order_by(class_member.c.starts_us, class_member.c.member_key)
    )


async def _rows(connection: AsyncConnection, *where: ColumnElement[bool]) -> list[Row[Any]]:
    return list((await connection.execute(_select().where(*where))).all())


async def _members(connection: AsyncConnection, *where: ColumnElement[bool]) -> tuple[Member, ...]:
    return tuple(_record(row) for row in await _rows(connection, *where))


def _record(row: Row[Any]) -> Member:
    return Member(
        learner_key=row.learner_key,
        learner_id=row.learner_id,
        display_name=row.display_name,
        starts_at=from_us(row.starts_us),
        ends_at=None if row.ends_us is None else from_us(row.ends_us),
    )
