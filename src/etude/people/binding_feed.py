"""What goes over the gateways' link about bindings: what they cache, and the codes they tell."""

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec
import structlog
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, to_us
from etude.people.bind_codes import note_code
from etude.people.binding_records import (
    BINDINGS,
    CODES,
    REVOCATIONS,
    Binding,
    Held,
    PendingBinding,
    RevokedCredential,
    VoidCode,
)
from etude.people.changes import ChangeSource, Reply, ReportSink
from etude.people.errors import IdInvalidError
from etude.people.tables import (
    device,
    device_binding,
    device_credential_revocation,
    device_holder,
)
from etude.store import UnitOfWork

_log = structlog.get_logger(__name__)


def change_sources(clock: Clock) -> tuple[ChangeSource, ...]:
    """Return what gateways cache of this module, for the composition root to register."""

    async def all_bindings(connection: AsyncConnection) -> Sequence[Binding]:
        return await _bindings(connection, None, clock.now())

    async def some_bindings(
        connection: AsyncConnection, device_keys: Collection[int]
    ) -> Sequence[Binding]:
        return await _bindings(connection, device_keys, clock.now())

    return (
        ChangeSource(kind=BINDINGS, everything=all_bindings, about=some_bindings),
        ChangeSource(kind=REVOCATIONS, everything=_revocations, about=_revocations),
        ChangeSource(kind=CODES, everything=_no_codes, about=_void_codes),
    )


def report_sinks() -> tuple[ReportSink, ...]:
    """Return what takes the codes that gateways tell, for the composition root to register."""
    return (ReportSink(kind=CODES, store=_store_codes),)


async def _store_codes(
    work: UnitOfWork, gateway_id: str, items: Sequence[msgspec.Raw], now: datetime
) -> Sequence[Reply]:
    unreadable = 0
    for item in items:
        try:
            await note_code(work, msgspec.json.decode(item, type=PendingBinding), now)
        except (msgspec.DecodeError, IdInvalidError):
            unreadable += 1
    if unreadable:
        _log.warning(
            "codes of a gateway unreadable",
            action="device.codes_unreadable",
            gateway_id=gateway_id,
            count=unreadable,
        )
    return ()


async def _no_codes(_connection: AsyncConnection) -> Sequence[VoidCode]:
    return ()  # a gateway tells its codes anew at the beginning of a link


async def _void_codes(_connection: AsyncConnection, numbers: Collection[int]) -> Sequence[VoidCode]:
    return [VoidCode(code=f"{number:06}") for number in numbers]


async def _bindings(
    connection: AsyncConnection, device_keys: Collection[int] | None, now: datetime
) -> list[Binding]:
    statement = select(device.c.device_id, device_binding).join(
        device, device.c.device_key == device_binding.c.device_key
    )
    holders = select(device_holder).where(
        or_(device_holder.c.ends_us.is_(None), device_holder.c.ends_us > to_us(now))
    )
    if device_keys is None:
        statement = statement.where(device_binding.c.client_id.is_not(None))
    else:
        statement = statement.where(device_binding.c.device_key.in_(device_keys))
        holders = holders.where(device_holder.c.device_key.in_(device_keys))
    held: dict[int, list[Held]] = {}
    for row in await connection.execute(holders.order_by(device_holder.c.starts_us)):
        held.setdefault(row.device_key, []).append(
            Held(learner_key=row.learner_key, starts_us=row.starts_us, ends_us=row.ends_us)
        )
    return [
        Binding(
            device_id=row.device_id,
            device_key=row.device_key,
            client_id=row.client_id,
            valid_from_us=row.valid_from_us,
            holdings=tuple(held.get(row.device_key, ())),
        )
        for row in await connection.execute(statement)
    ]


async def _revocations(
    connection: AsyncConnection, revocation_keys: Collection[int] | None = None
) -> list[RevokedCredential]:
    table = device_credential_revocation
    statement = select(table.c.credential_id, table.c.forget_us)
    if revocation_keys is not None:
        statement = statement.where(table.c.revocation_key.in_(revocation_keys))
    return [
        RevokedCredential(credential_id=row.credential_id, forget_us=row.forget_us)
        for row in await connection.execute(statement)
    ]
