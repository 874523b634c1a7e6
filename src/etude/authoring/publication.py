"""A course as the registry of courseware takes it, and how what is published compares with it."""

import asyncio
import hashlib
from typing import Final, Protocol

import msgspec

from etude.authoring.courses import Courses
from etude.authoring.records import Course, Module, ModuleStatus
from etude.classroom.library import ClassroomLibrary
from etude.courseware import registry
from etude.courseware.gates import CourseSource, ModuleSource
from etude.courseware.publishing import Published
from etude.errors import EtudeError

FINISH_AFTER_S: Final = 120.0
"""A publication whose process died is finished by the worker after so long."""


class Publishing(Protocol):
    """What publishes: `etude.courseware.publishing.Publisher`."""

    async def publish(self, course: CourseSource) -> Published:
        """Publish, or raise with every reason against it."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is published of a course.

    Attributes:
        version: of the newest manifest; None = nothing.
        drifted: indexes of modules whose classroom is not what was published.
    """

    version: int | None = None
    drifted: tuple[int, ...] = ()


def courseware_id(course_id: str, module_id: str) -> str:
    """Return the courseware's id of a module: its own in every course, through all edits."""
    named = f"{course_id}\0{module_id}".encode()
    return "cw-" + hashlib.sha256(named).hexdigest()[:24]


def source_of(course: Course) -> CourseSource:
    """Return what the gates look at."""
    framework = course.framework
    planned = framework.modules if framework else ()
    titles = {one.module_id: one for one in planned}

    def module(one: Module) -> ModuleSource:
        spec = titles.get(one.module_id)
        digest = one.digest
        return ModuleSource(
            module_id=courseware_id(course.course_id, one.module_id),
            title=spec.title if spec else one.module_id,
            description=spec.description if spec else "",
            succeeded=one.status is ModuleStatus.SUCCEEDED,
            classroom_id=one.classroom_id,
            semantic_hash=digest.semantic_hash if digest else None,
            source_revision_hash=digest.source_revision_hash if digest else None,
            digest_version=digest.digest_version if digest else None,
            continuity=one.refs,
        )

    return CourseSource(
        course_id=course.course_id,
        title=framework.course_title if framework else course.title,
        planned=tuple(courseware_id(course.course_id, one.module_id) for one in planned),
        modules=tuple(module(one) for one in course.modules),
    )


async def publish(courses: Courses, publisher: Publishing, course_id: str) -> Published:
    """Publish a course; nothing else is done to it meanwhile.

    Raises:
        CourseRunActiveError: something is being done to it.
        PublishTokenMissingError, PublishRefusedError, SourceChangedError: as of `Publisher`.
    """
    course = await courses.begin_publishing(course_id, FINISH_AFTER_S)
    try:
        published = await publisher.publish(source_of(course))
    except EtudeError as error:
        await courses.end_publishing(course, error.code)
        raise
    await courses.end_publishing(course)
    return published


async def standing(courses: Courses, course: Course) -> Standing:
    """Compare what is published with the classrooms as they are now (`rulings.md` 33)."""
    async with courses.database.read() as connection:
        newest = await registry.manifest(connection, course.course_id)
        pins = await registry.pins(connection, course.course_id, newest.version) if newest else []
    if newest is None:
        return Standing()
    published = {pin.module_index: pin.source_revision_hash for pin in pins}
    drifted = []
    for one in course.modules:
        revision = await asyncio.to_thread(_revision, one, courses.library)
        if published.get(one.index) != revision:
            drifted.append(one.index)
    return Standing(version=newest.version, drifted=tuple(drifted))


def _revision(module: Module, library: ClassroomLibrary) -> str | None:
    if module.classroom_id is None:
        return None
    try:
        return library.stored(module.classroom_id).revision
    except EtudeError:
        return None
