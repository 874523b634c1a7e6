"""Statements on the registry. Rows are added, never changed, never removed.

Every function works on the connection or unit of work it is given and starts no transaction.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import exists, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.courseware.tables import (
    course_manifest,
    course_manifest_pin,
    course_manifest_withdrawal,
    courseware_version,
)
from etude.store.dialects import insert_if_absent
from etude.store.work import UnitOfWork


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a courseware. `content_hash_version` 1: of an older system, of raw bytes."""

    courseware_id: str
    version: int
    content_hash: str
    content_hash_version: int
    bundle_sha256: str
    size_bytes: int
    title: str
    course_id: str
    module_index: int
    created_us: int


class ManifestRow(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest as stored. `schema_version` 1: of an older system, `body` is its record."""

    course_id: str
    version: int
    schema_version: int
    title: str
    body: bytes
    manifest_hash: str
    published_us: int


class PinRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest pins."""

    course_id: str
    version: int
    module_index: int
    courseware_id: str
    courseware_version: int


_VERSION: Final = [courseware_version.c[name] for name in VersionRow.__struct_fields__]
_MANIFEST: Final = [course_manifest.c[name] for name in ManifestRow.__struct_fields__]
_IS_WITHDRAWN: Final = exists().where(
    course_manifest_withdrawal.c.course_id == course_manifest.c.course_id,
    course_manifest_withdrawal.c.version == course_manifest.c.version,
)


def owner(courseware_id: str) -> str:
    """Return the owner under which the bundles of a courseware are kept in the blob store."""
    return f"courseware:{courseware_id}"


async def lock_course(work: UnitOfWork, course_id: str) -> None:
    """Let one transaction at a time publish a course; on SQLite every one is alone anyway."""
    if work.database.dialect == "postgresql":
        statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        await work.connection.execute(statement, {"name": f"course:{course_id}"})


async def version_with(
    connection: AsyncConnection, courseware_id: str, content_hash: str
) -> VersionRow | None:
    """Return the version of a courseware that has this content."""
    wanted = (courseware_version.c.courseware_id == courseware_id) & (
        courseware_version.c.content_hash == content_hash
    )
    return _version(await connection.execute(select(*_VERSION).where(wanted)))


async def version(
    connection: AsyncConnection, courseware_id: str, number: int
) -> VersionRow | None:
    """Return one version of a courseware, pinned or not."""
    wanted = (courseware_version.c.courseware_id == courseware_id) & (
        courseware_version.c.version == number
    )
    return _version(await connection.execute(select(*_VERSION).where(wanted)))


async def pinned_versions(connection: AsyncConnection, courseware_id: str) -> list[int]:
    """Return the versions that a manifest pins which was not withdrawn, oldest first."""
    pin = course_manifest_pin.c
    rows = await connection.scalars(
        select(pin.courseware_version)
        .join(
            course_manifest,
            (course_manifest.c.course_id == pin.course_id)
            & (course_manifest.c.version == pin.version),
        )
        .where(pin.courseware_id == courseware_id, ~_IS_WITHDRAWN)
        .distinct()
        .order_by(pin.courseware_version)
    )
    return list(rows)


async def withdrawal_of(connection: AsyncConnection, courseware_id: str, number: int) -> str | None:
    """Return why the last manifest was withdrawn that pinned a version; None = none was."""
    pin, gone = course_manifest_pin.c, course_manifest_withdrawal.c
    reason: str | None = await connection.scalar(
        select(gone.reason)
        .join(
            course_manifest_pin, (gone.course_id == pin.course_id) & (gone.version == pin.version)
        )
        .where(pin.courseware_id == courseware_id, pin.courseware_version == number)
        .order_by(gone.withdrawn_us.desc(), gone.course_id, gone.version.desc())
        .limit(1)
    )
    return reason


async def course_of(connection: AsyncConnection, courseware_id: str) -> str | None:
    """Return the course that a courseware belongs to; None if nothing of it is registered."""
    found: str | None = await connection.scalar(
        select(courseware_version.c.course_id)
        .where(courseware_version.c.courseware_id == courseware_id)
        .limit(1)
    )
    return found


async def next_version(work: UnitOfWork, courseware_id: str) -> int:
    """Return the number of the next version of a courseware."""
    newest = select(func.max(courseware_version.c.version)).where(
        courseware_version.c.courseware_id == courseware_id
    )
    return int(await work.connection.scalar(newest) or 0) + 1


async def add_version(work: UnitOfWork, row: VersionRow) -> None:
    """Add a version."""
    await work.connection.execute(insert(courseware_version), msgspec.structs.asdict(row))


async def manifest(
    connection: AsyncConnection, course_id: str, number: int | None = None
) -> ManifestRow | None:
    """Return a manifest of a course, the newest without a number; withdrawn ones too."""
    wanted = select(*_MANIFEST).where(course_manifest.c.course_id == course_id)
    if number is not None:
        wanted = wanted.where(course_manifest.c.version == number)
    row = (await connection.execute(wanted.order_by(course_manifest.c.version.desc()))).first()
    return None if row is None else ManifestRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name


async def newest_manifests(connection: AsyncConnection) -> list[ManifestRow]:
    """Return of every course the newest manifest that was not withdrawn, by course."""
    newest = (
        select(course_manifest.c.course_id, func.max(course_manifest.c.version).label("version"))
        .where(~_IS_WITHDRAWN)
        .group_by(course_manifest.c.course_id)
        .subquery()
    )
    rows = await connection.execute(
        select(*_MANIFEST)
        .join(
            newest,
            (course_manifest.c.course_id == newest.c.course_id)
            & (course_manifest.c.version == newest.c.version),
        )
        .order_by(course_manifest.c.course_id)
    )
    return [ManifestRow(**row._mapping) for row in rows]  # noqa: SLF001 - as above


async def newest_standing(connection: AsyncConnection, course_id: str) -> ManifestRow | None:
    """Return the newest manifest of a course that was not withdrawn."""
    row = (
        await connection.execute(
            select(*_MANIFEST)
            .where(course_manifest.c.course_id == course_id, ~_IS_WITHDRAWN)
            .order_by(course_manifest.c.version.desc())
        )
    ).first()
    return None if row is None else ManifestRow(**row._mapping)  # noqa: SLF001 - as above


async def add_manifest(work: UnitOfWork, row: ManifestRow) -> None:
    """Add a manifest."""
    await work.connection.execute(insert(course_manifest), msgspec.structs.asdict(row))


async def add_pins(work: UnitOfWork, rows: list[PinRow]) -> None:
    """Add what a manifest pins."""
    await work.connection.execute(
        insert(course_manifest_pin), [msgspec.structs.asdict(row) for row in rows]
    )


async def withdrawal(connection: AsyncConnection, course_id: str, number: int) -> str | None:
    """Return why a manifest was withdrawn; None = it stands."""
    gone = course_manifest_withdrawal.c
    reason: str | None = await connection.scalar(
        select(gone.reason).where(gone.course_id == course_id, gone.version == number)
    )
    return reason


async def add_withdrawal(
    work: UnitOfWork, course_id: str, number: int, reason: str, now_us: int
) -> bool:
    """Withdraw a manifest; the first reason stays. Return whether it is new."""
    values: dict[str, Any] = {
        "course_id": course_id,
        "version": number,
        "reason": reason,
        "withdrawn_us": now_us,
    }
    done = await work.connection.execute(
        insert_if_absent(work, course_manifest_withdrawal).values(values)
    )
    return done.rowcount == 1


def _version(rows: Any) -> VersionRow | None:  # noqa: ANN401 - SQLAlchemy's result
    row = rows.first()
    return None if row is None else VersionRow(**row._mapping)  # noqa: SLF001 - as above
