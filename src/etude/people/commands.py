"""Commands: what a gateway is to do with a device, kept until it is done (`docs/rules.md 44`).

A command is known by its `msg_id`, which goes all the way to the device. It is sent to the gateway
that has the device, again and again until that answers or the command's time is over; every gateway
does one `msg_id` once. What actions and payloads mean is no business of this module.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, delete, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.errors import CommandUnknownError, MessageIdTakenError
from etude.people.tables import device, device_presence, gateway_command, gateway_link
from etude.store import UnitOfWork
from etude.store.dialects import insert_if_absent

DISCONNECT: Final = "DISCONNECT"
"""End one connection of the device, named by `connection_id`: a newer one is elsewhere."""

ANSWER_WITHIN: Final = timedelta(seconds=15)
"""How long a gateway has before a command is sent to it again."""
KEPT: Final = timedelta(days=30)
MAX_MESSAGE: Final = 200
MAX_CODE: Final = 2**31 - 1
_DISCONNECT_WITHIN: Final = timedelta(seconds=60)
_LONGEST_PAUSE_S: Final = 30
_OPEN: Final = gateway_command.c.next_try_us.is_not(None)


class CommandState(StrEnum):
    """How far a command has come."""

    WAITING = "waiting"
    """No gateway has it: the device is not connected, or it could not be reached the last time."""
    SENT = "sent"
    """A gateway has it and has not answered yet."""
    DONE = "done"
    REFUSED = "refused"
    """Device or gateway said no; `code` and `message` say why."""
    EXPIRED = "expired"
    """Its time was over before anybody answered. If it had been sent, it may have been done."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it stands. `code` and `message` are the device's or gateway's answer."""

    msg_id: str
    device_id: str
    action: str
    payload: str
    state: CommandState
    created_at: datetime
    expires_at: datetime
    settled_at: datetime | None
    code: int | None
    message: str | None


class NewCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done. `payload` is JSON."""

    msg_id: str
    device_key: int
    action: str
    payload: str
    within: timedelta


async def add_command(work: UnitOfWork, wanted: NewCommand, now: datetime) -> bool:
    """Store a command; False if it is there already, which is no error.

    Raises `MessageIdTakenError` if its `msg_id` names something else.
    """
    added = await _insert(work, wanted, now)
    if not added:
        await _refuse_other(work.connection, wanted)
    crash_point("people.command.added")
    return added


async def add_disconnect(
    work: UnitOfWork, device_key: int, gateway_id: str, connection_id: str, now: datetime
) -> None:
    """Store a command for one gateway to end one connection; once, however often it is asked."""
    wanted = NewCommand(
        # Of a connection's id (a UUID), so that every gateway that finds out asks for the same.
        msg_id=f"end-{connection_id}"[:64],
        device_key=device_key,
        action=DISCONNECT,
        payload=msgspec.json.encode({"connection_id": connection_id}).decode(),
        within=_DISCONNECT_WITHIN,
    )
    await _insert(work, wanted, now, gateway_id)


async def get_command(
    connection: AsyncConnection, device_key: int, msg_id: str, now: datetime
) -> Command:
    """Return a command of this device; raises `CommandUnknownError`."""
    statement = _commands().where(
        gateway_command.c.msg_id == msg_id, gateway_command.c.device_key == device_key
    )
    row = (await connection.execute(statement)).one_or_none() if msg_id.isprintable() else None
    if row is None:
        raise CommandUnknownError(msg_id=msg_id[:64])
    return _record(row, to_us(now))


async def any_due(
    connection: AsyncConnection, gateway_id: str, now: datetime, lease: timedelta
) -> bool:
    """Whether `claim_due` would find something. Cheap: asked several times a second."""
    statement = _due(gateway_id, to_us(now), to_us(now - lease)).limit(1)
    return (await connection.execute(statement)).first() is not None


async def claim_due(
    work: UnitOfWork, gateway_id: str, now: datetime, lease: timedelta, limit: int
) -> tuple[Command, ...]:
    """Take the commands that this gateway is to do now, oldest first.

    They are the gateway's until `ANSWER_WITHIN` is over; then they may be taken again. Two links
    never take the same one. Commands whose time is over are settled as expired.
    """
    now_us = to_us(now)
    await _expire(work.connection, now_us)
    statement = (
        _due(gateway_id, now_us, to_us(now - lease))
        .order_by(gateway_command.c.command_key)
        .limit(limit)
        .with_for_update(of=gateway_command, skip_locked=True)
    )
    rows = (await work.connection.execute(statement)).all()
    await work.connection.execute(
        update(gateway_command)
        .where(gateway_command.c.command_key.in_([row.command_key for row in rows]))
        .values(
            state=CommandState.SENT,
            sent_to=gateway_id,
            tries=gateway_command.c.tries + 1,
            next_try_us=to_us(now + ANSWER_WITHIN),
        )
    )
    crash_point("people.command.claimed")
    return tuple(_record(row, now_us) for row in rows)


async def settle(
    work: UnitOfWork,
    msg_id: str,
    state: CommandState,
    *,
    code: int,
    message: str,
    now: datetime,
) -> None:
    """Note the gateway's answer, `DONE` or `REFUSED`; a command that is settled stays as it is."""
    await work.connection.execute(
        update(gateway_command)
        .where(gateway_command.c.msg_id == msg_id, _OPEN)
        .values(
            state=state,
            next_try_us=None,
            settled_us=to_us(now),
            code=max(-MAX_CODE, min(code, MAX_CODE)),
            message=_clean(message),
        )
    )
    crash_point("people.command.settled")


