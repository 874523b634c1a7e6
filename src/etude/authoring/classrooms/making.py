"""Making a single classroom: the handler of `authoring.classroom` jobs, and who cleans up after.

The tables are the truth. The classroom's id is given before anything is made, so a kill leads to
the same classroom: if it was placed it is taken over, else it is made again from the stored
outline. A job that was cancelled writes nothing more: it is fenced off, and whoever carries it out
looks twice a second.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import structlog

from etude.authoring.authors import LessonAuthor, LessonOrder, by_author, to_the_end
from etude.authoring.classrooms import repository
from etude.authoring.classrooms.errors import LessonWithoutActivityError
from etude.authoring.classrooms.jobs import (
    LOOK_AGAIN,
    ClassroomJobs,
    blob_owner,
    ledger_subject,
    unwant,
)
from etude.authoring.classrooms.records import (
    ClassroomJob,
    JobStatus,
    LessonOutline,
    Step,
    progress_of,
)
from etude.authoring.errors import AuthorUnknownError
from etude.authoring.seats import FRAMEWORK, Seat
from etude.classroom.errors import ClassroomUnknownError
from etude.classroom.library import DRAFT_AGE, ClassroomLibrary, Draft
from etude.classroom.model import Classroom, InteractiveContent
from etude.clock import Clock, Ids, to_us
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs import Fenced, Job
from etude.store import Blobs, Database
from etude.store.errors import StoreUnavailable

LOOK_EVERY_S: Final = 0.5
TIDY: Final = "authoring.classrooms_tidy"
TIDY_EVERY_S: Final = 3600
UNCONFIRMED: Final = timedelta(days=7)
FORGOTTEN: Final = timedelta(days=30)
log = structlog.get_logger("etude.authoring")


class ClassroomMaking:
    """The handler of `authoring.classroom` jobs."""

    def __init__(
        self,
        database: Database,
        library: ClassroomLibrary,
        blobs: Blobs,
        clock: Clock,
        ids: Ids,
        authors: Mapping[str, LessonAuthor],
        *,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        """`authors` by their names: those that this installation can ask."""
        self._database = database
        self._library = library
        self._blobs = blobs
        self._clock = clock
        self._ids = ids
        self._authors = authors
        self._look_every_s = look_every_s

    async def __call__(self, job: Job) -> None:
        """Carry the job out, unless it is over."""
        told = _Told()
        working = asyncio.create_task(self._carry_out(job, told))
        looking = asyncio.create_task(self._until_over(job, told))
        try:
            await asyncio.wait({working, looking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over = looking.done() and not working.done()
            looking.cancel()
            if not working.done():
                working.cancel()
                await asyncio.wait([working])
        if not over:
            await working
        elif not working.cancelled():
            working.exception()

    async def _until_over(self, job: Job, told: "_Told") -> None:
        """Write down how far it is; return when the job was cancelled."""
        while True:
            await asyncio.sleep(self._look_every_s)
            with contextlib.suppress(StoreUnavailable):
                async with self._database.read() as connection:
                    status = await repository.status_of(connection, job.args["job_key"])
                if status is None or status.done:
                    return
                await self._note(job, told)

    async def _note(self, job: Job, told: "_Told") -> None:
        values = told.news()
        if values is None:
            return
        step, made, progress = values
        async with self._database.transaction() as work:
            await repository.set_progress(
                work, job.args["job_key"], self._clock.now(), step, progress, made
            )

    async def _carry_out(self, job: Job, told: "_Told") -> None:
        async with self._database.read() as connection:
            found = await repository.job_by_key(connection, job.args["job_key"])
        if found is None or found.status.done or found.status is JobStatus.WAITING:
            return
        if found.run != job.args["run"]:
            return
        try:
            outline = await self._outline(job, found, told)
            if outline is not None:
                await self._classroom(job, found, outline, told)
        except (Fenced, StoreUnavailable):
            raise
        except EtudeError as error:
            await self._failed(job, found, error.code)

    async def _outline(self, job: Job, found: ClassroomJob, told: "_Told") -> LessonOutline | None:
        """Return the outline by which the scenes are made; None: a person is to confirm it."""
        now = self._clock.now()
        async with self._database.transaction() as work:
            await job.fence(work)
            step = Step.INITIALIZING if found.outline is None else Step.SCENES
            values = {"status": JobStatus.RUNNING, "started_us": to_us(found.started_at or now)}
            await repository.set_job(work, found.job_key, now, **values)
            await repository.set_progress(
                work, found.job_key, now, step, progress_of(step), found.scenes_made
            )
        if found.outline is not None:
            return found.outline
        told.tell(Step.OUTLINES, 0, 1)
        order = self._order(job, found, FRAMEWORK)
        outline = await by_author(self._author(found).lesson_outline(order, told.tell))
        crash_point("authoring.classroom.outlined")
        async with self._database.transaction() as work:
            await job.fence(work)
            values = {"outline": outline, "outline_revision": 1}
            if found.preview:
                waiting = {"status": JobStatus.WAITING, "step": Step.AWAITING}
                values |= waiting | {"progress": progress_of(Step.AWAITING)}
                values |= {"slot_of": None, "slot": None}
                await job.finish(work)
            await repository.set_job(work, found.job_key, self._clock.now(), **values)
        crash_point("authoring.classroom.outline_noted")
        if not found.preview:
            return outline
        log.info("an outline waits", action="authoring.classroom_outline", job=found.job_id)
        return None

    async def _classroom(
        self, job: Job, found: ClassroomJob, outline: LessonOutline, told: "_Told"
    ) -> None:
        classroom = await self._placed(job, found, outline, told)
        crash_point("authoring.classroom.placed")
        async with self._database.transaction() as work:
            await job.fence(work)
            now = self._clock.now()
            await repository.end_job(
                work,
                found.job_key,
                JobStatus.SUCCEEDED,
                now,
                step=Step.COMPLETED,
                progress=progress_of(Step.COMPLETED),
                scenes_made=len(classroom.scenes),
            )
            await repository.set_record(
                work, found.classroom_key, placed_us=to_us(now), title=classroom.stage.name[:300]
            )
            await self._blobs.remove_references(work, blob_owner(found.job_key))
            await job.finish(work)
        crash_point("authoring.classroom.noted")
        log.info("a classroom is made", action="authoring.classroom", job=found.job_id)

    async def _placed(
        self, job: Job, found: ClassroomJob, outline: LessonOutline, told: "_Told"
    ) -> Classroom:
        """Return the classroom: the one that a killed attempt placed, or a new one."""
        with contextlib.suppress(ClassroomUnknownError):
            return await asyncio.to_thread(self._library.read, found.classroom_id)
        draft = await asyncio.to_thread(self._library.draft, found.classroom_id, self._ids.new())
        try:
            order = self._order(job, found, 0)
            made = self._author(found).lesson(order, outline, draft, told.tell)
            classroom = await by_author(made)
            _require_activity(classroom)
            crash_point("authoring.classroom.made")
            told.tell(Step.PERSISTING, 0, 1)
            await to_the_end(_commit, draft, classroom)
        except asyncio.CancelledError:
            await to_the_end(self._library.remove, found.classroom_id)
            raise
        finally:
            await to_the_end(draft.__exit__)
        return classroom

    async def _failed(self, job: Job, found: ClassroomJob, error_code: str) -> None:
        """Note why there is no classroom."""
        async with self._database.transaction() as work:
            await job.fence(work)
            now = self._clock.now()
            await repository.end_job(
                work, found.job_key, JobStatus.FAILED, now, step=Step.FAILED, error_code=error_code
            )
            await self._blobs.remove_references(work, blob_owner(found.job_key))
            await unwant(work, found.classroom_key, now, again=now)
            await job.finish(work)
        crash_point("authoring.classroom.failed")
        log.warning(
            "a classroom failed", action="authoring.classroom_failed", error_code=error_code
        )

    def _author(self, found: ClassroomJob) -> LessonAuthor:
        author = self._authors.get(found.author)
        if author is None:
            raise AuthorUnknownError(author=found.author, known=", ".join(sorted(self._authors)))
        return author

    @staticmethod
    def _order(job: Job, found: ClassroomJob, part: int) -> LessonOrder:
        seat = Seat(
            subject=ledger_subject(found.job_key),
            run_id=found.job_id,
            part=part,
            owner=found.owner.name,
            fence=job.fence,
        )
        return LessonOrder(
            request=found.request,
            seat=seat,
            classroom_id=found.classroom_id,
            created_at=found.created_at,
        )


class ClassroomRemoval:
    """The handler of `authoring.classroom_removal` jobs: what nobody wants leaves the disk."""

    def __init__(self, database: Database, library: ClassroomLibrary) -> None:
        """Remove from `library`."""
        self._database = database
        self._library = library

    async def __call__(self, job: Job) -> None:
        """Remove a classroom, if it is still unwanted; it may be removed already."""
        async with self._database.read() as connection:
            found = await repository.record_by_key(connection, job.args["classroom_key"])
        if found is not None and found.removed:
            await asyncio.to_thread(self._library.remove, found.classroom_id)
            crash_point("authoring.classroom.files_removed")


class ClassroomTidying:
    """The handler of the periodic job that ends what was forgotten."""

    def __init__(
        self, database: Database, library: ClassroomLibrary, jobs: ClassroomJobs, clock: Clock
    ) -> None:
        """Look after `library` and the rows of `database`."""
        self._database = database
        self._library = library
        self._jobs = jobs
        self._clock = clock

    async def __call__(self, job: Job) -> None:
        """Cancel outlines that nobody confirmed for a week; remove what kills left over."""
        now = self._clock.now()
        expired = await self._jobs.expire(now - UNCONFIRMED)
        async with self._database.read() as connection:
            unwanted = await repository.removed(connection, now - LOOK_AGAIN)
            unsaid = await repository.unplaced(connection, now - LOOK_AGAIN)
        for one in unwanted:
            await asyncio.to_thread(self._library.remove, one.classroom_id)
        there = set(await asyncio.to_thread(self._library.ids))
        async with self._database.transaction() as work:
            for one in await repository.removed(work.connection, now - FORGOTTEN):
                await repository.remove_record(work, one.classroom_key)
            for one in unsaid:
                if one.classroom_id in there:  # killed between the last two steps of an import
                    await repository.set_record(work, one.classroom_key, placed_us=to_us(now))
                elif one.created_at < now - DRAFT_AGE:
                    await repository.remove_record(work, one.classroom_key)
        swept = await asyncio.to_thread(self._library.sweep, now)
        log.info("classrooms tidied", action=job.kind, expired=expired, swept=swept)


class _Told:
    """What an author said last about how far it is; written by any thread, read by the loop."""

    def __init__(self) -> None:
        self._now: tuple[Step, int, int] | None = None
        self._noted: tuple[Step, int, int] | None = None

    def tell(self, step: Step, made: int, of: int) -> None:
        """Say how far it is (`Tell`)."""
        self._now = (step, made, of)

    def news(self) -> tuple[Step, int, int] | None:
        """Return step, scenes that are made, and progress, if they changed since the last time."""
        now = self._now
        if now is None or now == self._noted:
            return None
        self._noted = now
        step, made, of = now
        return step, made if step in {Step.SCENES, Step.TTS} else 0, progress_of(step, made, of)


def _commit(draft: Draft, classroom: Classroom) -> None:
    draft.commit(classroom)


def _require_activity(classroom: Classroom) -> None:
    """Raise unless there is an activity with a page (the generation gate)."""
    pages = (
        one.content.html for one in classroom.scenes if isinstance(one.content, InteractiveContent)
    )
    if not any((html or "").strip() for html in pages):
        raise LessonWithoutActivityError
