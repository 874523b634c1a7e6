"""Presence: which gateway a device is connected to now (`docs/rules.md 44`).

A gateway tells over its link, and the web process that holds the link renews the link's lease. When
the link ends, so does the presence it told of; when the process that held it dies, the lease does
the same a little later. Of two gateways that name one device, the newest connection wins and the
other gateway is told to end its own, by a command.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.commands import (
    add_disconnect,
    try_again_for_devices,
    try_again_for_gateway,
)
from etude.people.tables import device, device_presence, gateway_link
from etude.store import UnitOfWork
from etude.store.dialects import insert_if_absent

LEASE: Final = timedelta(seconds=15)
"""How long a gateway counts as linked after its lease was renewed."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One connection between a gateway and a web process.

    `reaches_offline`: the gateway has a broker, so it may reach devices that are not connected.
    """

    gateway_id: str
    link_id: str
    reaches_offline: bool


class Online(msgspec.Struct, frozen=True, kw_only=True):
    """A device that a gateway says is connected to it."""

    device_id: str
    connection_id: str
    since: datetime


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """Where a device is connected."""

    gateway_id: str
    connection_id: str
    since: datetime


async def open_link(work: UnitOfWork, link: Link, now: datetime) -> None:
    """Begin a lease.

    An older link of the same gateway loses its own, and what it had not answered is sent again.
    """
    now_us = to_us(now)
    values = {
        "link_id": link.link_id,
        "reaches_offline": link.reaches_offline,
        "since_us": now_us,
        "renewed_us": now_us,
    }
    named = {"gateway_id": link.gateway_id}
    await work.connection.execute(insert_if_absent(work, gateway_link).values(values | named))
    await work.connection.execute(
        update(gateway_link).where(gateway_link.c.gateway_id == link.gateway_id).values(values)
    )
    await try_again_for_gateway(work.connection, link.gateway_id, now)
    crash_point("people.link.opened")


async def renew_link(work: UnitOfWork, link: Link, now: datetime) -> bool:
    """Renew the lease; False if a newer link of this gateway has taken it, or it was ended."""
    result = await work.connection.execute(
        update(gateway_link).where(_is(link)).values(renewed_us=to_us(now))
    )
    return bool(result.rowcount)


async def holds_lease(connection: AsyncConnection, link: Link) -> bool:
    """Whether no newer link of this gateway has taken the lease."""
    return (await connection.execute(select(1).where(_is(link)))).first() is not None


async def close_link(work: UnitOfWork, link: Link) -> None:
    """End the lease and forget the devices that were told of over this link."""
    await work.connection.execute(delete(gateway_link).where(_is(link)))
    await work.connection.execute(
        delete(device_presence).where(device_presence.c.link_id == link.link_id)
    )
    crash_point("people.link.closed")


async def note_online(
    work: UnitOfWork, link: Link, devices: Iterable[Online], now: datetime
) -> None:
    """Note that devices are connected to the gateway of `link`. Devices nobody knows are left out.

    Where another linked gateway has the device as well, the newer connection stays and the gateway
    of the older one is given a command to end it.
    """
    told = {each.device_id: each for each in devices}
    keys = await _lock_devices(work.connection, told)
    known = await _rows(work.connection, keys.values())
    for device_id, key in keys.items():
        await _note(work, link, key, told[device_id], known.get(key), now)
    await try_again_for_devices(work.connection, list(keys.values()), now)
    crash_point("people.presence.noted")


async def note_offline(work: UnitOfWork, link: Link, gone: Iterable[tuple[str, str]]) -> None:
    """Forget connections, each named by device and connection id; a newer one of a device stays."""
    by_device = dict(gone)
    keys = await _lock_devices(work.connection, by_device)
    for device_id, key in keys.items():
        await work.connection.execute(
            delete(device_presence).where(
                device_presence.c.device_key == key,
                device_presence.c.gateway_id == link.gateway_id,
                device_presence.c.connection_id == by_device[device_id],
            )
        )


async def forget_untold(work: UnitOfWork, link: Link) -> None:
    """Forget what earlier links of this gateway told and this one did not: it has told all."""
    await work.connection.execute(
        delete(device_presence).where(
            device_presence.c.gateway_id == link.gateway_id,
            device_presence.c.link_id != link.link_id,
        )
    )


async def presence_of(
    connection: AsyncConnection, device_key: int, now: datetime
) -> Presence | None:
    """Return where the device is connected; None if it is not, as far as is known."""
    row = (await _rows(connection, [device_key])).get(device_key)
    if row is None or not _is_live(row, now):
        return None
    return Presence(
        gateway_id=row.gateway_id,
        connection_id=row.connection_id,
        since=from_us(row.since_us),
    )


def live(now: datetime) -> ColumnElement[bool]:
    """The condition that a row of `gateway_link` holds a lease."""
    return gateway_link.c.renewed_us > to_us(now - LEASE)


async def _note(
    work: UnitOfWork, link: Link, key: int, told: Online, row: Row[Any] | None, now: datetime
) -> None:
    since_us = to_us(told.since)
    values = {
        "gateway_id": link.gateway_id,
        "link_id": link.link_id,
        "connection_id": told.connection_id,
        "since_us": since_us,
    }
    if row is None:
        await work.connection.execute(insert(device_presence).values(device_key=key, **values))
        return
    if row.gateway_id != link.gateway_id and _is_live(row, now):
        if since_us < row.since_us:
            await add_disconnect(work, key, link.gateway_id, told.connection_id, now)
            return
        await add_disconnect(work, key, row.gateway_id, row.connection_id, now)
    await work.connection.execute(
        update(device_presence).where(device_presence.c.device_key == key).values(values)
    )


def _is_live(row: Row[Any], now: datetime) -> bool:
    return row.renewed_us is not None and row.renewed_us > to_us(now - LEASE)


def _is(link: Link) -> ColumnElement[bool]:
    return and_(
        gateway_link.c.gateway_id == link.gateway_id, gateway_link.c.link_id == link.link_id
    )


async def _lock_devices(connection: AsyncConnection, device_ids: Collection[str]) -> dict[str, int]:
    """Return the keys of the devices, their rows locked in one order.

    So two links that name the same devices wait for each other, and never in a circle.
    """
    statement = (
        select(device.c.device_id, device.c.device_key)
        .where(device.c.device_id.in_(list(device_ids)))
        .order_by(device.c.device_key)
        .with_for_update()
    )
    return {row.device_id: row.device_key for row in await connection.execute(statement)}


async def _rows(connection: AsyncConnection, keys: Iterable[int]) -> dict[int, Row[Any]]:
    statement = (
        select(device_presence, gateway_link.c.renewed_us)
        .outerjoin(
            gateway_link,
            and_(
                gateway_link.c.gateway_id == device_presence.c.gateway_id,
                gateway_link.c.link_id == device_presence.c.link_id,
            ),
        )
        .where(device_presence.c.device_key.in_(list(keys)))
    )
    rows: Sequence[Row[Any]] = (await connection.execute(statement)).all()
    return {row.device_key: row for row in rows}
