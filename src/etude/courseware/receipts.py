"""What a publication was answered with, and from which state of its sources it was frozen.

A receipt is noted for every target: this installation (`HERE`), or the server that courses are
published to. The newest one that was not withdrawn says what is published there.
"""

from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.courseware.tables import course_receipt
from etude.store.work import UnitOfWork

HERE: Final = ""
"""The target of what is published in this installation's own registry."""


class ReceiptModule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A published module, and the state of the classroom from which it was frozen."""

    index: int
    courseware_id: str
    courseware_version: int
    content_hash: str
    source_revision_hash: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A publication that `target` confirmed."""

    course_id: str
    target: str
    version: int
    manifest_hash: str
    modules: tuple[ReceiptModule, ...]
    received_at: datetime


async def keep(work: UnitOfWork, receipt: Receipt) -> None:
    """Note a receipt, unless the newest one says the same."""
    before = await newest(work.connection, receipt.course_id, receipt.target)
    if before is not None:
        same_time = msgspec.structs.replace(before, received_at=receipt.received_at)
        if same_time == receipt:
            return
    row = {
        "course_id": receipt.course_id,
        "target": receipt.target,
        "version": receipt.version,
        "manifest_hash": receipt.manifest_hash,
        "modules": msgspec.json.encode(receipt.modules),
        "received_us": to_us(receipt.received_at),
    }
    await work.connection.execute(insert(course_receipt).values(row))


async def is_known(connection: AsyncConnection, receipt: Receipt) -> bool:
    """Return whether the version was confirmed before, whatever became of it since."""
    kept = course_receipt.c
    same = (kept.course_id == receipt.course_id) & (kept.target == receipt.target)
    wanted = select(kept.receipt_key).where(same & (kept.version == receipt.version)).limit(1)
    return (await connection.execute(wanted)).first() is not None


async def newest(connection: AsyncConnection, course_id: str, target: str) -> Receipt | None:
    """Return what is published of a course at a target, as far as is known here."""
    kept = course_receipt.c
    rows = await connection.execute(
        select(course_receipt)
        .where(kept.course_id == course_id, kept.target == target, kept.withdrawn_us.is_(None))
        .order_by(kept.receipt_key.desc())
        .limit(1)
    )
    row = rows.first()
    if row is None:
        return None
    return Receipt(
        course_id=row.course_id,
        target=row.target,
        version=row.version,
        manifest_hash=row.manifest_hash,
        modules=msgspec.json.decode(row.modules, type=tuple[ReceiptModule, ...]),
        received_at=from_us(row.received_us),
    )


async def note_withdrawn(
    work: UnitOfWork, course_id: str, target: str, version: int, now_us: int
) -> None:
    """Note that a version is published no more."""
    kept = course_receipt.c
    which = (kept.course_id == course_id) & (kept.target == target) & (kept.version == version)
    await work.connection.execute(
        update(course_receipt)
        .where(which & kept.withdrawn_us.is_(None))
        .values(withdrawn_us=now_us)
    )
