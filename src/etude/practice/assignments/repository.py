"""Statements on the table of assignments.

Every function works on the connection that it is given and starts no transaction.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Row, Select, delete, exists, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us
from etude.people.paging import key_after, page
from etude.people.records import Page
from etude.people.tables import class_member, device, learner, school_class
from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.assignments.errors import AssignmentUnknownError
from etude.practice.assignments.records import Assignment
from etude.practice.assignments.tables import assignment

_SHOWN: Final = (
    assignment,
    learner.c.learner_id,
    school_class.c.class_id,
    device.c.device_id,
)


async def add(connection: AsyncConnection, values: dict[str, Any]) -> int:
    """Insert a row; return its key."""
    result = await connection.execute(
        insert(assignment).values(values).returning(assignment.c.assignment_key)
    )
    return int(result.scalar_one())


async def get(connection: AsyncConnection, assignment_id: str, *, lock: bool = False) -> Assignment:
    """Return an assignment; `lock` keeps its row until the transaction ends.

    Raises `AssignmentUnknownError`.
    """
    statement = _shown().where(assignment.c.assignment_id == assignment_id)
    if lock:
        statement = statement.with_for_update(of=assignment)
    found = (
        (await connection.execute(statement)).one_or_none() if assignment_id.isprintable() else None
    )
    if found is None:
        raise AssignmentUnknownError(assignment_id=assignment_id[:64])
    return _record(found)


async def withdraw(connection: AsyncConnection, assignment_key: int, now_us: int) -> None:
    """Note that an assignment counts no more."""
    await connection.execute(
        update(assignment)
        .where(assignment.c.assignment_key == assignment_key)
        .values(withdrawn_us=now_us)
    )


async def list_assignments(
    connection: AsyncConnection,
    *,
    learner_key: int | None = None,
    class_key: int | None = None,
    device_key: int | None = None,
    cursor: str | None = None,
    limit: int,
) -> Page[Assignment]:
    """Return a page of assignments, oldest first: all, or those of one learner, class, device."""
    statement = (
        _shown()
        .where(assignment.c.assignment_key > key_after(cursor))
        .order_by(assignment.c.assignment_key)
        .limit(limit + 1)
    )
    if learner_key is not None:
        statement = statement.where(assignment.c.learner_key == learner_key)
    if class_key is not None:
        statement = statement.where(assignment.c.class_key == class_key)
    if device_key is not None:
        statement = statement.where(assignment.c.device_key == device_key)
    rows = (await connection.execute(statement)).all()
    return page(rows, limit, _record, "assignment_key")


async def standing(
    connection: AsyncConnection, now_us: int, keys: Collection[int] | None = None
) -> list[Assigned]:
    """Return those that count now or later; of `keys` only, if they are given."""
    statement = _shown().where(
        assignment.c.withdrawn_us.is_(None),
        or_(assignment.c.ends_us.is_(None), assignment.c.ends_us > now_us),
    )
    if keys is not None:
        statement = statement.where(assignment.c.assignment_key.in_(keys))
    rows = await connection.execute(statement.order_by(assignment.c.assignment_key))
    return [_assigned(row) for row in rows]


async def pinned_to(connection: AsyncConnection, courseware_id: str, version: int) -> Sequence[str]:
    """Return the ids of assignments of a courseware's version that were not withdrawn."""
    found = await connection.scalars(
        select(assignment.c.assignment_id)
        .where(
            assignment.c.courseware_id == courseware_id,
            assignment.c.courseware_version == version,
            assignment.c.withdrawn_us.is_(None),
        )
        .order_by(assignment.c.assignment_key)
    )
    return list(found)


async def of_learner(connection: AsyncConnection, learner_key: int) -> Sequence[Assignment]:
    """Return a learner's own assignments, and those of classes while in them, oldest first."""
    starts = (assignment.c.starts_us, class_member.c.starts_us)
    ends = (assignment.c.ends_us, assignment.c.withdrawn_us, class_member.c.ends_us)
    together = exists().where(
        class_member.c.learner_key == learner_key,
        class_member.c.class_key == assignment.c.class_key,
        *(or_(end.is_(None), end > start) for end in ends for start in starts),
    )
    statement = _shown().where(or_(assignment.c.learner_key == learner_key, together))
    rows = await connection.execute(statement.order_by(assignment.c.assignment_key))
    return [_record(row) for row in rows]


async def remove_of_learner(connection: AsyncConnection, learner_key: int) -> Sequence[int]:
    """Remove a learner's assignments; return their keys."""
    result = await connection.execute(
        delete(assignment)
        .where(assignment.c.learner_key == learner_key)
        .returning(assignment.c.assignment_key)
    )
    return list(result.scalars())


def _shown() -> Select[Any]:
    return (
        select(*_SHOWN)
        .outerjoin(learner, learner.c.learner_key == assignment.c.learner_key)
        .outerjoin(school_class, school_class.c.class_key == assignment.c.class_key)
        .outerjoin(device, device.c.device_key == assignment.c.device_key)
    )


def _pin(row: Row[Any]) -> CoursewarePin | None:
    if row.courseware_id is None:
        return None
    return CoursewarePin(
        courseware_id=row.courseware_id,
        version=row.courseware_version,
        content_hash=row.content_hash,
        scene_id=row.scene_id,
    )


def _assigned(row: Row[Any]) -> Assigned:
    return Assigned(
        assignment_key=row.assignment_key,
        assignment_id=row.assignment_id,
        lesson=LessonAddress(app_id=row.app_id, task_id=row.task_id, lesson_id=row.lesson_id),
        starts_us=row.starts_us,
        ends_us=row.ends_us,
        learner_key=row.learner_key,
        class_key=row.class_key,
        device_id=row.device_id,
        listen_ratio=row.listen_ratio,
        courseware=_pin(row),
    )


def _record(row: Row[Any]) -> Assignment:
    fields = row._mapping  # noqa: SLF001 - SQLAlchemy's public name
    same = {name: fields[name] for name in Assignment.__struct_fields__ if name in fields}
    return msgspec.convert(
        same
        | {
            "courseware": _pin(row),
            "starts_at": from_us(row.starts_us),
            "ends_at": None if row.ends_us is None else from_us(row.ends_us),
            "created_at": from_us(row.created_us),
            "withdrawn_at": None if row.withdrawn_us is None else from_us(row.withdrawn_us),
        },
        Assignment,
    )
