"""Rows of single classrooms and of the jobs that make them, read and written."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Row, Select, and_, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.authoring.classrooms.records import (
    ClassroomJob,
    ClassroomRecord,
    JobStatus,
    LessonOutline,
    LessonRequest,
    Origin,
    Owner,
    Step,
)
from etude.authoring.classrooms.tables import classroom_job, classroom_record
from etude.authoring.tables import course, course_module
from etude.clock import from_us, to_us
from etude.people.paging import key_after, page
from etude.people.records import Page
from etude.store import UnitOfWork

_encode = msgspec.json.encode
_LIVE: Final = (JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.WAITING)
_JOBS: Final = select(
    classroom_job,
    classroom_record.c.classroom_id,
    classroom_record.c.owner_kind,
    classroom_record.c.owner_key,
).join(classroom_record, classroom_record.c.classroom_key == classroom_job.c.classroom_key)


async def add_record(
    work: UnitOfWork, classroom_id: str, owner: Owner, origin: Origin, title: str, now: datetime
) -> int:
    """Say whose a classroom will be, before it is there; return its key."""
    row = {
        "classroom_id": classroom_id, "owner_kind": owner.kind, "owner_key": owner.key,
        "learner_key": owner.learner_key, "origin": origin, "title": title[:300],
        "created_us": to_us(now),
    }  # fmt: skip
    made = insert(classroom_record).values(row).returning(classroom_record.c.classroom_key)
    return int((await work.connection.execute(made)).scalar_one())


async def record_of(connection: AsyncConnection, classroom_id: str) -> ClassroomRecord | None:
    """Return whose a classroom is, also of one that was removed; None: it is no single one."""
    wanted = select(classroom_record).where(classroom_record.c.classroom_id == classroom_id)
    row = (await connection.execute(wanted)).first()
    return None if row is None else _record(row)


async def record_by_key(connection: AsyncConnection, classroom_key: int) -> ClassroomRecord | None:
    """Return whose a classroom is, by its key."""
    wanted = select(classroom_record).where(classroom_record.c.classroom_key == classroom_key)
    row = (await connection.execute(wanted)).first()
    return None if row is None else _record(row)


async def records(
    connection: AsyncConnection, owner: Owner, *, cursor: str | None, limit: int
) -> Page[ClassroomRecord]:
    """Return classrooms that are there, of an owner, or of all for whoever sees all."""
    wanted = (
        select(classroom_record)
        .where(
            classroom_record.c.classroom_key > key_after(cursor),
            classroom_record.c.placed_us.is_not(None),
            classroom_record.c.removed_us.is_(None),
        )
        .order_by(classroom_record.c.classroom_key)
        .limit(limit + 1)
    )
    rows = (await connection.execute(_theirs(wanted, owner))).all()
    return page(rows, limit, _record, "classroom_key")


async def set_record(work: UnitOfWork, classroom_key: int, **values: Any) -> None:  # noqa: ANN401 - columns
    """Change columns of a classroom's row."""
    which = classroom_record.c.classroom_key == classroom_key
    await work.connection.execute(update(classroom_record).where(which).values(**values))


async def remove_record(work: UnitOfWork, classroom_key: int) -> None:
    """Remove a classroom's row and its job's."""
    mine = classroom_job.c.classroom_key == classroom_key
    await work.connection.execute(delete(classroom_job).where(mine))
    which = classroom_record.c.classroom_key == classroom_key
    await work.connection.execute(delete(classroom_record).where(which))


async def asked_since(
    connection: AsyncConnection, owner: Owner, since: datetime
) -> tuple[int, datetime | None]:
    """Return how many classrooms an owner asked for since a time, and when the first was."""
    mine = and_(
        classroom_record.c.owner_kind == owner.kind,
        classroom_record.c.owner_key == owner.key,
        classroom_record.c.created_us > to_us(since),
    )
    counted = select(func.count(), func.min(classroom_record.c.created_us)).where(mine)
    count, first = (await connection.execute(counted)).one()
    return int(count), None if first is None else from_us(first)


async def course_of(connection: AsyncConnection, classroom_id: str) -> str | None:
    """Return the id of the course that is made of a classroom, if any."""
    wanted = (
        select(course.c.course_id)
        .join(course_module, course_module.c.course_key == course.c.course_key)
        .where(course_module.c.classroom_id == classroom_id)
        .limit(1)
    )
    found = (await connection.execute(wanted)).scalar_one_or_none()
    return None if found is None else str(found)


