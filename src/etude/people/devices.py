"""Devices: what records sessions. Who has one when is in `holders`."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.people.errors import DeviceExistsError, DeviceUnknownError
from etude.people.names import MAX_DEVICE_ID, can_be_id, check_id, check_name
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Device, Page
from etude.people.tables import device


async def add_device(
    connection: AsyncConnection, *, device_id: str, name: str, now: datetime
) -> Device:
    """Store a device; `name` says which one it is, not whose.

    Raises `IdInvalidError`, `NameInvalidError`, or `DeviceExistsError` if the id is registered.
    """
    values = {
        "device_id": check_id(device_id, MAX_DEVICE_ID),
        "name": check_name(name),
        "created_us": to_us(now),
    }
    try:
        result = await connection.execute(insert(device).values(values).returning(device))
    except IntegrityError as error:
        raise DeviceExistsError(device_id=device_id) from error
    return _record(result.one())


async def get_device(connection: AsyncConnection, device_id: str, *, lock: bool = False) -> Device:
    """Return the device with this id; `lock` keeps the row until the transaction ends.

    Raises `DeviceUnknownError`.
    """
    statement = select(device).where(device.c.device_id == device_id)
    if lock:
        statement = statement.with_for_update()
    row = (await connection.execute(statement)).one_or_none() if can_be_id(device_id) else None
    if row is None:
        raise DeviceUnknownError(device_id=device_id)
    return _record(row)


async def get_device_by_key(connection: AsyncConnection, device_key: int) -> Device:
    """Return the device with this surrogate key; raises `DeviceUnknownError`."""
    statement = select(device).where(device.c.device_key == device_key)
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise DeviceUnknownError(device_id=f"#{device_key}")
    return _record(row)


async def list_devices(
    connection: AsyncConnection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Device]:
    """Return a page of the devices, oldest first."""
    statement = (
        select(device)
        .where(device.c.device_key > key_after(cursor))
        .order_by(device.c.device_key)
        .limit(limit + 1)
    )
    return page((await connection.execute(statement)).all(), limit, _record, "device_key")


def _record(row: Row[Any]) -> Device:
    return Device(
        device_key=row.device_key,
        device_id=row.device_id,
        name=row.name,
        created_at=from_us(row.created_us),
    )
