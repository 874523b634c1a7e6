"""What people do with classrooms that are to be made: ask, edit the outline, confirm, cancel.

Each call is one transaction; the worker makes the classroom (`making`). An owner has so many slots
for what works at once, and so many classrooms a day; an outline that waits for its reader takes no
slot.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.authoring.authors import LessonAuthor
from etude.authoring.classrooms import repository
from etude.authoring.classrooms.errors import (
    ClassroomJobsAtOnceError,
    ClassroomJobStateError,
    ClassroomJobUnknownError,
    ClassroomsADayError,
    ClassroomWorkerLostError,
    LessonOutlineChangedError,
)
from etude.authoring.classrooms.records import (
    MAKE,
    REMOVE,
    ClassroomJob,
    JobStatus,
    LessonOutline,
    LessonRequest,
    Owner,
    Step,
)
from etude.authoring.errors import AuthorUnknownError
from etude.authoring.records import AuthorName
from etude.clock import Clock, Ids, to_us
from etude.files import crash_point
from etude.jobs import JobMissing, JobState, cancel, enqueue, find
from etude.people.erasure import principal_tombstone
from etude.people.records import Page
from etude.store import Blobs, Database, UnitOfWork

AT_ONCE_RETRY_S: Final = 30
LOOK_AGAIN: Final = timedelta(seconds=60)
"""After so long a worker that did not know of a cancellation has noticed, or is dead."""
_DAY: Final = timedelta(days=1)
log = structlog.get_logger("etude.authoring")


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """How much one owner may ask for."""

    at_once: int
    a_day: int


class ClassroomJobs:
    """The jobs of an installation that make single classrooms. Lives as long as the process."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        clock: Clock,
        ids: Ids,
        authors: Mapping[str, LessonAuthor],
        quota: Quota,
    ) -> None:
        """`authors` by their names: those that this installation can ask."""
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._ids = ids
        self._authors = authors
        self._quota = quota

    async def create(
        self, request: LessonRequest, owner: Owner, author: AuthorName = "outline"
    ) -> ClassroomJob:
        """Ask for a classroom.

        Raises:
            AuthorUnknownError: there is no such author here.
            LessonMaterialTooLittleError, LessonMaterialTooMuchError, LessonStepsMissingError,
            MaterialTwiceError, MaterialUnreadableError, MaterialLineTooLongError: no lesson can be
            made of this.
            ClassroomJobsAtOnceError, ClassroomsADayError: not now.
            BlobMissing: a recording was not stored before.
            LearnerErasedError: the owner is gone.
        """
        await self._author(author).accept(request, owner.name)
        now, job_id = self._clock.now(), self._ids.new()
        new = ClassroomJob(
            job_key=0, job_id=job_id, classroom_key=0, classroom_id=f"k-{self._ids.new()}",
            owner=owner, author=author, request=request, preview=request.preview,
            status=JobStatus.QUEUED, step=Step.QUEUED, progress=0, run=1, outline=None,
            outline_revision=0, scenes_made=0, error_code=None, created_at=now, updated_at=now,
            started_at=None, ended_at=None,
        )  # fmt: skip
        async with self._database.transaction() as work:
            await principal_tombstone(work.connection, learner_key=owner.learner_key, lock=True)
            await check_day(work, owner, self._quota, now)
            title = request.requirement.strip().partition("\n")[0]
            classroom_key = await repository.add_record(
                work, new.classroom_id, owner, "generated", title, now
            )
            job_key = await self._added(
                work, msgspec.structs.replace(new, classroom_key=classroom_key)
            )
            for sound in request.sounds:
                await self._blobs.add_reference(work, sound.sha256, blob_owner(job_key))
            await enqueue(work, MAKE, job_id, {"job_key": job_key, "run": 1}, now=now)
            crash_point("authoring.classroom.asked")
        return await self.get(owner, job_id)

    async def get(self, owner: Owner, job_id: str) -> ClassroomJob:
        """Return a job; one whose worker is gone for good is failed then.

        Raises:
            ClassroomJobUnknownError: there is none, or it is somebody else's.
        """
        async with self._database.read() as connection:
            found = await self._theirs(connection, owner, job_id)
            lost = await _is_lost(connection, found)
        if not lost:
            return found
        async with self._database.transaction() as work:
            error = ClassroomWorkerLostError.code
            await self._end(work, found, JobStatus.FAILED, Step.FAILED, error_code=error)
        async with self._database.read() as connection:
            return await self._theirs(connection, owner, job_id)

    async def listed(self, owner: Owner, *, cursor: str | None, limit: int) -> Page[ClassroomJob]:
        """Return the owner's jobs, the oldest first; everybody's for whoever sees all."""
        async with self._database.read() as connection:
            return await repository.jobs(connection, owner, cursor=cursor, limit=limit)

    async def silent(self, job: ClassroomJob) -> tuple[str, ...]:
        """Return the places of sentences that will have no sound."""
        return await asyncio.to_thread(self._author(job.author).silent_sentences, job.request)

    async def edit_outline(
        self, owner: Owner, job_id: str, revision: int, outline: LessonOutline
    ) -> ClassroomJob:
        """Replace the outline while it waits for confirmation.

        Raises:
            ClassroomJobUnknownError, ClassroomJobStateError: it does not wait.
            LessonOutlineChangedError: it is of another revision by now.
            LessonOutlineInvalidError: its parts are the mistakes.
        """
        found = self._waiting(await self.get(owner, job_id), revision)
        edited = self._author(found.author).edited_outline(_outline(found), outline)
        async with self._database.transaction() as work:
            found = self._waiting(await self._theirs(work.connection, owner, job_id), revision)
            await repository.set_job(
                work,
                found.job_key,
                self._clock.now(),
                outline=edited,
                outline_revision=revision + 1,
            )
            crash_point("authoring.classroom.outline_edited")
        return await self.get(owner, job_id)

    async def confirm(self, owner: Owner, job_id: str, revision: int | None = None) -> ClassroomJob:
        """Confirm the outline, so that the classroom is made.

        Args:
            owner: who asks.
            job_id: which job.
            revision: of the outline that was read; None = whichever it is.

        Raises:
            ClassroomJobUnknownError, ClassroomJobStateError, LessonOutlineChangedError: as above.
            ClassroomJobsAtOnceError: not now.
        """
        async with self._database.transaction() as work:
            found = await self._theirs(work.connection, owner, job_id)
            self._waiting(found, revision)
            await self._slotted(work, found)
            run, now = found.run + 1, self._clock.now()
            await repository.set_job(
                work, found.job_key, now, status=JobStatus.QUEUED, step=Step.SCENES, run=run
            )
            key, args = f"{job_id}.{run}", {"job_key": found.job_key, "run": run}
            await enqueue(work, MAKE, key, args, now=now)
            crash_point("authoring.classroom.confirmed")
        return await self.get(owner, job_id)

    async def cancel(self, owner: Owner, job_id: str) -> ClassroomJob:
        """Stop a job; nothing of its classroom stays.

        The record says so at once; the worker notices within a second, and its writes are void.

        Raises:
            ClassroomJobUnknownError, ClassroomJobStateError: there is nothing to stop.
        """
        async with self._database.transaction() as work:
            found = await self._theirs(work.connection, owner, job_id)
            if not await self._end(work, found, JobStatus.CANCELLED, Step.CANCELLED):
                raise ClassroomJobStateError(status=found.status)
            crash_point("authoring.classroom.cancelled")
        return await self.get(owner, job_id)

    async def expire(self, before: datetime) -> int:
        """Cancel jobs whose outline nobody confirmed since a time; return how many."""
        async with self._database.transaction() as work:
            found = await repository.waiting_since(work.connection, before)
            for job in found:
                await self._end(work, job, JobStatus.CANCELLED, Step.CANCELLED)
        return len(found)

    async def _end(
        self,
        work: UnitOfWork,
        job: ClassroomJob,
        status: JobStatus,
        step: Step,
        error_code: str | None = None,
    ) -> bool:
        """End a job without a classroom; return whether it was not over yet."""
        now = self._clock.now()
        if not await repository.end_job(
            work, job.job_key, status, now, step=step, error_code=error_code
        ):
            return False
        try:
            await cancel(work, MAKE, repository.worker_key(job), now=now)
        except JobMissing:
            log.info("nothing works on it", action="authoring.classroom_cancel", job=job.job_id)
        await self._blobs.remove_references(work, blob_owner(job.job_key))
        await unwant(work, job.classroom_key, now, again=now + LOOK_AGAIN)
        return True

    async def _added(self, work: UnitOfWork, new: ClassroomJob) -> int:
        for slot in await self._free(work, new.owner):
            job_key = await repository.add_job(work, new, slot, self._clock.now())
            if job_key is not None:
                return job_key
        raise self._too_many()

    async def _slotted(self, work: UnitOfWork, job: ClassroomJob) -> None:
        for slot in await self._free(work, job.owner):
            if await repository.take_slot(work, job.job_key, slot):
                return
        raise self._too_many()

    async def _free(self, work: UnitOfWork, owner: Owner) -> list[tuple[str, int]]:
        taken = await repository.slots_taken(work.connection, owner.name)
        return [(owner.name, slot) for slot in range(self._quota.at_once) if slot not in taken]

    def _too_many(self) -> ClassroomJobsAtOnceError:
        return ClassroomJobsAtOnceError(limit=self._quota.at_once, retry_after_s=AT_ONCE_RETRY_S)

    async def _theirs(self, connection: AsyncConnection, owner: Owner, job_id: str) -> ClassroomJob:
        found = await repository.job_of(connection, job_id)
        if found is None or not owns(owner, found.owner):
            raise ClassroomJobUnknownError(job=job_id[:64])
        return found

    def _author(self, name: str) -> LessonAuthor:
        if name not in self._authors:
            raise AuthorUnknownError(author=name, known=", ".join(sorted(self._authors)))
        return self._authors[name]

    @staticmethod
    def _waiting(job: ClassroomJob, revision: int | None) -> ClassroomJob:
        if job.status is not JobStatus.WAITING:
            raise ClassroomJobStateError(status=job.status)
        if revision is not None and revision != job.outline_revision:
            raise LessonOutlineChangedError(found=job.outline_revision)
        return job


