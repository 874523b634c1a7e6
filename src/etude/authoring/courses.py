"""What people do with courses: ask for one, edit and confirm its framework, retry, cancel.

Each call is one transaction; whatever takes long is asked for as a run, which the worker carries
out (`runs`). At most one run works on a course: the table sees to it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

import structlog

from etude.authoring import repository
from etude.authoring.authors import Author, syllabus_of
from etude.authoring.errors import (
    AuthorUnknownError,
    ContinuityBrokenError,
    CourseAudioMissingError,
    CourseModuleUnknownError,
    CourseNoRunError,
    CourseRunActiveError,
    CourseStateError,
    FrameworkChangedError,
    FrameworkInvalidError,
    FrameworkMistakeError,
)
from etude.authoring.framework import framework_from
from etude.authoring.model.accounts import Account, account_of
from etude.authoring.outline.planning import module_id
from etude.authoring.records import (
    RUN,
    AuthorName,
    Course,
    CourseRequest,
    CourseStatus,
    Module,
    ModuleStatus,
    RunKind,
    RunState,
)
from etude.authoring.seats import FRAMEWORK
from etude.authoring.unwanted import ask_removal, start_over
from etude.classroom.digest import output_digest
from etude.classroom.library import ClassroomLibrary
from etude.clock import Clock, Ids, to_us
from etude.files import crash_point
from etude.jobs import JobMissing, JobState, ask_again, cancel, enqueue, find
from etude.people.records import Actor
from etude.people.spending import ledger
from etude.people.spending.ledger import Call
from etude.store import Blobs, Database, UnitOfWork

log = structlog.get_logger("etude.authoring")
_LIVE: Final = (JobState.QUEUED, JobState.RUNNING)


class Courses:
    """The courses of an installation. Lives as long as the process."""

    def __init__(
        self,
        database: Database,
        library: ClassroomLibrary,
        blobs: Blobs,
        clock: Clock,
        ids: Ids,
        authors: Mapping[str, Author],
    ) -> None:
        """`authors` by their names: those that this installation can ask."""
        self.database = database
        self.library = library
        self._blobs = blobs
        self.clock = clock
        self._ids = ids
        self._authors = authors

    async def create(
        self, request: CourseRequest, owner: str, author: AuthorName = "outline"
    ) -> Course:
        """Ask for a course; its framework is made by the worker.

        Raises:
            AuthorUnknownError: there is no such author here.
            CourseOptionUnavailableError: it cannot do what the request wants.
            CourseRequestEmptyError, QuotaSpentError, PriceMissingError: no model is asked for this.
            MaterialTooLittleError, MaterialTooMuchError, MaterialUnreadableError,
            MaterialLineTooLongError, MaterialTwiceError: it cannot be made of this material.
            BlobMissing: a recording was not stored before.
        """
        await author_of(self._authors, author).admit(request, owner)
        new = Course(
            course_key=0,
            course_id=self._ids.new(),
            owner=owner,
            author=author,
            status=CourseStatus.QUEUED,
            title=request.requirement.strip().partition("\n")[0][:120],
            request=request,
            framework=None,
            framework_revision=0,
            confirmed=False,
            without_audio=False,
            error_code=None,
            created_at=self.clock.now(),
        )
        async with self.database.transaction() as work:
            course_key = await repository.add(work, new, self.clock.now())
            for sound in request.sounds:
                await self._blobs.add_reference(work, sound.sha256, f"course:{course_key}")
            await self._begin(work, course_key, "framework")
            crash_point("authoring.course.created")
        return await self.get(new.course_id)

    async def get(self, course_id: str) -> Course:
        """Return a course; raises `CourseUnknownError`."""
        async with self.database.read() as connection:
            return await repository.load(connection, course_id)

    async def listed(self) -> list[Course]:
        """Return the newest courses, without modules."""
        async with self.database.read() as connection:
            return await repository.listed(connection)

    async def silent(self, course: Course) -> tuple[str, ...]:
        """Return the places of sentences that will have no sound, if its author is still here."""
        author = self._authors.get(course.author)
        return () if author is None else await asyncio.to_thread(author.silent, course.request)

    async def account(self, course: Course) -> Account | None:
        """Return what a course has cost; None if no model was asked for it."""
        async with self.database.read() as connection:
            return await account_of(connection, course.subject)

    async def calls(self, course_id: str, *, answers: bool = False) -> list[Call]:
        """Return what was asked for a course, oldest first; raises `CourseUnknownError`."""
        async with self.database.read() as connection:
            course = await repository.load(connection, course_id)
            return await ledger.calls_of(connection, course.subject, answers=answers)

    async def edit(self, course_id: str, revision: int, value: Mapping[str, Any]) -> Course:
        """Replace the framework; only while it waits for confirmation.

        Raises:
            FrameworkInvalidError: its parts are all the mistakes.
            FrameworkChangedError: it is of another revision by now.
            CourseStateError: it was confirmed already, or is not there yet.
            CourseRunActiveError: it is being made.
        """
        framework = framework_from(value)
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            if course.status is not CourseStatus.FRAMEWORK_READY:
                raise CourseStateError(status=course.status)
            if course.framework_revision != revision:
                raise FrameworkChangedError(found=course.framework_revision)
            if course.author == "outline":
                _require_material(course, [one.module_id for one in framework.modules])
            await repository.set_framework(work, course, framework, self.clock.now())
            crash_point("authoring.framework.edited")
        return await self.get(course_id)

    async def start(
        self, course_id: str, *, revision: int | None = None, without_audio: bool = False
    ) -> Course:
        """Confirm the framework and begin with the modules.

        Args:
            course_id: which course.
            revision: of the framework that was read; None = whichever it is.
            without_audio: sentences without any sound may be left out of practice.

        Raises:
            CourseStateError: there is no framework to confirm.
            FrameworkChangedError: it is another one than was read.
            CourseAudioMissingError: sentences would have no sound, and that was not said.
            CourseRunActiveError: something else is being done.
        """
        silent = await self.silent(await self.get(course_id))
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            if course.status is not CourseStatus.FRAMEWORK_READY:
                raise CourseStateError(status=course.status)
            if revision is not None and revision != course.framework_revision:
                raise FrameworkChangedError(found=course.framework_revision)
            if silent and not without_audio:
                raise CourseAudioMissingError(missing=len(silent), first=silent[0])
            now = self.clock.now()
            await repository.set_course(
                work,
                course.course_key,
                now,
                status=CourseStatus.GENERATING,
                confirmed_us=to_us(now),
                without_audio=without_audio,
            )
            await self._begin(work, course.course_key, "modules")
            crash_point("authoring.course.started")
        return await self.get(course_id)

    async def regenerate_framework(self, course_id: str) -> Course:
        """Make the framework anew; modules wait again, old classrooms stay, unreferenced."""
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            now = self.clock.now()
            await ledger.retire(work, course.subject, [FRAMEWORK, *_all(course)])
            await start_over(work, course, _all(course), now)
            await repository.set_course(
                work, course.course_key, now, status=CourseStatus.QUEUED, confirmed_us=None
            )
            await self._begin(work, course.course_key, "framework")
        return await self.get(course_id)

    async def retry(self, course_id: str, index: int) -> Course:
        """Make one module anew, then the later ones that have not succeeded.

        Raises:
            CourseModuleUnknownError, CourseStateError, CourseRunActiveError: not now.
            ContinuityBrokenError: a module before it has not succeeded.
        """
        return await self._again(course_id, index, only=True)

    async def regenerate_from(self, course_id: str, index: int) -> Course:
        """Make a module and all after it anew; raises as `retry`."""
        return await self._again(course_id, index, only=False)

    async def resume(self, course_id: str) -> Course:
        """Go on where a failure or cancellation stopped; what succeeded stays.

        Raises:
            CourseStateError: there is nothing to go on with.
            CourseRunActiveError: it goes on already.
        """
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            if course.framework is None:
                await self._resume(work, course, "framework", CourseStatus.QUEUED)
            elif course.confirmed and _unfinished(course):
                await start_over(work, course, _unfinished(course), self.clock.now())
                await self._resume(work, course, "modules", CourseStatus.GENERATING)
            else:
                raise CourseStateError(status=course.status)
        return await self.get(course_id)

    async def cancel(self, course_id: str) -> Course:
        """Stop what is being done; what succeeded stays.

        The record says so at once; the worker notices within a second, and its writes are void.

        Raises:
            CourseNoRunError: nothing is being done.
        """
        now = self.clock.now()
        async with self.database.transaction() as work:
            course = await repository.load(work.connection, course_id)
            run = course.active
            if run is None or not await repository.end_run(
                work, run.run_key, RunState.CANCELLED, now
            ):
                raise CourseNoRunError
            try:
                await cancel(work, RUN, run.run_id, now=now)
            except JobMissing:
                log.info("the run had no job", action="authoring.cancel", run=run.run_id)
            running = [one for one in course.modules if one.status is ModuleStatus.RUNNING]
            for module in running:
                await repository.set_module(
                    work, course.course_key, module.index, status=ModuleStatus.CANCELLED
                )
            await ask_removal(work, running, now)
            if run.kind != "publish":
                await repository.set_course(
                    work, course.course_key, now, status=CourseStatus.CANCELLED
                )
            crash_point("authoring.course.cancelled")
        return await self.get(course_id)

    async def accept_source(self, course_id: str, index: int) -> Course:
        """Take the digest of a classroom that somebody edited, deliberately.

        Raises:
            CourseModuleUnknownError, CourseStateError: there is no finished module.
            ClassroomUnknownError, ClassroomInvalidError: its classroom cannot be read.
        """
        course = await self.get(course_id)
        module = _module(course, index)
        if module.classroom_id is None or module.status is not ModuleStatus.SUCCEEDED:
            raise CourseStateError(status=module.status)
        classroom_id = module.classroom_id
        stored = await asyncio.to_thread(self.library.stored, classroom_id)
        media = await asyncio.to_thread(self.library.media_hashes, classroom_id)
        digest = output_digest(stored.classroom, media, terms=terms_of(course))
        async with self.database.transaction() as work:
            now = await self._idle(work, course_id)
            if _module(now, index).classroom_id != classroom_id:
                raise CourseStateError(status=now.status)
            await repository.set_module(work, now.course_key, index, digest=digest)
            crash_point("authoring.source.accepted")
        return await self.get(course_id)

    async def begin_publishing(self, course_id: str, by: Actor, finish_after_s: float) -> Course:
        """Keep every other run away while the course is published.

        Should the process that publishes die, the worker does it after `finish_after_s`, still in
        the name of `by`.
        """
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            await self._begin(work, course.course_key, "publish", by=by, delay_s=finish_after_s)
            crash_point("authoring.publish.begun")
        return await self.get(course_id)

    async def end_publishing(self, course: Course, error_code: str | None = None) -> None:
        """Let others work on the course again."""
        run = course.active
        if run is None:
            return
        state = RunState.DONE if error_code is None else RunState.FAILED
        async with self.database.transaction() as work:
            await repository.end_run(work, run.run_key, state, self.clock.now(), error_code)

    async def _again(self, course_id: str, index: int, *, only: bool) -> Course:
        async with self.database.transaction() as work:
            course = await self._idle(work, course_id)
            _module(course, index)
            if not course.confirmed:
                raise CourseStateError(status=course.status)
            for module in course.modules[:index]:
                if module.status is not ModuleStatus.SUCCEEDED:
                    raise ContinuityBrokenError(module=module.index)
            later = [at for at in _unfinished(course) if at > index]
            anew = [index, *later] if only else list(range(index, len(course.modules)))
            await ledger.retire(work, course.subject, anew)
            await start_over(work, course, anew, self.clock.now())
            kind: RunKind = "module-retry" if only else "modules"
            await self._resume(work, course, kind, CourseStatus.GENERATING)
        return await self.get(course_id)

    async def _resume(
        self, work: UnitOfWork, course: Course, kind: RunKind, status: CourseStatus
    ) -> None:
        await repository.set_course(
            work, course.course_key, self.clock.now(), status=status, error_code=None
        )
        await self._begin(work, course.course_key, kind)
        crash_point("authoring.course.resumed")

    async def _begin(
        self,
        work: UnitOfWork,
        course_key: int,
        kind: RunKind,
        *,
        by: Actor | None = None,
        delay_s: float = 0,
    ) -> None:
        now, run_id = self.clock.now(), self._ids.new()
        run_key = await repository.begin_run(work, course_key, run_id, kind, now, by)
        args = {"run_key": run_key, "course_key": course_key}
        later = now + timedelta(seconds=delay_s)
        await enqueue(work, RUN, run_id, args, run_after=later, now=now)

    async def _idle(self, work: UnitOfWork, course_id: str) -> Course:
        """Return a course on which nobody works.

        A run whose job is gone for good (its workers died too often, or an upgrade removed it)
        holds nobody up: it gets its job again.
        """
        course = await repository.load(work.connection, course_id)
        run = course.active
        if run is None:
            return course
        row = await find(work.connection, RUN, run.run_id)
        if row is not None and row.state in _LIVE:
            raise CourseRunActiveError(kind=run.kind)
        now = self.clock.now()
        if row is None:
            args = {"run_key": run.run_key, "course_key": course.course_key}
            await ask_again(work, RUN, {run.run_id: args}, run_after=now, now=now)
            raise CourseRunActiveError(kind=run.kind)
        await repository.end_run(work, run.run_key, RunState.FAILED, now, row.error_code)
        return await repository.load(work.connection, course_id)


def author_of(authors: Mapping[str, Author], name: str) -> Author:
    """Return an author by its name; raises `AuthorUnknownError` if it is not here (any more)."""
    if name not in authors:
        raise AuthorUnknownError(author=name, known=", ".join(sorted(authors)))
    return authors[name]


def terms_of(course: Course) -> Sequence[str]:
    """Return the words that a course's modules share."""
    if course.framework is None:
        return ()
    return [one.term for one in course.framework.continuity_contract.terminology]


def _module(course: Course, index: int) -> Module:
    if not 0 <= index < len(course.modules):
        raise CourseModuleUnknownError(module=index)
    return course.modules[index]


def _all(course: Course) -> list[int]:
    return [one.index for one in course.modules]


def _unfinished(course: Course) -> list[int]:
    return [one.index for one in course.modules if one.status is not ModuleStatus.SUCCEEDED]


def _require_material(course: Course, ids: Sequence[str]) -> None:
    """Refuse modules that the outline author has no material for."""
    syllabus = syllabus_of(course.request)
    known = {module_id(syllabus, at) for at in range(len(syllabus.units))}
    found = [
        FrameworkMistakeError(path=f"modules[{at}].moduleId", rule="no_material", detail=one)
        for at, one in enumerate(ids)
        if one not in known
    ]
    if found:
        raise FrameworkInvalidError(*found, mistakes=len(found))
