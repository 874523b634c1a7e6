"""The worker's side: carries out jobs until it is stopped.

One runner lives in a worker process; any number of processes may run one on the same database, and
each takes over what a dead one held (`docs/jobs.md §How it holds`). Handlers run on the event
loop: what computes for long belongs into a process pool, or the leases run out.
"""

import asyncio
import contextlib
import functools
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final

import structlog

from etude.clock import Clock, SystemClock
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs.claims import Claims
from etude.jobs.errors import Fenced, GiveUp
from etude.jobs.records import Handler, Job, JobState, Pace, Periodic, RetryPolicy
from etude.store import Database
from etude.store.failures import error_code, where

_log = structlog.get_logger(__name__)
_KEEP_DONE: Final = timedelta(days=7)
_DEFAULT_RETRY: Final = RetryPolicy()
_DEFAULT_PACE: Final = Pace()


class Runner:
    """Carries out jobs. Belongs to one event loop; start it once, stop it once.

    >>> async def work(database: Database) -> None:
    ...     runner = Runner(database, {"examine": examine}, periodic=[Periodic(...)])
    ...     await runner.start()
    ...     try:
    ...         await runner.wait()
    ...     finally:
    ...         await runner.stop()
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        *,
        periodic: Iterable[Periodic] = (),
        retries: Mapping[str, RetryPolicy] | None = None,
        clock: Clock | None = None,
        pace: Pace = _DEFAULT_PACE,
    ) -> None:
        """Prepare a runner of the kinds in `handlers`; jobs of other kinds are left alone.

        Args:
            database: where the jobs are.
            handlers: what to do for each kind.
            periodic: which of the kinds are due again and again.
            retries: how the kinds that differ from the default are retried.
            clock: the machine's if left out.
            pace: how many at once, and how often to look.
        """
        self._handlers = handlers
        self._retries = {kind: (retries or {}).get(kind, _DEFAULT_RETRY) for kind in handlers}
        self._pace = pace
        self.executor = uuid.uuid4().hex
        self._claims = Claims(
            database,
            clock or SystemClock(),
            executor=self.executor,
            lease_s=pace.lease_s,
            max_attempts={kind: policy.max_attempts for kind, policy in self._retries.items()},
            periods_s={each.kind: each.every_s for each in periodic},
        )
        self._running: dict[Job, asyncio.Task[None]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._awake = asyncio.Event()
        self._over = asyncio.Event()
        self._stopping = False

    async def start(self) -> None:
        """Begin to carry out jobs.

        Raises:
            StoreUnavailable: the database is away.
        """
        await self._claims.add_periodic()
        self._loops = [
            asyncio.create_task(self._dispatch()),
            asyncio.create_task(self._keep_leases()),
            asyncio.create_task(self._clean_up()),
        ]

    def wake(self) -> None:
        """Look for jobs now instead of at the next poll: `work.after_commit(runner.wake)`."""
        self._awake.set()

    async def wait(self) -> None:
        """Return when the runner was stopped; raise what broke it, if something did."""
        # Not `gather`: who gives up waiting would cancel the loops, and running jobs their lease.
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_EXCEPTION)
        for loop in done:
            loop.result()

    async def stop(self, grace_s: float = 10.0) -> None:
        """Claim nothing more, let running jobs end for `grace_s`, put the others back."""
        if not self._loops:
            return
        self._stopping = True
        self.wake()
        dispatch, *others = self._loops
        await asyncio.wait([dispatch])
        if self._running:
            await asyncio.wait(self._running.values(), timeout=grace_s)
        for task in self._running.values():
            task.cancel()
        if self._running:
            await asyncio.wait(self._running.values())
        self._over.set()  # only now: what runs keeps its lease
        await asyncio.wait(others)

    async def _dispatch(self) -> None:
        while not self._stopping:
            self._awake.clear()
            with _outlived("jobs.claim"):
                await self._claim_and_begin()
            await _is_set(self._awake, self._pace.poll_s)

    async def _claim_and_begin(self) -> None:
        free = self._pace.concurrency - len(self._running)
        if free <= 0:
            return  # the end of any job wakes the loop
        for job in await self._claims.claim(free, list(self._running)):
            task = asyncio.create_task(self._carry_out(job))
            self._running[job] = task
            task.add_done_callback(functools.partial(self._ended, job))

    def _ended(self, job: Job, _task: asyncio.Task[None]) -> None:
        del self._running[job]
        self.wake()

    async def _keep_leases(self) -> None:
        while not await _is_set(self._over, self._pace.lease_s / 3):
            with _outlived("jobs.lease"):
                running = dict(self._running)
                lost = await self._claims.prolong(running)
                for job, task in running.items():
                    if job.job_key in lost:
                        task.cancel()

    async def _clean_up(self) -> None:
        while True:
            with _outlived("jobs.clean_up"):
                for job_key in await self._claims.bury_lost(list(self._running)):
                    _log.error("job's workers died", action="jobs.dead", job_key=job_key)
                await self._claims.prune(_KEEP_DONE)
            if await _is_set(self._over, self._pace.lease_s):
                return

    async def _carry_out(self, job: Job) -> None:
        log = _log.bind(job_key=job.job_key, kind=job.kind, attempt=job.attempt)
        crash_point("jobs.run.claimed")
        try:
            await self._handlers[job.kind](job)
            crash_point("jobs.run.handled")
            await self._claims.finish_rest(job)
            crash_point("jobs.run.finished")
            log.info("job done", action="jobs.done")
        except Fenced:
            log.warning("job was taken over or cancelled", action="jobs.fenced")
        except asyncio.CancelledError:
            await self._put_back(job)
            log.warning("job stopped", action="jobs.stopped")
        except Exception as error:  # noqa: BLE001 - a handler may fail in any way; the job is kept
            code = error_code(error)
            log.warning("job failed", action="jobs.failed", error_code=code, where=where(error))
            with _outlived("jobs.fail"):
                await self._fail(job, error)

    async def _fail(self, job: Job, error: Exception) -> None:
        policy, final = self._retries[job.kind], isinstance(error, GiveUp)
        state = await self._claims.fail(job, policy, error_code(error), final=final)
        if state is JobState.DEAD:
            _log.error("job given up", action="jobs.dead", job_key=job.job_key, kind=job.kind)

    async def _put_back(self, job: Job) -> None:
        # Also after a take-over or a cancellation: then the fence keeps this from any effect.
        with _outlived("jobs.release"):
            await self._claims.release(job)


async def _is_set(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for `event`, at most `timeout_s`; return whether it came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    return event.is_set()


@contextlib.contextmanager
def _outlived(action: str) -> Iterator[None]:
    """Go on after an error of the store: the lease and the next look at the rows set it right."""
    try:
        yield
    except Fenced:
        pass
    except EtudeError as error:
        _log.warning("the job store failed", action=action, error_code=error_code(error))
