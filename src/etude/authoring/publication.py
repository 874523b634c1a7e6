"""A course as the registry of courseware takes it, and how what is published compares with it.

Publishing is a run like the others, carried out by whoever asked for it. Meanwhile the run's job
waits: should the process die, the worker does it; should somebody cancel the run, it stops.
"""

import asyncio
import contextlib
import hashlib
from datetime import datetime, timedelta
from typing import Final

import msgspec

from etude.authoring import repository
from etude.authoring.courses import Courses
from etude.authoring.records import RUN, Course, Module, ModuleStatus, RunState
from etude.classroom.library import ClassroomLibrary
from etude.courseware import receipts
from etude.courseware.gates import CourseSource, ModuleSource
from etude.courseware.publishing import Allowed, CoursePublisher
from etude.courseware.registering import Published
from etude.courseware.remote_errors import PublishCancelledError
from etude.errors import EtudeError
from etude.jobs import ask_again
from etude.people.records import HOST, Actor
from etude.store import UnitOfWork
from etude.store.errors import StoreUnavailable

FINISH_AFTER_S: Final = 120.0
"""A publication whose process died is finished by the worker after so long."""
POSTPONE_EVERY_S: Final = 30.0
LOOK_EVERY_S: Final = 0.5


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is published of a course.

    Attributes:
        target: where: `receipts.HERE`, or the address of a server.
        version: of the newest manifest that stands; None = nothing.
        published_at: when that was confirmed.
        drifted: indexes of modules whose classroom is not what was published.
    """

    target: str
    version: int | None = None
    published_at: datetime | None = None
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


async def publish(
    courses: Courses, publisher: CoursePublisher, course_id: str, by: Actor
) -> Published:
    """Publish a course in the name of `by`; nothing else is done to it meanwhile.

    Raises:
        CourseUnknownError: there is no such course.
        CourseRunActiveError: something is being done to it.
        PublishCancelledError: somebody cancelled it; nothing was published.
        PublishTokenMissingError, PublishRefusedError, SourceChangedError, …: as of the publisher.
    """
    await courses.get(course_id)
    publisher.require_token()
    course = await courses.begin_publishing(course_id, by, FINISH_AFTER_S)
    source = source_of(course)
    publishing = asyncio.create_task(publisher.publish(source, by, still_active(course)))
    holding = asyncio.create_task(_hold(courses, course))
    try:
        await asyncio.wait({publishing, holding}, return_when=asyncio.FIRST_COMPLETED)
        if not publishing.done():
            holding.result()
            raise PublishCancelledError
        published = await publishing
    except EtudeError as error:
        await courses.end_publishing(course, error.code)
        raise
    finally:
        holding.cancel()
        publishing.cancel()
        await asyncio.gather(publishing, holding, return_exceptions=True)
    await courses.end_publishing(course)
    return published


def publishes(course: Course) -> Actor:
    """Return in whose name the publication that is under way was begun."""
    by = None if course.active is None else course.active.by
    return by or HOST  # one that was begun before this was noted


def still_active(course: Course) -> Allowed:
    """Return what raises `PublishCancelledError` once the course's run is over."""

    async def allowed(work: UnitOfWork) -> None:
        run = course.active
        state = run and await repository.run_state(work.connection, run.run_key)
        if state is not RunState.ACTIVE:
            raise PublishCancelledError

    return allowed


async def _hold(courses: Courses, course: Course) -> None:
    """Keep the worker from what is being done here; return when the run was cancelled."""
    run = course.active
    if run is None:
        return
    args = {"run_key": run.run_key, "course_key": course.course_key}
    loop = asyncio.get_running_loop()
    postponed_s = loop.time()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        with contextlib.suppress(StoreUnavailable):
            async with courses.database.read() as connection:
                state = await repository.run_state(connection, run.run_key)
            if state is not RunState.ACTIVE:
                return
            if loop.time() - postponed_s < POSTPONE_EVERY_S:
                continue
            async with courses.database.transaction() as work:
                state = await repository.run_state(work.connection, run.run_key)
                if state is RunState.ACTIVE:
                    now = courses.clock.now()
                    later = now + timedelta(seconds=FINISH_AFTER_S)
                    await ask_again(
                        work, RUN, {run.run_id: args}, run_after=later, postpone=True, now=now
                    )
            postponed_s = loop.time()


async def standing(courses: Courses, course: Course, target: str) -> Standing:
    """Compare what is published at a target with the classrooms as they are now."""
    async with courses.database.read() as connection:
        receipt = await receipts.newest(connection, course.course_id, target)
    if receipt is None:
        return Standing(target=target)
    published = {one.index: one.source_revision_hash for one in receipt.modules}
    drifted = []
    for one in course.modules:
        revision = await asyncio.to_thread(_revision, one, courses.library)
        if published.get(one.index) != revision:
            drifted.append(one.index)
    return Standing(
        target=target,
        version=receipt.version,
        published_at=receipt.received_at,
        drifted=tuple(drifted),
    )


def _revision(module: Module, library: ClassroomLibrary) -> str | None:
    if module.classroom_id is None:
        return None
    try:
        return library.stored(module.classroom_id).revision
    except EtudeError:
        return None
