"""What everybody but the runner does with jobs: ask for them, look at them, cancel, requeue."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.jobs.errors import JobArgsError, JobMissing
from etude.jobs.records import JobRow, JobState
from etude.jobs.tables import job
from etude.store import UnitOfWork
from etude.store.dialects import insert_if_absent


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
    return [
        JobRow(
            job_key=row.job_key,
            kind=row.kind,
            key=row.key,
            state=JobState(row.state),
            attempts=row.attempts,
            error_code=row.error_code,
            run_after=from_us(row.run_after_us),
            updated_at=from_us(row.updated_us),
        )
        for row in await connection.execute(rows)
    ]


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
