"""What everybody but the runner does with jobs: ask for them, look at them, cancel, requeue."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Row, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.jobs.errors import JobArgsError, JobMissing
from etude.jobs.records import JobRow, JobState
from etude.jobs.tables import job
from etude.store import UnitOfWork
from etude.store.dialects import insert_for, insert_if_absent


async def enqueue(
    work: UnitOfWork,
    kind: str,
    key: str,
    args: Mapping[str, int] | None = None,
    *,
    run_after: datetime | None = None,
    now: datetime | None = None,
) -> bool:
    """Ask for a job in the caller's own transaction; return whether it is new.

    Args:
        work: commits the intent together with whatever makes the job necessary.
        kind: which handler.
        key: what the job is about. A second job of the same kind and key is no second job, as
            long as the first one's row is kept. No name or id of a person: it reaches logs.
        args: surrogate keys of what it is about.
        run_after: not before this time (aware); at once if left out.
        now: the time of asking (aware); the machine's clock if left out.

    Raises:
        JobArgsError: an argument is no whole number.
    """
    now_us = to_us(now or datetime.now(UTC))
    row = {
        "kind": kind,
        "key": key,
        "args": encode_args(kind, args or {}),
        "state": JobState.QUEUED,
        "attempts": 0,
        "fence": 0,
        "run_after_us": now_us if run_after is None else to_us(run_after),
        "created_us": now_us,
        "updated_us": now_us,
    }
    result = await work.connection.execute(insert_if_absent(work, job).values(row))
    return result.rowcount == 1


async def ask_again(
    work: UnitOfWork,
    kind: str,
    keys: Mapping[str, Mapping[str, int]],
    *,
    run_after: datetime,
    postpone: bool = False,
    now: datetime | None = None,
) -> None:
    """Ask for jobs that come up again and again: one row a key, however often it is asked for.

    A job that waits keeps its time if that is sooner. One that is over is queued anew, from its
    first attempt. One that runs is left alone: its handler must find out in its last transaction
    that it was asked for again, and then `Job.again` instead of `Job.finish`.

    Args:
        work: commits the intent together with whatever makes the jobs necessary.
        kind: which handler.
        keys: arguments by key, as for `enqueue`.
        run_after: not before this time (aware).
        postpone: a job that waits gets this time even if its own was sooner.
        now: as for `enqueue`.

    Raises:
        JobArgsError: an argument is no whole number.
    """
    now_us = to_us(now or datetime.now(UTC))
    rows = [
        {
            "kind": kind, "key": key, "args": encode_args(kind, args), "state": JobState.QUEUED,
            "attempts": 0, "fence": 0, "run_after_us": to_us(run_after),
            "created_us": now_us, "updated_us": now_us,
        }
        for key, args in sorted(keys.items())
    ]  # fmt: skip
    if not rows:
        return
    statement = insert_for(work, job)
    new, waits = statement.excluded, job.c.state == JobState.QUEUED
    sooner = waits & (job.c.run_after_us < new.run_after_us)
    changed = statement.on_conflict_do_update(
        index_elements=["kind", "key"],
        set_={
            "state": JobState.QUEUED,
            "attempts": case((waits, job.c.attempts), else_=0),
            "fence": case((waits, job.c.fence), else_=job.c.fence + 1),
            "run_after_us": new.run_after_us
            if postpone
            else case((sooner, job.c.run_after_us), else_=new.run_after_us),
            "lease_until_us": None,
            "executor": None,
            "updated_us": now_us,
        },
        where=job.c.state != JobState.RUNNING,
    )
    await work.connection.execute(changed, rows)


async def find(connection: AsyncConnection, kind: str, key: str) -> JobRow | None:
    """Return the job of this kind and key, as long as its row is kept."""
    wanted = select(job).where(job.c.kind == kind, job.c.key == key)
    row = (await connection.execute(wanted)).first()
    return None if row is None else _row(row)


async def cancel(work: UnitOfWork, kind: str, key: str, *, now: datetime | None = None) -> None:
    """Take a job back. If it runs, its writes are fenced off at once and its task soon ends.

    Raises:
        JobMissing: no such job waits or runs.
    """
    await _move(work, kind, key, (JobState.QUEUED, JobState.RUNNING), JobState.CANCELLED, now)


async def requeue(work: UnitOfWork, kind: str, key: str, *, now: datetime | None = None) -> None:
    """Try a dead or cancelled job again, from its first attempt.

    Raises:
        JobMissing: no such job is dead or cancelled.
    """
    await _move(work, kind, key, (JobState.DEAD, JobState.CANCELLED), JobState.QUEUED, now)


async def jobs_in(
    connection: AsyncConnection, state: JobState, *, limit: int = 100
) -> list[JobRow]:
    """Return the jobs in `state`, the latest changed first."""
    rows = select(job).where(job.c.state == state).order_by(job.c.updated_us.desc()).limit(limit)
    return [_row(row) for row in await connection.execute(rows)]


async def counted(connection: AsyncConnection, kind: str) -> Mapping[JobState, int]:
    """Return how many jobs of a kind are in each state; states without any are left out."""
    rows = await connection.execute(
        select(job.c.state, func.count()).where(job.c.kind == kind).group_by(job.c.state)
    )
    return {JobState(state): count for state, count in rows}


def _row(row: Row[Any]) -> JobRow:
    return JobRow(
        job_key=row.job_key,
        kind=row.kind,
        key=row.key,
        state=JobState(row.state),
        attempts=row.attempts,
        error_code=row.error_code,
        run_after=from_us(row.run_after_us),
        updated_at=from_us(row.updated_us),
    )


def encode_args(kind: str, args: Mapping[str, int]) -> str:
    """Return arguments as stored.

    Raises:
        JobArgsError: one is no whole number.
    """
    for name, value in args.items():
        if type(value) is not int:
            raise JobArgsError(kind=kind, name=name)
    return msgspec.json.encode(args).decode()


async def _move(
    work: UnitOfWork,
    kind: str,
    key: str,
    allowed: tuple[JobState, ...],
    target: JobState,
    now: datetime | None,
) -> None:
    now_us = to_us(now or datetime.now(UTC))
    statement = (
        update(job)
        .where(job.c.kind == kind, job.c.key == key, job.c.state.in_(allowed))
        .values(
            state=target,
            fence=job.c.fence + 1,
            attempts=0 if target is JobState.QUEUED else job.c.attempts,
            run_after_us=now_us if target is JobState.QUEUED else job.c.run_after_us,
            lease_until_us=None,
            executor=None,
            updated_us=now_us,
        )
    )
    if (await work.connection.execute(statement)).rowcount != 1:
        raise JobMissing(kind=kind, key=key)