async def add_job(
    work: UnitOfWork, new: ClassroomJob, slot: tuple[str, int], now: datetime
) -> int | None:
    """Insert a job; return its key, or None if its owner's slot is taken."""
    now_us = to_us(now)
    row = {
        "job_id": new.job_id, "classroom_key": new.classroom_key, "author": new.author,
        "request": _encode(new.request), "preview": new.preview, "status": new.status,
        "step": new.step, "progress": 0, "run": 1, "slot_of": slot[0], "slot": slot[1],
        "outline_revision": 0, "scenes_made": 0, "created_us": now_us, "updated_us": now_us,
    }  # fmt: skip
    try:
        async with work.connection.begin_nested():
            made = insert(classroom_job).values(row).returning(classroom_job.c.classroom_job_key)
            return int((await work.connection.execute(made)).scalar_one())
    except IntegrityError:
        return None


async def take_slot(work: UnitOfWork, job_key: int, slot: tuple[str, int]) -> bool:
    """Give a job a slot of its owner; return whether it was free."""
    try:
        async with work.connection.begin_nested():
            await _set(work, job_key, slot_of=slot[0], slot=slot[1])
    except IntegrityError:
        return False
    return True


async def slots_taken(connection: AsyncConnection, slot_of: str) -> frozenset[int]:
    """Return the slots of an owner that are taken."""
    wanted = select(classroom_job.c.slot).where(classroom_job.c.slot_of == slot_of)
    return frozenset((await connection.execute(wanted)).scalars())


async def job_of(connection: AsyncConnection, job_id: str) -> ClassroomJob | None:
    """Return a job by its id."""
    row = (await connection.execute(_JOBS.where(classroom_job.c.job_id == job_id))).first()
    return None if row is None else _job(row)


def worker_key(job: ClassroomJob) -> str:
    """Return under which key the worker was asked last."""
    return job.job_id if job.run == 1 else f"{job.job_id}.{job.run}"


async def job_by_key(connection: AsyncConnection, job_key: int) -> ClassroomJob | None:
    """Return a job by its key."""
    row = (
        await connection.execute(_JOBS.where(classroom_job.c.classroom_job_key == job_key))
    ).first()
    return None if row is None else _job(row)


async def jobs(
    connection: AsyncConnection, owner: Owner, *, cursor: str | None, limit: int
) -> Page[ClassroomJob]:
    """Return jobs of an owner, or of all for whoever sees all, the oldest first."""
    wanted = (
        _JOBS.where(classroom_job.c.classroom_job_key > key_after(cursor))
        .order_by(classroom_job.c.classroom_job_key)
        .limit(limit + 1)
    )
    rows = (await connection.execute(_theirs(wanted, owner))).all()
    return page(rows, limit, _job, "classroom_job_key")


async def status_of(connection: AsyncConnection, job_key: int) -> JobStatus | None:
    """Return where a job stands; None if it is gone."""
    wanted = select(classroom_job.c.status).where(classroom_job.c.classroom_job_key == job_key)
    found = (await connection.execute(wanted)).scalar_one_or_none()
    return None if found is None else JobStatus(found)


async def set_job(work: UnitOfWork, job_key: int, now: datetime, **values: Any) -> bool:  # noqa: ANN401 - columns
    """Change columns of a job that is not over; return whether there was one."""
    if isinstance(values.get("outline"), LessonOutline):
        values["outline"] = _encode(values["outline"])
    return await _set(work, job_key, **values, updated_us=to_us(now))


async def set_progress(
    work: UnitOfWork, job_key: int, now: datetime, step: Step, progress: int, made: int
) -> None:
    """Note how far a job is that is being worked on; it never goes back."""
    which = and_(
        classroom_job.c.classroom_job_key == job_key,
        classroom_job.c.status == JobStatus.RUNNING,
        classroom_job.c.progress <= progress,
    )
    values = {"step": step, "progress": progress, "scenes_made": made, "updated_us": to_us(now)}
    await work.connection.execute(update(classroom_job).where(which).values(**values))


