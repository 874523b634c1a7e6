"""Scenes of published courses for assignments: found, checked byte by byte, pinned for good.

    found = await find_in_course(database, blobs, CourseWish(course_id="c-1", module=0), folder)
    async with database.transaction() as work:
        await require_standing(work, found.pin)
        await assign(work, NewAssignment(courseware=found.pin, …), …)

An assignment that was made never moves to another version. When its version is withdrawn from
everybody, so is the assignment.
"""

import asyncio
from datetime import datetime
from pathlib import Path

import msgspec

from etude.courseware import catalogue, registry
from etude.courseware.bundle import Bundle
from etude.courseware.checking import check_bundle
from etude.courseware.course_manifest import read_course_manifest
from etude.courseware.errors import BundleStoredMissingError, PinHashMismatchError
from etude.courseware.legacy import LEGACY_SCHEMA
from etude.courseware.registry import VersionRow
from etude.files import crash_point
from etude.people.records import Actor, Principal
from etude.practice.apps import Apps
from etude.practice.assigned import CoursewarePin, LessonAddress
from etude.practice.assignments import repository
from etude.practice.assignments.assigning import withdraw
from etude.practice.course_errors import CourseModuleMissingError
from etude.practice.course_scenes import (
    PracticeScene,
    lesson_id_of,
    practice_scene,
    require_playable,
    task_for,
)
from etude.store import Blobs, Database, UnitOfWork
from etude.store.errors import BlobMissing


class CourseWish(msgspec.Struct, frozen=True, kw_only=True):
    """A scene as people name it.

    Attributes:
        module: its number in the course, from 0.
        version: of the course; None = the newest that was not withdrawn, as it is now.
        scene_id: None = the module's only practice scene.
    """

    course_id: str
    module: int
    version: int | None = None
    scene_id: str | None = None


class PublishedScene(msgspec.Struct, frozen=True, kw_only=True):
    """A practice scene of a published courseware, and its pin."""

    pin: CoursewarePin
    scene: PracticeScene

    def address(self, apps: Apps, task: tuple[str, str] | None = None) -> LessonAddress:
        """Return what it is as a lesson: of the named task, or of the first that fits.

        Raises:
            TaskUnknownError, CourseTaskError: there is no such task.
        """
        found = task_for(apps, self.scene.language, task)
        lesson_id = lesson_id_of(self.pin)
        return LessonAddress(app_id=found.app_id, task_id=found.task_id, lesson_id=lesson_id)


async def find_in_course(
    database: Database, blobs: Blobs, wish: CourseWish, manifests: Path
) -> PublishedScene:
    """Return the scene that a course has now; `manifests` is the folder of an older system's.

    Raises:
        CourseUnpublishedError, ManifestWithdrawnError, ManifestUnpinnedError: no such course.
        CourseModuleMissingError: it has no such module.
        BundleStoredMissingError, BundleUnsafeError: the stored bundle is gone or damaged.
        PracticeSceneNoneError, PracticeSceneSeveralError, PracticeSceneUnknownError: as they say.
        CourseClipUnplayableError: a toy cannot play it.
    """
    older = await asyncio.to_thread(catalogue.legacy_of, manifests, wish.course_id)
    async with database.read() as connection:
        row = await catalogue.manifest_of(connection, wish.course_id, wish.version, older)
        modules = read_course_manifest(row.body).modules
        named = next((one for one in modules if one.index == wish.module), None)
        if named is None:
            raise CourseModuleMissingError(module=wish.module, last=len(modules) - 1)
        version = await catalogue.version_of(
            connection, named.courseware_id, named.courseware_version
        )
    return await asyncio.to_thread(_checked, blobs, version, wish.scene_id)


async def find_pinned(database: Database, blobs: Blobs, pin: CoursewarePin) -> PublishedScene:
    """Return the scene that a pin means.

    Raises:
        CoursewareUnknownError, ManifestWithdrawnError: no course pins this version.
        PinHashMismatchError: the registry has another hash.
        As `find_in_course`.
    """
    async with database.read() as connection:
        version = await catalogue.version_of(connection, pin.courseware_id, pin.version)
    if version.content_hash != pin.content_hash:
        raise PinHashMismatchError(registered=version.content_hash)
    return await asyncio.to_thread(_checked, blobs, version, pin.scene_id)


async def require_standing(work: UnitOfWork, pin: CoursewarePin) -> None:
    """Refuse what was withdrawn since it was found; no withdrawal passes the transaction by.

    Raises:
        CoursewareUnknownError, ManifestWithdrawnError: no course pins this version any more.
    """
    row = await registry.version(work.connection, pin.courseware_id, pin.version)
    if row is not None:
        await registry.lock_course(work, row.course_id)
    await catalogue.version_of(work.connection, pin.courseware_id, pin.version)


async def withdraw_unpinned(
    work: UnitOfWork, course_id: str, version: int, *, actor: Actor | Principal, now: datetime
) -> int:
    """Withdraw the assignments of what a withdrawn version of a course alone pinned; how many.

    A toy goes on with a lesson that runs, and begins it no more. Twice is once.
    """
    await registry.lock_course(work, course_id)
    row = await registry.manifest(work.connection, course_id, version)
    pinned = row is not None and row.schema_version != LEGACY_SCHEMA
    gone = 0
    for module in read_course_manifest(row.body).modules if row and pinned else ():
        standing = await registry.pinned_versions(work.connection, module.courseware_id)
        if module.courseware_version in standing:
            continue
        for assignment_id in await repository.pinned_to(
            work.connection, module.courseware_id, module.courseware_version
        ):
            await withdraw(work, assignment_id, actor=actor, now=now)
            gone += 1
    crash_point("practice.course.unassigned")
    return gone


def _checked(blobs: Blobs, version: VersionRow, scene_id: str | None) -> PublishedScene:
    """Look at every byte of a stored bundle before anything of it is used."""
    try:
        with Bundle.open(blobs.file_of(version.bundle_sha256)) as bundle:
            classroom = check_bundle(bundle, version.courseware_id, version.content_hash)
    except (FileNotFoundError, BlobMissing) as error:
        raise BundleStoredMissingError(
            courseware=version.courseware_id, version=version.version
        ) from error
    scene = practice_scene(classroom, scene_id)
    require_playable(scene)
    pin = CoursewarePin(
        courseware_id=version.courseware_id,
        version=version.version,
        content_hash=version.content_hash,
        scene_id=scene.scene_id,
    )
    return PublishedScene(pin=pin, scene=scene)
