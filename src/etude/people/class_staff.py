"""Who teaches a class, and what follows: a teacher sees and assigns to own classes only."""

from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.class_errors import ClassNotYoursError, ClassStaffUnknownError
from etude.people.classes import get_class
from etude.people.records import Actor, Principal, SchoolClass
from etude.people.scopes import Scope
from etude.people.staff import get_staff
from etude.people.tables import class_staff, staff
from etude.store import UnitOfWork


async def add_teacher(
    work: UnitOfWork, class_id: str, staff_id: str, *, actor: Actor | Principal, now: datetime
) -> None:
    """Let a member of staff teach a class; twice is once.

    Raises `ClassUnknownError`, `StaffUnknownError`.
    """
    found = await get_class(work.connection, class_id, lock=True)
    teacher = await get_staff(work.connection, staff_id)
    if await _teaches(work.connection, found.class_key, teacher.staff_key):
        return
    values = {"class_key": found.class_key, "staff_key": teacher.staff_key, "since_us": to_us(now)}
    await work.connection.execute(insert(class_staff).values(values))
    crash_point("people.class.teacher_added")
    await _enter(work, "class.teacher_added", found, teacher.staff_key, actor, now)


async def remove_teacher(
    work: UnitOfWork, class_id: str, staff_id: str, *, actor: Actor | Principal, now: datetime
) -> None:
    """Let a member of staff teach a class no more.

    Raises `ClassUnknownError`, `StaffUnknownError`, or `ClassStaffUnknownError` if nobody such did.
    """
    found = await get_class(work.connection, class_id, lock=True)
    teacher = await get_staff(work.connection, staff_id)
    removed = await work.connection.execute(
        delete(class_staff).where(
            class_staff.c.class_key == found.class_key,
            class_staff.c.staff_key == teacher.staff_key,
        )
    )
    if not removed.rowcount:
        raise ClassStaffUnknownError(class_id=class_id, staff_id=staff_id)
    crash_point("people.class.teacher_removed")
    await _enter(work, "class.teacher_removed", found, teacher.staff_key, actor, now)


async def teachers_of(connection: AsyncConnection, class_key: int) -> tuple[str, ...]:
    """Return the sign-in names of those who teach a class."""
    statement = (
        select(staff.c.staff_id)
        .join(class_staff, class_staff.c.staff_key == staff.c.staff_key)
        .where(class_staff.c.class_key == class_key)
        .order_by(staff.c.staff_id)
    )
    return tuple((await connection.execute(statement)).scalars())


def only_own_classes_of(actor: Actor | Principal) -> int | None:
    """Return the key of the member of staff who sees own classes only; None: sees all.

    Own classes are for staff without `operate`. Services stand for a whole school.
    """
    if isinstance(actor, Principal) and actor.kind == "staff":
        return None if Scope.OPERATE in actor.scopes else actor.key
    return None


async def require_own(
    connection: AsyncConnection, actor: Actor | Principal, found: SchoolClass
) -> None:
    """Raise `ClassNotYoursError` (403) unless the actor may see and assign to the class."""
    staff_key = only_own_classes_of(actor)
    if staff_key is not None and not await _teaches(connection, found.class_key, staff_key):
        raise ClassNotYoursError(class_id=found.class_id)


async def _teaches(connection: AsyncConnection, class_key: int, staff_key: int) -> bool:
    statement = select(class_staff.c.class_key).where(
        class_staff.c.class_key == class_key, class_staff.c.staff_key == staff_key
    )
    return (await connection.execute(statement)).one_or_none() is not None


async def _enter(
    work: UnitOfWork,
    action: str,
    found: SchoolClass,
    staff_key: int,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    await audit.record_all(
        work,
        actor,
        action,
        subjects=[("class", found.class_key), ("staff", staff_key)],
        now=now,
        detail={"class": found.class_key, "staff": staff_key},
    )