async def put_back(work: UnitOfWork, msg_id: str, now: datetime) -> None:
    """Note that the gateway could not reach the device: it is tried again after a pause."""
    row = (
        await work.connection.execute(
            select(gateway_command.c.tries).where(gateway_command.c.msg_id == msg_id, _OPEN)
        )
    ).one_or_none()
    if row is None:
        return
    pause = timedelta(seconds=min(2.0 ** min(row.tries, 10), _LONGEST_PAUSE_S))
    await work.connection.execute(
        update(gateway_command)
        .where(gateway_command.c.msg_id == msg_id, _OPEN)
        .values(state=CommandState.WAITING, next_try_us=to_us(now + pause))
    )


async def try_again_for_gateway(
    connection: AsyncConnection, gateway_id: str, now: datetime
) -> None:
    """Make due at once what this gateway has not answered: its link has broken meanwhile."""
    await connection.execute(
        update(gateway_command)
        .where(gateway_command.c.sent_to == gateway_id, _OPEN)
        .values(next_try_us=to_us(now))
    )


async def try_again_for_devices(
    connection: AsyncConnection, device_keys: Collection[int], now: datetime
) -> None:
    """Make due at once what waits for these devices: they have just come."""
    await connection.execute(
        update(gateway_command)
        .where(
            gateway_command.c.device_key.in_(device_keys),
            gateway_command.c.state == CommandState.WAITING,
        )
        .values(next_try_us=to_us(now))
    )


async def forget_old(work: UnitOfWork, now: datetime) -> None:
    """Settle what is over, and remove what was settled more than `KEPT` ago."""
    await _expire(work.connection, to_us(now))
    await work.connection.execute(
        delete(gateway_command).where(gateway_command.c.settled_us < to_us(now - KEPT))
    )


async def _insert(
    work: UnitOfWork, wanted: NewCommand, now: datetime, gateway_id: str | None = None
) -> bool:
    statement = insert_if_absent(work, gateway_command).values(
        msg_id=wanted.msg_id,
        device_key=wanted.device_key,
        action=wanted.action,
        payload=wanted.payload,
        gateway_id=gateway_id,
        state=CommandState.WAITING,
        tries=0,
        created_us=to_us(now),
        expires_us=to_us(now + wanted.within),
        next_try_us=to_us(now),
    )
    return bool((await work.connection.execute(statement)).rowcount)


async def _refuse_other(connection: AsyncConnection, wanted: NewCommand) -> None:
    columns = gateway_command.c
    statement = select(columns.device_key, columns.action, columns.payload).where(
        columns.msg_id == wanted.msg_id
    )
    row = (await connection.execute(statement)).one()
    if tuple(row) != (wanted.device_key, wanted.action, wanted.payload):
        raise MessageIdTakenError(msg_id=wanted.msg_id)


async def _expire(connection: AsyncConnection, now_us: int) -> None:
    await connection.execute(
        update(gateway_command)
        .where(gateway_command.c.next_try_us <= now_us, gateway_command.c.expires_us <= now_us)
        .values(state=CommandState.EXPIRED, next_try_us=None, settled_us=now_us)
    )


def _due(gateway_id: str, now_us: int, leased_since_us: int) -> Select[Any]:
    """Commands for this gateway: meant for it alone, or for a device that it has.

    If it has a broker, also those for devices that no linked gateway has.
    """
    own, other = gateway_link.alias("own"), gateway_link.alias("other")
    here = device_presence.c.gateway_id == gateway_id
    return (
        _commands()
        .join(own, own.c.gateway_id == gateway_id)
        .outerjoin(device_presence, device_presence.c.device_key == gateway_command.c.device_key)
        .outerjoin(
            other,
            and_(
                other.c.gateway_id == device_presence.c.gateway_id,
                other.c.link_id == device_presence.c.link_id,
                other.c.renewed_us > leased_since_us,
            ),
        )
        .where(
            gateway_command.c.next_try_us <= now_us,
            gateway_command.c.expires_us > now_us,
            or_(
                gateway_command.c.gateway_id == gateway_id,
                and_(
                    gateway_command.c.gateway_id.is_(None),
                    or_(
                        and_(here, other.c.gateway_id.is_not(None)),
                        _reaches_anybody(own.c.reaches_offline, other.c.gateway_id),
                    ),
                ),
            ),
        )
    )


def _reaches_anybody(
    reaches_offline: ColumnElement[bool], elsewhere: ColumnElement[str]
) -> ColumnElement[bool]:
    return and_(reaches_offline.is_(True), elsewhere.is_(None))


def _commands() -> Select[Any]:
    return select(gateway_command, device.c.device_id).join(
        device, device.c.device_key == gateway_command.c.device_key
    )


def _record(row: Row[Any], now_us: int) -> Command:
    over = row.next_try_us is not None and row.expires_us <= now_us
    return Command(
        msg_id=row.msg_id,
        device_id=row.device_id,
        action=row.action,
        payload=row.payload,
        state=CommandState.EXPIRED if over else CommandState(row.state),
        created_at=from_us(row.created_us),
        expires_at=from_us(row.expires_us),
        settled_at=from_us(row.expires_us if over else row.settled_us)
        if over or row.settled_us is not None
        else None,
        code=row.code,
        message=row.message,
    )


def _clean(message: str) -> str:
    """What a device says goes into lists and logs: one line of printable text, not too long."""
    return "".join(each if each.isprintable() else " " for each in message)[:MAX_MESSAGE]
