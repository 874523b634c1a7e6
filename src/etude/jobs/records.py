"""What a handler gets, and how jobs are retried and repeated."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # the claim hands out jobs: a circle at run time
    from etude.jobs.claims import Claims
    from etude.store import UnitOfWork


class JobState(StrEnum):
    """Where a job stands. `dead` and `cancelled` wait for an operator."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Job(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One run of a job; two runs of the same job are not equal.

    Attributes:
        job_key: surrogate key of the row.
        kind: which handler.
        key: what it is about; with `kind` it names the job.
        args: surrogate keys of what it is about.
        attempt: 1 for the first run.
        due_at: when it was to run (for a periodic job: its turn).
    """

    job_key: int
    kind: str
    key: str
    args: dict[str, int]
    attempt: int
    due_at: datetime
    fence_number: int
    claims: "Claims"

    async def fence(self, work: "UnitOfWork") -> None:
        """Make sure, until `work` ends, that this run still holds the job. Call it in every write.

        Raises:
            Fenced: another worker took the job over, or it was cancelled.
        """
        await self.claims.check(work, self)

    async def finish(self, work: "UnitOfWork") -> None:
        """Mark the job done in the transaction of its last write: both are durable, or none.

        A handler that does not call this is run again if the worker dies between its last write
        and the runner's own note; then its writes must be idempotent.

        Raises:
            Fenced: as of `fence`.
        """
        await self.claims.finish(work, self)

    async def again(self, work: "UnitOfWork", run_after: datetime) -> None:
        """Put the job back to run once more, not before `run_after`, in the caller's transaction.

        Raises:
            Fenced: as of `fence`.
        """
        await self.claims.again(work, self, run_after)


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job as an operator sees it."""

    job_key: int
    kind: str
    key: str
    state: JobState
    attempts: int
    error_code: str | None
    run_after: datetime
    updated_at: datetime


Handler = Callable[[Job], Awaitable[None]]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failing job is tried, and how long it waits in between.

    Attributes:
        max_attempts: after so many runs it is dead; a run that its worker did not survive counts.
        first_wait_s: before the second run; it doubles each time.
        max_wait_s: longest wait.
    """

    max_attempts: int = 10
    first_wait_s: float = 1.0
    max_wait_s: float = 600.0

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after the failed run number `attempt` (from 1)."""
        return float(min(self.max_wait_s, self.first_wait_s * 2 ** min(attempt - 1, 60)))


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a runner goes about it.

    Attributes:
        concurrency: how many jobs run at once.
        lease_s: after so long without a sign of life another runner takes a job over.
        poll_s: how often to look for jobs that other processes ask for.
    """

    concurrency: int = 4
    lease_s: float = 30.0
    poll_s: float = 0.5


class Periodic(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is due again and again: at every full multiple of `every_s` since 1970.

    However many workers run, a turn runs once and never beside the one before it. Turns missed
    while no worker ran are not made up for.
    """

    kind: str
    every_s: int
