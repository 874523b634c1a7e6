"""Device holders: which learner had which device when.

Ten toys serve 45 children, so holdings are dated (`docs/people.md §Who has which device when`).
They are half-open intervals, and one device has at most one holder at any instant; the device's row
is locked while that is checked and written.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.devices import get_device
from etude.people.errors import (
    HolderIntervalError,
    HolderMissingError,
    HolderOverlapError,
    LearnerErasedError,
)
from etude.people.learners import get_learner
from etude.people.records import Holding
from etude.people.tables import device, device_holder, learner
from etude.people.times import check_time

_HOLDING: Final = (
    device.c.device_id,
    device_holder.c.learner_key,
    learner.c.learner_id,
    device_holder.c.starts_us,
    device_holder.c.ends_us,
)


async def hold_device(
    connection: AsyncConnection,
    *,
    device_id: str,
    learner_id: str,
    starts_at: datetime,
    ends_at: datetime | None = None,
) -> Holding:
    """Give the device to the learner from `starts_at` until just before `ends_at`.

    A holding that is still open and began earlier ends at `starts_at`: that is how a device is
    handed on. Runs inside a transaction for writing.

    Raises:
        HolderIntervalError, TimeOutOfRangeError: the time is empty, or no usable time.
        HolderOverlapError: somebody holds the device for a part of that time; nothing changes.
        DeviceUnknownError, LearnerUnknownError, LearnerErasedError: as they say.
    """
    starts_us = to_us(check_time(starts_at))
    ends_us = None if ends_at is None else to_us(check_time(ends_at))
    if ends_us is not None and ends_us <= starts_us:
        raise HolderIntervalError(starts_at=starts_at.isoformat(), ends_at=str(ends_at))
    held = await get_device(connection, device_id, lock=True)
    holder = await get_learner(connection, learner_id, lock=True)
    await _refuse_overlap(connection, held.device_key, starts_us, ends_us)
    await _close_open(connection, held.device_key, starts_us)
    crash_point("people.holder.previous_closed")
    await connection.execute(
        insert(device_holder).values(
            device_key=held.device_key,
            learner_key=holder.learner_key,
            starts_us=starts_us,
            ends_us=ends_us,
        )
    )
    return Holding(
        device_id=device_id,
        learner_key=holder.learner_key,
        learner_id=learner_id,
        starts_at=from_us(starts_us),
        ends_at=from_us(ends_us) if ends_us is not None else None,
    )


async def release_device(connection: AsyncConnection, device_id: str, at: datetime) -> Holding:
    """End the open holding at `at`: nobody has the device from then on.

    Raises `DeviceUnknownError`, or `HolderMissingError` if nobody's open holding began before.
    """
    at_us = to_us(check_time(at))
    held = await get_device(connection, device_id, lock=True)
    statement = _holdings().where(_open_before(held.device_key, at_us))
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise HolderMissingError(device_id=device_id, at=at.isoformat())
    await _close_open(connection, held.device_key, at_us)
    return msgspec.structs.replace(_record(row), ends_at=from_us(at_us))


async def list_holdings(connection: AsyncConnection, device_key: int) -> tuple[Holding, ...]:
    """Return all holdings of a device in order of time."""
    statement = _holdings().where(device_holder.c.device_key == device_key)
    return tuple(_record(row) for row in (await connection.execute(statement)).all())


async def holdings_of_learner(connection: AsyncConnection, learner_key: int) -> tuple[Holding, ...]:
    """Return all holdings of a learner in order of time."""
    statement = _holdings().where(device_holder.c.learner_key == learner_key)
    return tuple(_record(row) for row in (await connection.execute(statement)).all())


async def learner_key_at(connection: AsyncConnection, device_key: int, at: datetime) -> int | None:
    """Return the surrogate key of the learner who held the device at `at`; None for nobody.

    Raises `LearnerErasedError` if that learner was erased since: what the device recorded then is
    refused for ever (`docs/rules.md 49`).
    """
    return (await holders_of(connection, [device_key])).learner_key_at(device_key, at)


class Holders:
    """Who held some devices when, in memory: one query answers many questions."""

    def __init__(self, rows: Iterable[Row[Any]]) -> None:
        """Take rows of `_HOLDERS`."""
        self._rows: dict[int, list[Row[Any]]] = {}
        for row in rows:
            self._rows.setdefault(row.device_key, []).append(row)

    def learner_key_at(self, device_key: int, at: datetime) -> int | None:
        """See the function of the same name."""
        at_us = to_us(at)
        for row in self._rows.get(device_key, ()):
            if row.starts_us <= at_us and (row.ends_us is None or row.ends_us > at_us):
                if row.erased_us is not None:
                    raise LearnerErasedError
                return int(row.learner_key)
        return None


async def holders_of(connection: AsyncConnection, device_keys: Collection[int]) -> Holders:
    """Return the holders of these devices at all times, by one indexed query."""
    return Holders(await connection.execute(_HOLDERS, {"device_keys": list(device_keys)}))


_HOLDERS: Final = (
    select(
        device_holder.c.device_key,
        device_holder.c.learner_key,
        device_holder.c.starts_us,
        device_holder.c.ends_us,
        learner.c.erased_us,
    )
    .join(learner, learner.c.learner_key == device_holder.c.learner_key)
    .where(device_holder.c.device_key.in_(bindparam("device_keys", expanding=True)))
)


def _open_before(device_key: int, at_us: int) -> ColumnElement[bool]:
    return and_(
        device_holder.c.device_key == device_key,
        device_holder.c.ends_us.is_(None),
        device_holder.c.starts_us < at_us,
    )


def _holdings() -> Select[Any]:
    return (
        select(*_HOLDING)
        .join(learner, learner.c.learner_key == device_holder.c.learner_key)
        .join(device, device.c.device_key == device_holder.c.device_key)
        .order_by(device_holder.c.starts_us)
    )


async def _close_open(connection: AsyncConnection, device_key: int, at_us: int) -> None:
    await connection.execute(
        update(device_holder).where(_open_before(device_key, at_us)).values(ends_us=at_us)
    )


async def _refuse_overlap(
    connection: AsyncConnection, device_key: int, starts_us: int, ends_us: int | None
) -> None:
    statement = _holdings().where(
        device_holder.c.device_key == device_key,
        or_(device_holder.c.ends_us.is_(None), device_holder.c.ends_us > starts_us),
        not_(_open_before(device_key, starts_us)),  # that one is handed on
    )
    if ends_us is not None:
        statement = statement.where(device_holder.c.starts_us < ends_us)
    row = (await connection.execute(statement.limit(1))).one_or_none()
    if row is not None:
        other = _record(row)
        raise HolderOverlapError(
            device_id=other.device_id,
            holder=other.learner_id or "-",
            starts_at=other.starts_at.isoformat(),
            ends_at=other.ends_at.isoformat() if other.ends_at else "…",
        )


def _record(row: Row[Any]) -> Holding:
    return Holding(
        device_id=row.device_id,
        learner_key=row.learner_key,
        learner_id=row.learner_id,
        starts_at=from_us(row.starts_us),
        ends_at=from_us(row.ends_us) if row.ends_us is not None else None,
    )
