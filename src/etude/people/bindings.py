"""Bindings: which devices may connect, made by typing the code that a device shows.

Trust on first use: an operator who reads the code off a device binds its id to the client id that
it had then. Whoever comes with that id and another client id gets no credential but a code of its
own, and binding that one is refused unless it is asked for (`rebind`): a device that was reset
looks no different from somebody who uses its id, so a person decides, who sees the device.

Every change is marked for the gateways (`binding_feed`) in the transaction that makes it.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.bind_codes import use_code
from etude.people.binding_records import BINDINGS, REVOCATIONS, Proof
from etude.people.changes import mark_changed
from etude.people.device_credentials import LIFETIME, MAX_AHEAD
from etude.people.devices import get_device
from etude.people.errors import (
    DeviceBoundElsewhereError,
    DeviceNotBoundError,
)
from etude.people.holders import hold_device
from etude.people.names import MAX_DEVICE_ID, MAX_ID, check_id, check_name
from etude.people.records import Actor, Device, Principal, Subject
from etude.people.tables import (
    device,
    device_binding,
    device_credential_revocation,
)
from etude.store import UnitOfWork


class BindRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for.

    Attributes:
        code: the six digits that the device shows.
        name: what the device is called if it is not registered yet; its id without one.
        learner_id: who has it from now on, if anybody.
        rebind: take the place of the client id that the device is bound with.
    """

    code: str
    name: str | None = None
    learner_id: str | None = None
    rebind: bool = False


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """A device was bound. `rebound`: with another client id than before."""

    device: Device
    rebound: bool
    learner_id: str | None


async def bind_device(
    work: UnitOfWork, wanted: BindRequest, *, actor: Actor | Principal, now: datetime
) -> Bound:
    """Bind the device that shows a code; registers it if it is new. Entered into the audit log.

    Of several who type the same code at once, one binds and the others are told.

    Raises:
        BindCodeUnknownError, BindCodeExpiredError, BindCodeUsedError: as they say.
        BindProofMissingError: the device has to prove its serial number first.
        DeviceBoundElsewhereError: it is bound with another client id, and `rebind` is not asked.
        IdInvalidError, NameInvalidError: the device's id or name is none.
        LearnerUnknownError, LearnerErasedError, HolderOverlapError: nothing was bound.
    """
    shown = await use_code(work.connection, wanted.code.strip(), now)
    made, is_new = await _registered(work.connection, shown.device_id, wanted.name, now)
    rebound = await _store(work.connection, made, shown, now, rebind=wanted.rebind)
    if wanted.learner_id is not None:
        await _hold(work, made, wanted.learner_id, actor, now)
    crash_point("people.binding.stored")
    subject: Subject = ("device", made.device_key)
    if is_new:
        await audit.record(work, actor, "device.added", subject=subject, now=now)
    detail = {"rebound": int(rebound)}
    await audit.record(work, actor, "device.bound", subject=subject, now=now, detail=detail)
    await mark_device(work, made.device_key, now)
    return Bound(device=made, rebound=rebound, learner_id=wanted.learner_id)


async def unbind_device(
    work: UnitOfWork, device_id: str, *, actor: Actor | Principal, now: datetime
) -> Device:
    """Let the device in no more, whatever credential it has, until it is bound again.

    Raises `DeviceUnknownError`, `DeviceNotBoundError`.
    """
    changed = {"client_id": None, "valid_from_us": to_us(now)}
    return await _change(work, device_id, changed, "device.unbound", actor, now)


async def revoke_credentials(
    work: UnitOfWork, device_id: str, *, actor: Actor | Principal, now: datetime
) -> Device:
    """Refuse every credential that the device has; it stays bound and gets another at its start.

    Raises `DeviceUnknownError`, `DeviceNotBoundError`.
    """
    changed = {"valid_from_us": to_us(now)}
    return await _change(work, device_id, changed, "device.credentials_revoked", actor, now)


