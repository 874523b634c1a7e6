"""What learners may see of the registry: courses, their manifests, pinned versions."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.courseware import receipts, registry
from etude.courseware.course_manifest import read_course_manifest
from etude.courseware.entries import enter
from etude.courseware.errors import (
    CourseUnpublishedError,
    CoursewareUnknownError,
    ManifestUnpinnedError,
    ManifestWithdrawnError,
)
from etude.courseware.legacy import LEGACY_SCHEMA, LegacyManifest, read_legacy
from etude.courseware.registry import ManifestRow, VersionRow
from etude.files import crash_point
from etude.people.records import Actor, Principal
from etude.store.work import UnitOfWork

NEWEST: Final = "newest"


class CourseEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A published course in a list. `pinned`: False = of an older system, it cannot be opened."""

    course_id: str
    title: str
    version: int
    modules: int
    pinned: bool
    published_at: datetime


async def courses(connection: AsyncConnection) -> list[CourseEntry]:
    """Return the published courses, each in its newest version that was not withdrawn."""
    return [_entry(row) for row in await registry.newest_manifests(connection)]


async def manifest_of(
    connection: AsyncConnection, course_id: str, version: int | None, legacy: LegacyManifest | None
) -> ManifestRow:
    """Return a manifest that a learner may use.

    Args:
        connection: to the registry.
        course_id: which course.
        version: which version; None = the newest that was not withdrawn.
        legacy: what an older system left of the course.

    Raises:
        CourseUnpublishedError: there is none.
        ManifestWithdrawnError: it was withdrawn.
        ManifestUnpinnedError: it is of an older system; the newest is never put in its place.
    """
    if version is None:
        row = await registry.newest_standing(connection, course_id)
        row = row or await registry.manifest(connection, course_id)
    else:
        row = await registry.manifest(connection, course_id, version)
    if row is None:
        if legacy is not None and version in {None, legacy.version}:
            raise ManifestUnpinnedError(course=course_id, version=legacy.version)
        raise CourseUnpublishedError(course=course_id, version=_said(version))
    reason = await registry.withdrawal(connection, course_id, row.version)
    if reason is not None:
        raise ManifestWithdrawnError(course=course_id, version=row.version, reason=reason)
    if row.schema_version == LEGACY_SCHEMA:
        raise ManifestUnpinnedError(course=course_id, version=row.version)
    return row


def legacy_of(folder: Path, course_id: str) -> LegacyManifest | None:
    """Return what an older system left of a course; see `legacy.read_legacy`."""
    return read_legacy(folder, course_id)


async def version_of(
    connection: AsyncConnection, courseware_id: str, version: int | None
) -> VersionRow:
    """Return a version of a courseware that a learner may have: one that a manifest pins.

    Raises:
        CoursewareUnknownError: there is none, or nothing pinned it yet.
        ManifestWithdrawnError: every manifest that pins it was withdrawn.
    """
    pinned = await registry.pinned_versions(connection, courseware_id)
    newest = pinned[-1] if pinned else None
    number = newest if version is None else version
    row = None if number is None else await registry.version(connection, courseware_id, number)
    if row is None or number not in pinned:
        if version is not None:
            reason = await registry.withdrawal_of(connection, courseware_id, version)
            if reason is not None:
                raise ManifestWithdrawnError(course=courseware_id, version=version, reason=reason)
        raise CoursewareUnknownError(courseware=courseware_id, version=_said(version))
    return row


async def withdraw(
    work: UnitOfWork,
    course_id: str,
    version: int,
    reason: str,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    """Take a manifest away from everybody; nothing is rewritten, twice is once.

    Raises:
        CourseUnpublishedError: there is no such manifest.
    """
    if await registry.manifest(work.connection, course_id, version) is None:
        raise CourseUnpublishedError(course=course_id, version=str(version))
    now_us = to_us(now)
    if await registry.add_withdrawal(work, course_id, version, reason, now_us):
        await enter(work, "course.withdrawn", course_id, version, actor=actor, now=now)
        await receipts.note_withdrawn(work, course_id, receipts.HERE, version, now_us)
    crash_point("courseware.withdrawal.inserted")


def _said(version: int | None) -> str:
    return NEWEST if version is None else str(version)


def _entry(row: ManifestRow) -> CourseEntry:
    pinned = row.schema_version != LEGACY_SCHEMA
    modules: tuple[Any, ...] = read_course_manifest(row.body).modules if pinned else ()
    return CourseEntry(
        course_id=row.course_id,
        title=row.title,
        version=row.version,
        modules=len(modules),
        pinned=pinned,
        published_at=from_us(row.published_us),
    )