async def end_job(
    work: UnitOfWork,
    job_key: int,
    status: JobStatus,
    now: datetime,
    **values: Any,  # noqa: ANN401 - columns
) -> bool:
    """End a job that is not over, and free its slot; return whether there was one."""
    ended = {"slot_of": None, "slot": None, "ended_us": to_us(now)}
    return await set_job(work, job_key, now, status=status, **ended, **values)


async def of_learner(
    connection: AsyncConnection, learner_key: int
) -> Sequence[tuple[ClassroomRecord, ClassroomJob | None]]:
    """Return a learner's classrooms, each with the job that made it."""
    wanted = select(classroom_record).where(classroom_record.c.learner_key == learner_key)
    found = [_record(row) for row in await connection.execute(wanted)]
    rows = await connection.execute(_JOBS.where(classroom_record.c.learner_key == learner_key))
    by_key = {job.classroom_key: job for job in map(_job, rows)}
    return [(one, by_key.get(one.classroom_key)) for one in found if not one.removed]


async def waiting_since(connection: AsyncConnection, before: datetime) -> list[ClassroomJob]:
    """Return jobs whose outline nobody confirmed for long."""
    wanted = _JOBS.where(
        classroom_job.c.status == JobStatus.WAITING, classroom_job.c.updated_us < to_us(before)
    )
    return [_job(row) for row in await connection.execute(wanted.limit(200))]


async def removed(connection: AsyncConnection, before: datetime) -> list[ClassroomRecord]:
    """Return classrooms that were removed before a time."""
    gone = classroom_record.c.removed_us < to_us(before)
    wanted = select(classroom_record).where(gone).limit(1000)
    return [_record(row) for row in await connection.execute(wanted)]


async def unplaced(connection: AsyncConnection, before: datetime) -> list[ClassroomRecord]:
    """Return classrooms that should have been there before a time, and of which nobody said so."""
    live = select(classroom_job.c.classroom_key).where(classroom_job.c.status.in_(_LIVE))
    wanted = select(classroom_record).where(
        classroom_record.c.placed_us.is_(None),
        classroom_record.c.removed_us.is_(None),
        classroom_record.c.created_us < to_us(before),
        classroom_record.c.classroom_key.not_in(live),
    )
    return [_record(row) for row in await connection.execute(wanted.limit(1000))]


async def _set(work: UnitOfWork, job_key: int, **values: Any) -> bool:  # noqa: ANN401 - columns
    which = and_(classroom_job.c.classroom_job_key == job_key, classroom_job.c.status.in_(_LIVE))
    done = await work.connection.execute(update(classroom_job).where(which).values(**values))
    return done.rowcount == 1


def _theirs(wanted: Select[Any], owner: Owner) -> Select[Any]:
    if owner.sees_all:
        return wanted
    return wanted.where(
        classroom_record.c.owner_kind == owner.kind, classroom_record.c.owner_key == owner.key
    )


def _record(row: Row[Any]) -> ClassroomRecord:
    return ClassroomRecord(
        classroom_key=row.classroom_key,
        classroom_id=row.classroom_id,
        owner=Owner(kind=row.owner_kind, key=row.owner_key),
        origin=row.origin,
        title=row.title,
        created_at=from_us(row.created_us),
        placed=row.placed_us is not None,
        removed=row.removed_us is not None,
    )


def _job(row: Row[Any]) -> ClassroomJob:
    return ClassroomJob(
        job_key=row.classroom_job_key,
        job_id=row.job_id,
        classroom_key=row.classroom_key,
        classroom_id=row.classroom_id,
        owner=Owner(kind=row.owner_kind, key=row.owner_key),
        author=row.author,
        request=msgspec.json.decode(row.request, type=LessonRequest),
        preview=row.preview,
        status=JobStatus(row.status),
        step=Step(row.step),
        progress=row.progress,
        run=row.run,
        outline=None
        if row.outline is None
        else msgspec.json.decode(row.outline, type=LessonOutline),
        outline_revision=row.outline_revision,
        scenes_made=row.scenes_made,
        error_code=row.error_code,
        created_at=from_us(row.created_us),
        updated_at=from_us(row.updated_us),
        started_at=None if row.started_us is None else from_us(row.started_us),
        ended_at=None if row.ended_us is None else from_us(row.ended_us),
    )
