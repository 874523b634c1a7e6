"""Staff: operators, who run the installation, and teachers, who run classes."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.people.errors import StaffExistsError, StaffUnknownError
from etude.people.names import can_be_id, check_id, check_name
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Page, Role, Staff
from etude.people.tables import staff


async def add_staff(
    connection: AsyncConnection,
    *,
    staff_id: str,
    name: str,
    role: Role,
    password_hash: str,
    now: datetime,
) -> Staff:
    """Store a member of staff who signs in as `staff_id` with the password of `password_hash`.

    Raises `IdInvalidError`, `NameInvalidError`, or `StaffExistsError` if the sign-in name is taken.
    """
    values = {
        "staff_id": check_id(staff_id),
        "name": check_name(name),
        "role": role,
        "password_hash": password_hash,
        "created_us": to_us(now),
    }
    try:
        result = await connection.execute(insert(staff).values(values).returning(staff))
    except IntegrityError as error:
        raise StaffExistsError(staff_id=staff_id) from error
    return _record(result.one())


async def get_staff(connection: AsyncConnection, staff_id: str) -> Staff:
    """Return the member of staff with this sign-in name; raises `StaffUnknownError`."""
    statement = select(staff).where(staff.c.staff_id == staff_id)
    row = (await connection.execute(statement)).one_or_none() if can_be_id(staff_id) else None
    if row is None:
        raise StaffUnknownError(staff_id=staff_id)
    return _record(row)


async def list_staff(
    connection: AsyncConnection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Staff]:
    """Return a page of the staff, oldest first."""
    statement = (
        select(staff)
        .where(staff.c.staff_key > key_after(cursor))
        .order_by(staff.c.staff_key)
        .limit(limit + 1)
    )
    return page((await connection.execute(statement)).all(), limit, _record, "staff_key")


async def count_operators(connection: AsyncConnection) -> int:
    """Return how many operators there are: `init` makes the first one."""
    statement = select(func.count()).select_from(staff).where(staff.c.role == "operator")
    return (await connection.execute(statement)).scalar_one()


async def password_hash_of(connection: AsyncConnection, staff_id: str) -> str | None:
    """Return the stored hash for `verify_password`; None if nobody has that sign-in name."""
    if not can_be_id(staff_id):
        return None
    statement = select(staff.c.password_hash).where(staff.c.staff_id == staff_id)
    return (await connection.execute(statement)).scalar_one_or_none()


async def set_password(connection: AsyncConnection, staff_id: str, password_hash: str) -> Staff:
    """Replace the password's hash; raises `StaffUnknownError`."""
    await get_staff(connection, staff_id)
    statement = update(staff).where(staff.c.staff_id == staff_id)
    result = await connection.execute(
        statement.values(password_hash=password_hash).returning(staff)
    )
    return _record(result.one())


def _record(row: Row[Any]) -> Staff:
    return Staff(
        staff_key=row.staff_key,
        staff_id=row.staff_id,
        name=row.name,
        role=row.role,
        created_at=from_us(row.created_us),
    )