def owns(asking: Owner, owner: Owner) -> bool:
    """Whether something of `owner` is for `asking` to see and change."""
    return asking.sees_all or (asking.kind, asking.key) == (owner.kind, owner.key)


async def check_day(work: UnitOfWork, owner: Owner, quota: Quota, now: datetime) -> None:
    """Raise `ClassroomsADayError` if an owner has asked for enough within a day."""
    if owner.kind == "host":
        return
    count, first = await repository.asked_since(work.connection, owner, now - _DAY)
    if count >= quota.a_day and first is not None:
        wait_s = max(1, round((first + _DAY - now).total_seconds()))
        raise ClassroomsADayError(limit=quota.a_day, retry_after_s=wait_s)


async def unwant(work: UnitOfWork, classroom_key: int, now: datetime, *, again: datetime) -> None:
    """Note that nobody wants a classroom; what of it is on the disk at `again` goes then."""
    await repository.set_record(work, classroom_key, removed_us=to_us(now))
    args = {"classroom_key": classroom_key}
    await enqueue(work, REMOVE, str(classroom_key), args, run_after=again, now=now)


def blob_owner(job_key: int) -> str:
    """Return who keeps the recordings of a job until it is over."""
    return f"classroom-job:{job_key}"


def ledger_subject(job_key: int) -> str:
    """Return whose work it is in the ledger what a model is asked for a job."""
    return f"classroom:{job_key}"


def _outline(job: ClassroomJob) -> LessonOutline:
    if job.outline is None:
        raise ClassroomJobStateError(status=job.status)
    return job.outline


async def _is_lost(connection: AsyncConnection, job: ClassroomJob) -> bool:
    """Whether a job that should be worked on has nobody who ever will."""
    if job.status.done or job.status is JobStatus.WAITING:
        return False
    row = await find(connection, MAKE, repository.worker_key(job))
    return row is None or row.state in {JobState.DEAD, JobState.CANCELLED, JobState.DONE}