async def revoke_credential(
    work: UnitOfWork,
    device_id: str,
    credential_id: str,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> Device:
    """Refuse one credential, by the id that the gateway's log shows; once is enough.

    Raises `DeviceUnknownError`, `IdInvalidError`.
    """
    found = await get_device(work.connection, device_id, lock=True)
    table = device_credential_revocation
    await work.connection.execute(delete(table).where(table.c.forget_us < to_us(now)))
    known = select(table.c.revocation_key).where(
        table.c.credential_id == check_id(credential_id, MAX_ID)
    )
    if (await work.connection.execute(known)).one_or_none() is not None:
        return found
    result = await work.connection.execute(
        insert(table)
        .values(
            credential_id=credential_id,
            device_key=found.device_key,
            revoked_us=to_us(now),
            forget_us=to_us(now + LIFETIME + MAX_AHEAD),
        )
        .returning(table.c.revocation_key)
    )
    key = result.scalar_one()
    crash_point("people.binding.credential_revoked")
    subject: Subject = ("device", found.device_key)
    await audit.record(work, actor, "device.credential_revoked", subject=subject, now=now)
    await mark_changed(work, REVOCATIONS, [key], now)
    return found


async def mark_device(work: UnitOfWork, device_key: int, now: datetime) -> None:
    """Let the gateways know that something of a device has changed: its binding or its holders."""
    await mark_changed(work, BINDINGS, [device_key], now)


async def bound_among(connection: AsyncConnection, device_keys: Collection[int]) -> frozenset[int]:
    """Return which of these devices are bound."""
    statement = select(device_binding.c.device_key).where(
        device_binding.c.device_key.in_(device_keys), device_binding.c.client_id.is_not(None)
    )
    return frozenset((await connection.execute(statement)).scalars())


async def _registered(
    connection: AsyncConnection, device_id: str, name: str | None, now: datetime
) -> tuple[Device, bool]:
    """Return the device, its row locked, and whether it was registered just now."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    made = await connection.execute(
        dialect.insert(device)
        .values(
            device_id=check_id(device_id, MAX_DEVICE_ID),
            name=check_name(name or device_id),
            created_us=to_us(now),
        )
        .on_conflict_do_nothing()
        .returning(device.c.device_key)
    )
    is_new = made.one_or_none() is not None
    return await get_device(connection, device_id, lock=True), is_new


async def _store(
    connection: AsyncConnection,
    bound: Device,
    shown: Any,  # noqa: ANN401 - a row
    now: datetime,
    *,
    rebind: bool,
) -> bool:
    """Write the binding of a locked device; return whether it replaces another client id."""
    where = device_binding.c.device_key == bound.device_key
    before = (await connection.execute(select(device_binding).where(where))).one_or_none()
    other = before is not None and before.client_id not in {None, shown.client_id}
    if other and not rebind:
        raise DeviceBoundElsewhereError(device_id=bound.device_id)
    values = {
        "client_id": shown.client_id,
        "serial": (shown.serial or None) if shown.proof == Proof.SHOWN else None,
        "bound_us": to_us(now),
    }
    if before is None:
        new = values | {"device_key": bound.device_key, "valid_from_us": 0}
        await connection.execute(insert(device_binding).values(new))
    else:
        await connection.execute(update(device_binding).where(where).values(values))
    return other


async def _hold(
    work: UnitOfWork, held: Device, learner_id: str, actor: Actor | Principal, now: datetime
) -> None:
    holding = await hold_device(
        work.connection, device_id=held.device_id, learner_id=learner_id, starts_at=now
    )
    await audit.record_all(
        work,
        actor,
        "device.held",
        subjects=[("device", held.device_key), ("learner", holding.learner_key)],
        now=now,
        detail={"device": held.device_key, "learner": holding.learner_key},
    )


async def _change(
    work: UnitOfWork,
    device_id: str,
    values: dict[str, Any],
    action: str,
    actor: Actor | Principal,
    now: datetime,
) -> Device:
    found = await get_device(work.connection, device_id, lock=True)
    result = await work.connection.execute(
        update(device_binding)
        .where(
            device_binding.c.device_key == found.device_key,
            device_binding.c.client_id.is_not(None),
        )
        .values(values)
        .returning(device_binding.c.device_key)
    )
    if result.one_or_none() is None:
        raise DeviceNotBoundError(device_id=device_id)
    crash_point("people.binding.changed")
    await audit.record(work, actor, action, subject=("device", found.device_key), now=now)
    await mark_device(work, found.device_key, now)
    return found
