"""Carrying out a run: a framework, then modules strictly in order, each noted once it is there.

The tables are the truth. A kill leaves a module that is not noted; the next attempt takes over the
classroom if it was placed, else makes it again. A run that was cancelled writes nothing more: its
job is fenced off, and whoever carries it out looks twice a second.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

import structlog

from etude.authoring import repository
from etude.authoring.authors import Author, ModuleOrder, by_author, to_the_end
from etude.authoring.courses import author_of, terms_of
from etude.authoring.errors import ActivityMissingError, ContinuityBrokenError
from etude.authoring.records import (
    Course,
    CourseStatus,
    Module,
    ModuleStatus,
    Problem,
    RunState,
)
from etude.authoring.requirement import build_module_requirement
from etude.authoring.seats import FRAMEWORK, Seat
from etude.authoring.unwanted import ask_removal, remove_at_once
from etude.classroom.digest import OutputDigest, output_digest
from etude.classroom.errors import ClassroomUnknownError
from etude.classroom.library import ClassroomLibrary, Draft
from etude.classroom.model import Classroom, InteractiveContent
from etude.clock import Clock, Ids, to_us
from etude.courseware.gates import ContinuityRef
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs import Fenced, Job
from etude.store import Database, UnitOfWork
from etude.store.errors import StoreUnavailable

LOOK_EVERY_S: Final = 0.5
_MOST_PROBLEMS: Final = 40
log = structlog.get_logger("etude.authoring")
Result = TypeVar("Result")
Publish = Callable[[Course], Awaitable[object]]


class CourseRuns:
    """The handler of `authoring.run` jobs."""

    def __init__(
        self,
        database: Database,
        library: ClassroomLibrary,
        clock: Clock,
        ids: Ids,
        authors: Mapping[str, Author],
        publish: Publish | None = None,
        *,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        """`publish` finishes a publication that its process did not live to end."""
        self._database = database
        self._library = library
        self._clock = clock
        self._ids = ids
        self._authors = authors
        self._publish = publish
        self._look_every_s = look_every_s
        self._ending: set[int] = set()

    async def __call__(self, job: Job) -> None:
        """Carry out the run that the job names, unless it is over."""
        working = asyncio.create_task(self._carry_out(job))
        looking = asyncio.create_task(self._until_over(job))
        try:
            await asyncio.wait({working, looking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ending.discard(job.args["run_key"])
            over = looking.done() and not working.done()
            looking.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait([working])
        if not over:
            await working
        elif not working.cancelled():
            working.exception()

    async def _until_over(self, job: Job) -> None:
        """Return when somebody else ended the run; what ends it here is let finish."""
        while True:
            await asyncio.sleep(self._look_every_s)
            with contextlib.suppress(StoreUnavailable):
                async with self._database.read() as connection:
                    state = await repository.run_state(connection, job.args["run_key"])
                if state is not RunState.ACTIVE and job.args["run_key"] not in self._ending:
                    return

    async def _carry_out(self, job: Job) -> None:
        async with self._database.read() as connection:
            course = await repository.load_by_key(connection, job.args["course_key"])
        if course is None or course.active is None or course.active.run_key != job.args["run_key"]:
            return
        kind = course.active.kind
        try:
            if kind == "framework":
                await self._framework(job, course)
            elif kind == "publish":
                await self._published(job, course)
            else:
                await self._modules(job, course)
        except (Fenced, StoreUnavailable):
            raise
        except EtudeError as error:
            await self._failed(job, course, error)

    async def _published(self, job: Job, course: Course) -> None:
        if self._publish is not None:
            await self._publish(course)
        async with self._database.transaction() as work:
            await job.fence(work)
            await self._end(work, job, RunState.DONE)

    async def _framework(self, job: Job, course: Course) -> None:
        now = self._clock.now()
        async with self._database.transaction() as work:
            await job.fence(work)
            status = CourseStatus.FRAMEWORK_GENERATING
            await repository.set_course(work, course.course_key, now, status=status)
        author = self._seated(job, course, FRAMEWORK)
        framework = await by_author(author.framework(course.request))
        crash_point("authoring.framework.made")
        async with self._database.transaction() as work:
            await job.fence(work)
            now = self._clock.now()
            await repository.set_framework(work, course, framework, now)
            await self._end(work, job, RunState.DONE)
        crash_point("authoring.framework.noted")
        log.info("a framework is ready", action="authoring.framework", course=course.course_id)

    async def _end(
        self,
        work: UnitOfWork,
        job: Job,
        state: RunState,
        error_code: str | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        """Note the end of a run and of its job; whoever looks is not to take it for another's."""
        run_key, now = job.args["run_key"], self._clock.now()
        self._ending.add(run_key)
        await repository.end_run(work, run_key, state, now, error_code, problems)
        await job.finish(work)

    async def _modules(self, job: Job, course: Course) -> None:
        for index in range(len(course.modules)):
            async with self._database.read() as connection:
                now = await repository.load_by_key(connection, course.course_key)
            if now is None:
                return
            if now.modules[index].status is not ModuleStatus.SUCCEEDED:
                await self._module(job, now, index)
        async with self._database.transaction() as work:
            await job.fence(work)
            moment = self._clock.now()
            status = CourseStatus.SUCCEEDED
            await repository.set_course(
                work, course.course_key, moment, status=status, error_code=None
            )
            await self._end(work, job, RunState.DONE)
        crash_point("authoring.run.ended")
        log.info("a course is made", action="authoring.course", course=course.course_id)

    async def _module(self, job: Job, course: Course, index: int) -> None:
        earlier = await self._earlier(job, course, index)
        module = course.modules[index]
        classroom_id = await self._begun(job, course, module)
        framework = course.framework
        if framework is None:
            raise ContinuityBrokenError(module=0)
        requirement = build_module_requirement(
            framework, index, earlier, course.request.requirement
        )
        order = ModuleOrder(
            request=course.request,
            framework=framework,
            index=index,
            requirement=requirement,
            earlier=earlier,
            classroom_id=classroom_id,
            created_at=self._clock.now(),
        )
        try:
            await self._made(job, course, order)
        except asyncio.CancelledError:
            # The tables say whether it is in vain: a worker that only stops is taken over from.
            await remove_at_once(self._database, self._library, classroom_id)
            raise
        crash_point("authoring.module.noted")
        log.info(
            "a module is made", action="authoring.module", course=course.course_id, index=index
        )

    async def _made(self, job: Job, course: Course, order: ModuleOrder) -> None:
        """Place the classroom of a module, and note that the module is made."""
        classroom = await self._placed(self._seated(job, course, order.index), order)
        crash_point("authoring.module.placed")
        media = await asyncio.to_thread(self._library.media_hashes, order.classroom_id)
        digest = output_digest(classroom, media, terms=terms_of(course))
        refs = tuple(
            ContinuityRef(
                module_index=at, classroom_id=one.classroom_id, semantic_hash=one.semantic_hash
            )
            for at, one in enumerate(order.earlier)
        )
        async with self._database.transaction() as work:
            await job.fence(work)
            await repository.set_module(
                work,
                course.course_key,
                order.index,
                status=ModuleStatus.SUCCEEDED,
                prompt=order.framework.modules[order.index].generation_prompt.encode(),
                requirement_sha256=hashlib.sha256(order.requirement.encode()).hexdigest(),
                digest=digest,
                refs=refs,
                error_code=None,
                ended_us=to_us(self._clock.now()),
            )

    async def _begun(self, job: Job, course: Course, module: Module) -> str:
        """Note that a module is being made, and the classroom it will be; return that id."""
        resumed = module.status is ModuleStatus.RUNNING and module.classroom_id
        classroom_id = module.classroom_id if resumed else f"c-{self._ids.new()}"
        async with self._database.transaction() as work:
            await job.fence(work)
            await repository.set_module(
                work,
                course.course_key,
                module.index,
                status=ModuleStatus.RUNNING,
                classroom_id=classroom_id,
                error_code=None,
                started_us=to_us(self._clock.now()),
            )
        crash_point("authoring.module.begun")
        return str(classroom_id)

    async def _earlier(self, job: Job, course: Course, index: int) -> tuple[OutputDigest, ...]:
        """Return digests of all modules before one, from the classrooms as they are on disk.

        A digest that an old record lacks is noted now: without one the course is never published.
        """
        found = []
        for module in course.modules[:index]:
            if module.status is not ModuleStatus.SUCCEEDED or module.classroom_id is None:
                raise ContinuityBrokenError(module=module.index)
            digest = await self._digest(module.classroom_id, terms_of(course))
            if module.digest is None:
                await self._note_digest(job, course, module, digest)
            found.append(digest)
        return tuple(found)

    async def _note_digest(
        self, job: Job, course: Course, module: Module, digest: OutputDigest
    ) -> None:
        async with self._database.transaction() as work:
            await job.fence(work)
            await repository.set_module(work, course.course_key, module.index, digest=digest)
        crash_point("authoring.digest.noted")

    async def _digest(self, classroom_id: str, terms: Sequence[str]) -> OutputDigest:
        classroom = await asyncio.to_thread(self._library.read, classroom_id)
        media = await asyncio.to_thread(self._library.media_hashes, classroom_id)
        return output_digest(classroom, media, terms=terms)

    def _seated(self, job: Job, course: Course, part: int) -> Author:
        """Return the course's author as it works in this run."""
        seat = Seat(
            subject=course.subject,
            run_id=course.run.run_id if course.run else "",
            part=part,
            owner=course.owner,
            fence=job.fence,
        )
        return author_of(self._authors, course.author).seated(seat)

    async def _placed(self, author: Author, order: ModuleOrder) -> Classroom:
        """Return the classroom of a module: the one that a killed attempt placed, or a new one."""
        with contextlib.suppress(ClassroomUnknownError):
            return await asyncio.to_thread(self._library.read, order.classroom_id)
        draft = await asyncio.to_thread(self._library.draft, order.classroom_id, self._ids.new())
        try:
            classroom = await by_author(author.module(order, draft))
            _require_activity(classroom, order.index)
            crash_point("authoring.module.made")
            await to_the_end(self._commit, draft, classroom)
        finally:
            await to_the_end(draft.__exit__)
        return classroom

    @staticmethod
    def _commit(draft: Draft, classroom: Classroom) -> None:
        draft.commit(classroom)

    async def _failed(self, job: Job, course: Course, error: EtudeError) -> None:
        """Note why a run ended; what comes after the failed module is not begun."""
        error_code, problems = error.code, problems_of(error)
        async with self._database.transaction() as work:
            await job.fence(work)
            now = self._clock.now()
            found = await repository.load_by_key(work.connection, course.course_key)
            modules = found.modules if found else ()
            running = [one for one in modules if one.status is ModuleStatus.RUNNING]
            for module in running:
                await repository.set_module(
                    work,
                    course.course_key,
                    module.index,
                    status=ModuleStatus.FAILED,
                    error_code=error_code,
                    classroom_id=None,
                )
            await ask_removal(work, running, now)
            if course.active is None or course.active.kind != "publish":
                await repository.set_course(
                    work,
                    course.course_key,
                    now,
                    status=CourseStatus.FAILED,
                    error_code=error_code,
                )
            await self._end(work, job, RunState.FAILED, error_code, problems)
        crash_point("authoring.run.failed")
        for classroom_id in (one.classroom_id for one in running if one.classroom_id):
            await remove_at_once(self._database, self._library, classroom_id)
        log.warning("a run failed", action="authoring.failed", error_code=error_code)


def problems_of(error: EtudeError) -> tuple[Problem, ...]:
    """Return what an error says, part by part, as it is kept with the run."""
    parts = error.parts or (error,)
    whole = {name: value for name, value in error.params.items() if name != "mistakes"}

    def problem(part: EtudeError) -> Problem:
        params = (whole if error.parts else {}) | part.params
        path = str(params.pop("path", ""))
        said = ", ".join(f"{name}: {value}" for name, value in params.items() if value != "")
        return Problem(code=part.code, path=path[:300], detail=said[:500])

    return tuple(problem(part) for part in parts[:_MOST_PROBLEMS])


def _require_activity(classroom: Classroom, index: int) -> None:
    """Raise unless a module has an activity with a page (the generation gate)."""
    pages = (
        one.content.html for one in classroom.scenes if isinstance(one.content, InteractiveContent)
    )
    if not any((html or "").strip() for html in pages):
        raise ActivityMissingError(module=index)
