"""Codes that unbound devices show, as their gateways have told."""

import re
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import and_, case, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.binding_records import CODES, PendingBinding, Proof
from etude.people.changes import mark_changed
from etude.people.device_credentials import MAX_CLIENT_ID
from etude.people.errors import (
    BindCodeExpiredError,
    BindCodeUnknownError,
    BindCodeUsedError,
    BindProofMissingError,
    IdInvalidError,
)
from etude.people.names import MAX_DEVICE_ID, can_be_id, check_id
from etude.people.tables import device_bind_code
from etude.store import UnitOfWork

MAX_LIFE: Final = timedelta(hours=24)
CODES_KEPT: Final = timedelta(hours=1)
"""How long after its end a code is still told apart from one that never was."""
_CODE: Final = re.compile(r"[0-9]{6}")


class ShownCode(msgspec.Struct, frozen=True, kw_only=True):
    """A code that a device shows now, for a person to recognise the device by."""

    code: str
    device_id: str
    board: str
    version: str
    expires_at: datetime


async def note_code(work: UnitOfWork, pending: PendingBinding, now: datetime) -> None:
    """Store a code that a gateway has told, or what it tells anew of it.

    A code that a device of another gateway shows too is void from now on, and the gateways are told
    so: bound with it, it might be the wrong device. Codes whose end is `CODES_KEPT` ago are removed
    meanwhile.

    Raises `IdInvalidError` for a code, device or client id that can be none.
    """
    if not _CODE.fullmatch(pending.code) or len(pending.client_id) > MAX_CLIENT_ID:
        raise IdInvalidError(longest=MAX_CLIENT_ID)
    check_id(pending.device_id, MAX_DEVICE_ID)
    now_us, connection = to_us(now), work.connection
    oldest_us = to_us(now - CODES_KEPT)
    await connection.execute(
        delete(device_bind_code).where(device_bind_code.c.expires_us < oldest_us)
    )
    described = {
        "board": pending.board[:64],
        "version": pending.version[:32],
        "serial": pending.serial[:64],
    }
    values = described | {
        "code": pending.code,
        "device_id": pending.device_id,
        "client_id": pending.client_id,
        "proof": pending.proof.value,
        "created_us": now_us,
        "expires_us": min(pending.expires_us, to_us(now + MAX_LIFE)),
    }
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    wanted = dialect.insert(device_bind_code).values(values)
    same = and_(
        device_bind_code.c.device_id == pending.device_id,
        device_bind_code.c.client_id == pending.client_id,
    )
    stored = await connection.execute(
        wanted.on_conflict_do_update(
            index_elements=["code"],
            set_={name: wanted.excluded[name] for name in values if name != "code"}
            | {"used_us": case((same, device_bind_code.c.used_us), else_=None)},
            where=or_(same, device_bind_code.c.expires_us <= now_us),
        ).returning(device_bind_code.c.code)
    )
    if stored.one_or_none() is None:
        await connection.execute(
            update(device_bind_code)
            .where(device_bind_code.c.code == pending.code)
            .values(expires_us=now_us)
        )
        await mark_changed(work, CODES, [int(pending.code)], now)
    crash_point("people.bind_code.noted")


async def shown_codes(connection: AsyncConnection, now: datetime) -> tuple[ShownCode, ...]:
    """Return the codes that can be typed now, the newest first, at most 200."""
    statement = (
        select(device_bind_code)
        .where(device_bind_code.c.expires_us > to_us(now), device_bind_code.c.used_us.is_(None))
        .order_by(device_bind_code.c.created_us.desc(), device_bind_code.c.code)
        .limit(200)
    )
    return tuple(
        ShownCode(
            code=row.code,
            device_id=row.device_id,
            board=row.board,
            version=row.version,
            expires_at=from_us(row.expires_us),
        )
        for row in (await connection.execute(statement)).all()
    )


async def use_code(connection: AsyncConnection, code: str, now: datetime) -> Any:  # noqa: ANN401 - a row
    """Mark the code as used in one statement, so that it cannot be used twice; return its row.

    Raises `BindCodeUnknownError`, `BindCodeExpiredError`, `BindCodeUsedError`,
    `BindProofMissingError`.
    """
    if not can_be_id(code):
        raise BindCodeUnknownError(bind_code="-")
    now_us = to_us(now)
    used = await connection.execute(
        update(device_bind_code)
        .where(
            device_bind_code.c.code == code,
            device_bind_code.c.used_us.is_(None),
            device_bind_code.c.expires_us > now_us,
        )
        .values(used_us=now_us)
        .returning(device_bind_code)
    )
    row = used.one_or_none()
    if row is None:
        raise await _why_not(connection, code)
    if row.proof == Proof.AWAITED:
        raise BindProofMissingError(device_id=row.device_id)
    return row


async def _why_not(connection: AsyncConnection, code: str) -> Exception:
    statement = select(device_bind_code).where(device_bind_code.c.code == code)
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return BindCodeUnknownError(bind_code=code[:16])
    if row.used_us is not None:
        return BindCodeUsedError(bind_code=code, device_id=row.device_id)
    return BindCodeExpiredError(bind_code=code, expired_at=from_us(row.expires_us).isoformat())
