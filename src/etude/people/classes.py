"""Classes: what they are called, and whether they count. Who is in them is in `rosters`."""

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.changes import mark_changed
from etude.people.class_errors import ClassArchivedError, ClassExistsError, ClassUnknownError
from etude.people.names import can_be_id, check_id, check_name
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Actor, Page, Principal, SchoolClass, Subject
from etude.people.roster_records import ROSTERS
from etude.people.tables import class_member, class_staff, school_class
from etude.store import UnitOfWork


class ClassChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be different; what is not set stays."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    grade: str | msgspec.UnsetType | None = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET


async def create_class(
    work: UnitOfWork,
    *,
    class_id: str,
    name: str,
    grade: str | None = None,
    actor: Actor | Principal,
    now: datetime,
) -> SchoolClass:
    """Store a class; the id is somebody's choice, or from `Ids.new`.

    Raises `IdInvalidError`, `NameInvalidError`, or `ClassExistsError` if the id is taken.
    """
    values = {
        "class_id": check_id(class_id),
        "name": check_name(name),
        "grade": None if grade is None else check_name(grade),
        "created_us": to_us(now),
    }
    statement = insert(school_class).values(values).returning(school_class)
    try:
        made = _record((await work.connection.execute(statement)).one())
    except IntegrityError as error:
        raise ClassExistsError(class_id=class_id) from error
    crash_point("people.class.stored")
    await audit.record(work, actor, "class.created", subject=("class", made.class_key), now=now)
    return made


async def change_class(
    work: UnitOfWork,
    class_id: str,
    change: ClassChange,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> SchoolClass:
    """Rename a class, archive it, or let it count again; what is so already changes nothing.

    Archiving keeps the roster as it is, but nobody counts as in the class.

    Raises `ClassUnknownError`, `NameInvalidError`.
    """
    found = await get_class(work.connection, class_id, lock=True)
    changed = _changed(found, change, now)
    if changed == found:
        return found
    statement = update(school_class).where(school_class.c.class_key == found.class_key)
    archived_us = None if changed.archived_at is None else to_us(changed.archived_at)
    await work.connection.execute(
        statement.values(name=changed.name, grade=changed.grade, archived_us=archived_us)
    )
    crash_point("people.class.changed")
    subject: Subject = ("class", found.class_key)
    if changed.archived_at != found.archived_at:
        action = "class.restored" if changed.archived_at is None else "class.archived"
        await audit.record(work, actor, action, subject=subject, now=now)
        await _mark_members(work, found.class_key, now)
    if (changed.name, changed.grade) != (found.name, found.grade):
        await audit.record(work, actor, "class.renamed", subject=subject, now=now)
    return changed


async def get_class(
    connection: AsyncConnection, class_id: str, *, lock: bool = False
) -> SchoolClass:
    """Return the class with this id; `lock` keeps the row until the transaction ends.

    Raises `ClassUnknownError`.
    """
    statement = select(school_class).where(school_class.c.class_id == class_id)
    if lock:
        statement = statement.with_for_update()
    row = (await connection.execute(statement)).one_or_none() if can_be_id(class_id) else None
    if row is None:
        raise ClassUnknownError(class_id=class_id[:64])
    return _record(row)


async def get_active_class(connection: AsyncConnection, class_id: str) -> SchoolClass:
    """Return and lock a class that counts; raises `ClassUnknownError`, `ClassArchivedError`."""
    found = await get_class(connection, class_id, lock=True)
    if found.archived_at is not None:
        raise ClassArchivedError(class_id=class_id)
    return found


async def list_classes(
    connection: AsyncConnection,
    *,
    staff_key: int | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[SchoolClass]:
    """Return a page of the classes, oldest first; only those that `staff_key` teaches, if given."""
    statement = (
        select(school_class)
        .where(school_class.c.class_key > key_after(cursor))
        .order_by(school_class.c.class_key)
        .limit(limit + 1)
    )
    if staff_key is not None:
        taught = select(class_staff.c.class_key).where(class_staff.c.staff_key == staff_key)
        statement = statement.where(school_class.c.class_key.in_(taught))
    return page((await connection.execute(statement)).all(), limit, _record, "class_key")


async def _mark_members(work: UnitOfWork, class_key: int, now: datetime) -> None:
    """Mark everybody who is in the class, or is to be, for the gateways."""
    statement = select(class_member.c.learner_key).where(class_member.c.class_key == class_key)
    learners = (await work.connection.execute(statement.distinct())).scalars()
    await mark_changed(work, ROSTERS, learners, now)


def _changed(found: SchoolClass, change: ClassChange, now: datetime) -> SchoolClass:
    name, grade, archived_at = found.name, found.grade, found.archived_at
    if change.name is not msgspec.UNSET:
        name = check_name(change.name)
    if change.grade is not msgspec.UNSET:
        grade = None if change.grade is None else check_name(change.grade)
    if change.archived is not msgspec.UNSET:
        archived_at = (archived_at or now) if change.archived else None
    return msgspec.structs.replace(found, name=name, grade=grade, archived_at=archived_at)


def _record(row: Row[Any]) -> SchoolClass:
    return SchoolClass(
        class_key=row.class_key,
        class_id=row.class_id,
        name=row.name,
        grade=row.grade,
        created_at=from_us(row.created_us),
        archived_at=None if row.archived_us is None else from_us(row.archived_us),
    )
