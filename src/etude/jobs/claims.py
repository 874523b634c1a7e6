"""What a runner does with job rows: claim, keep, fence, finish, put back.

The row is the truth. A run holds a job while three things stand in its row: the state `running`,
the run's own fencing number, and a lease that the runner prolongs. When the lease is over, any
runner may claim the job; the claim changes the number, and from then on the earlier run, should it
still be alive, cannot write.
"""

import contextlib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, Update, and_, delete, false, not_, or_, select, update

from etude.clock import Clock, from_us, to_us
from etude.jobs.errors import Fenced
from etude.jobs.records import Job, JobState, RetryPolicy
from etude.jobs.tables import job
from etude.store import Database, UnitOfWork
from etude.store.dialects import insert_if_absent

WORKER_LOST: Final = "WORKER_LOST"
_US: Final = 1_000_000
_FREE: Final[Mapping[str, None]] = {"lease_until_us": None, "executor": None}


class Claims:
    """The claims of one runner."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        executor: str,
        lease_s: float,
        max_attempts: Mapping[str, int],
        periods_s: Mapping[str, int],
    ) -> None:
        """Claim for `executor` (unique among all that ever ran), for `lease_s` at a time.

        `max_attempts` says which kinds are claimed and how often a job of each may run;
        `periods_s`, which of them come round again, and every how many seconds.
        """
        self._database = database
        self._clock = clock
        self._executor = executor
        self._lease_us = round(lease_s * _US)
        self._max_attempts = max_attempts
        self._periods_s = periods_s

    async def claim(self, count: int, running: Collection[Job] = ()) -> list[Job]:
        """Claim up to `count` jobs that are due, or whose worker is lost; the longest due first.

        What is `running` here is not lost, even if its lease is over: a run that kept the database
        from everybody (the scrub after an erasure) kept it from `prolong` too.
        """
        now_us = self._now_us()
        lost = self._lost(now_us, running, may_run=True)
        due = or_(_waiting(self._max_attempts, now_us), lost)
        if not await self._any(due):
            return []
        async with self._database.transaction() as work:
            first = select(job.c.job_key).where(due).order_by(job.c.run_after_us).limit(count)
            # As a named query PostgreSQL runs it once; a subquery it may run again, past the limit.
            chosen = first.with_for_update(skip_locked=True).cte("chosen")
            statement = (
                update(job)
                .where(job.c.job_key.in_(select(chosen.c.job_key)))
                .values(
                    state=JobState.RUNNING,
                    fence=job.c.fence + 1,
                    attempts=job.c.attempts + 1,
                    lease_until_us=now_us + self._lease_us,
                    executor=self._executor,
                    updated_us=now_us,
                )
                .returning(*job.c)
            )
            return [self._job(row) for row in await work.connection.execute(statement)]

    async def prolong(self, held: Collection[Job]) -> frozenset[int]:
        """Prolong the leases of the jobs that run here; return which of them are lost.

        A job that was claimed and, by some error, not begun is not among them: it comes free.
        """
        lease_until_us = self._now_us() + self._lease_us
        numbers = {run.job_key: run.fence_number for run in held}
        mine = and_(
            job.c.job_key.in_(numbers),
            job.c.executor == self._executor,
            job.c.state == JobState.RUNNING,
        )
        rows = select(job.c.job_key, job.c.fence).where(job.c.job_key.in_(numbers))
        async with self._database.transaction() as work:
            await work.connection.execute(
                update(job).where(mine).values(lease_until_us=lease_until_us)
            )
            found = await work.connection.execute(rows)
            return frozenset(row.job_key for row in found if row.fence != numbers[row.job_key])

    async def bury_lost(self, running: Collection[Job] = ()) -> list[int]:
        """Give up jobs whose last allowed run did not survive; return their keys.

        `running`: as for `claim`.

        Without this, a job that kills its worker would kill one after the other. A periodic job
        waits for its next turn instead.
        """
        lost = self._lost(self._now_us(), running, may_run=False)
        if not await self._any(lost):
            return []
        freed = self._free(update(job).where(lost)).values(
            error_code=WORKER_LOST, fence=job.c.fence + 1
        )
        buried: list[int] = []
        async with self._database.transaction() as work:
            for kind, every_s in self._periods_s.items():
                again = freed.where(job.c.kind == kind).values(self._next_turn(every_s))
                await work.connection.execute(again)
            dead = freed.values(state=JobState.DEAD).returning(job.c.job_key)
            buried.extend(await work.connection.scalars(dead))
        return buried

    async def check(self, work: UnitOfWork, held: Job) -> None:
        """See `Job.fence`. The row is locked: no claim can come between check and commit."""
        row = select(job.c.job_key).where(_held(held)).with_for_update()
        if (await work.connection.execute(row)).first() is None:
            raise Fenced(kind=held.kind, attempt=held.attempt)

    async def finish(self, work: UnitOfWork, held: Job) -> None:
        """See `Job.finish`. A periodic job waits for its next turn instead of being done."""
        every_s = self._periods_s.get(held.kind)
        if every_s is None:
            await self._settle(work, held, state=JobState.DONE, error_code=None)
        else:
            await self._settle(work, held, **self._next_turn(every_s), error_code=None)

    async def again(self, work: UnitOfWork, held: Job, run_after: datetime) -> None:
        """See `Job.again`. The run counts as a good one: the next has all its attempts."""
        await self._settle(
            work,
            held,
            state=JobState.QUEUED,
            attempts=0,
            run_after_us=to_us(run_after),
            error_code=None,
        )

    async def finish_rest(self, held: Job) -> None:
        """Mark the job done if its handler left that to the runner."""
        with contextlib.suppress(Fenced):  # the handler did it, or another run will
            async with self._database.transaction() as work:
                await self.finish(work, held)

    async def fail(
        self, held: Job, policy: RetryPolicy, error_code: str, *, final: bool
    ) -> JobState:
        """Note a failed run: the job waits for another one, or is dead. Return its state.

        A periodic job never dies: it misses a turn.
        """
        async with self._database.transaction() as work:
            values = self._after_failure(held, policy, final=final)
            await self._settle(work, held, **values, error_code=error_code)
        return JobState(values["state"])

    async def release(self, held: Job) -> None:
        """Put a job back that was stopped through no fault of its own: the run does not count."""
        async with self._database.transaction() as work:
            await self._settle(
                work,
                held,
                state=JobState.QUEUED,
                attempts=job.c.attempts - 1,
                fence=job.c.fence + 1,
            )

    async def add_periodic(self) -> None:
        """Make sure that every periodic kind has its row, due no later than its next turn."""
        for kind, every_s in self._periods_s.items():
            turn = self._next_turn(every_s)
            now_us = self._now_us()
            row = {
                "kind": kind, "key": "periodic", "args": "{}", "fence": 0,
                "created_us": now_us, "updated_us": now_us, **turn,
            }  # fmt: skip
            sooner = update(job).where(
                job.c.kind == kind,
                job.c.key == "periodic",
                job.c.state != JobState.RUNNING,
                job.c.run_after_us > turn["run_after_us"],
            )
            async with self._database.transaction() as work:
                await work.connection.execute(insert_if_absent(work, job).values(row))
                await work.connection.execute(sooner.values(run_after_us=turn["run_after_us"]))

    async def prune(self, older_than: timedelta) -> int:
        """Delete rows of jobs that were done longer ago; return how many."""
        old = and_(
            job.c.state == JobState.DONE,
            job.c.updated_us < to_us(self._clock.now() - older_than),
        )
        async with self._database.transaction() as work:
            return (await work.connection.execute(delete(job).where(old))).rowcount

    async def _any(self, condition: ColumnElement[bool]) -> bool:
        """Look before locking: most of the time there is nothing to do."""
        async with self._database.read() as connection:
            found = await connection.execute(select(job.c.job_key).where(condition).limit(1))
            return found.first() is not None

    def _lost(self, now_us: int, running: Collection[Job], *, may_run: bool) -> ColumnElement[bool]:
        spent = or_(
            false(),
            *(
                and_(job.c.kind == kind, job.c.attempts >= limit)
                for kind, limit in self._max_attempts.items()
            ),
        )
        return and_(
            job.c.state == JobState.RUNNING,
            job.c.lease_until_us < now_us,
            job.c.kind.in_(self._max_attempts),
            job.c.job_key.not_in([run.job_key for run in running]),
            not_(spent) if may_run else spent,
        )

    async def _settle(self, work: UnitOfWork, held: Job, **values: Any) -> None:  # noqa: ANN401 - columns
        statement = self._free(update(job).where(_held(held))).values(**values)
        if (await work.connection.execute(statement)).rowcount != 1:
            raise Fenced(kind=held.kind, attempt=held.attempt)

    def _after_failure(self, held: Job, policy: RetryPolicy, *, final: bool) -> dict[str, Any]:
        if not final and held.attempt < policy.max_attempts:
            wait_us = round(policy.wait_s(held.attempt) * _US)
            return {"state": JobState.QUEUED, "run_after_us": self._now_us() + wait_us}
        every_s = self._periods_s.get(held.kind)
        return {"state": JobState.DEAD} if every_s is None else self._next_turn(every_s)

    def _free(self, statement: Update) -> Update:
        return statement.values(**_FREE, updated_us=self._now_us())

    def _next_turn(self, every_s: int) -> dict[str, Any]:
        every_us = every_s * _US
        turn_us = (self._now_us() // every_us + 1) * every_us
        return {"state": JobState.QUEUED, "attempts": 0, "run_after_us": turn_us}

    def _job(self, row: Row[Any]) -> Job:
        return Job(
            job_key=row.job_key,
            kind=row.kind,
            key=row.key,
            args=msgspec.json.decode(row.args, type=dict[str, int]),
            attempt=row.attempts,
            due_at=from_us(row.run_after_us),
            fence_number=row.fence,
            claims=self,
        )

    def _now_us(self) -> int:
        return to_us(self._clock.now())


def _waiting(kinds: Collection[str], now_us: int) -> ColumnElement[bool]:
    return and_(job.c.state == JobState.QUEUED, job.c.run_after_us <= now_us, job.c.kind.in_(kinds))


def _held(held: Job) -> ColumnElement[bool]:
    return and_(
        job.c.job_key == held.job_key,
        job.c.fence == held.fence_number,
        job.c.state == JobState.RUNNING,
    )
