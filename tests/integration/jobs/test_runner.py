"""The contract of jobs, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import structlog
from sqlalchemy import select, update

from etude.clock import to_us
from etude.errors import UnavailableError
from etude.jobs import (
    Fenced,
    GiveUp,
    Handler,
    Job,
    JobMissing,
    JobRow,
    JobState,
    Pace,
    Periodic,
    RetryPolicy,
    Runner,
    cancel,
    counted,
    enqueue,
    jobs_in,
    requeue,
)
from etude.jobs.claims import WORKER_LOST, Claims
from etude.jobs.errors import JobArgsError
from etude.jobs.tables import job
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.waiting import within

Run = Callable[..., Any]
PACE = Pace(concurrency=2, lease_s=0.3, poll_s=0.01)


class Away(UnavailableError):  # noqa: N818 - an error of a test's own
    code = "AWAY"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@asynccontextmanager
async def running(
    database: Database, handlers: Mapping[str, Handler], **options: Any
) -> AsyncIterator[Runner]:
    runner = Runner(database, handlers, pace=options.pop("pace", PACE), **options)
    await runner.start()
    try:
        yield runner
    finally:
        await within(runner.stop(grace_s=options.get("grace_s", 10)), "the runner's stop")
        await within(runner.wait(), "the runner's end")


async def ask(database: Database, clock: ManualClock, kind: str, key: str = "1") -> bool:
    async with database.transaction() as work:
        return await enqueue(work, kind, key, {"session_key": 7}, now=clock.now())


async def row_of(database: Database, kind: str) -> Any:
    async with database.read() as connection:
        return (await connection.execute(select(job).where(job.c.kind == kind))).one()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what must come; the time-out only ends a test that hangs."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - a row of the database sends no event
            await asyncio.sleep(0.01)


async def until_state(database: Database, kind: str, state: JobState) -> Any:
    async def reached() -> bool:
        return bool((await row_of(database, kind)).state == state)

    await until(reached)
    return await row_of(database, kind)


async def until_error(database: Database, kind: str) -> None:
    async def noted() -> bool:
        row = await row_of(database, kind)
        return row.error_code is not None and row.state == JobState.QUEUED

    await until(noted)


async def until_count(found: list[Any], count: int) -> None:
    async def reached() -> bool:
        return len(found) >= count

    await until(reached)


def test_job_reaches_its_handler_with_its_keys(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A job asked for is carried out once, with what was asked, and is done."""
    seen: list[Job] = []

    async def note(given: Job) -> None:
        seen.append(given)

    async def main() -> None:
        await ask(database, clock, "note", "session-7")
        async with running(database, {"note": note}, clock=clock):
            await until_state(database, "note", JobState.DONE)

    run(main())
    (given,) = seen
    assert (given.kind, given.key, given.args) == ("note", "session-7", {"session_key": 7})
    assert (given.attempt, given.due_at) == (1, clock.now())


def test_asking_is_part_of_the_callers_transaction(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A transaction that fails has asked for nothing."""

    async def ask_and_fail() -> None:
        async with database.transaction() as work:
            await enqueue(work, "note", "1", now=clock.now())
            raise ZeroDivisionError

    async def main() -> list[JobRow]:
        with pytest.raises(ZeroDivisionError):
            await ask_and_fail()
        async with database.read() as connection:
            return await jobs_in(connection, JobState.QUEUED)

    assert run(main()) == []


def test_jobs_are_counted_by_kind_and_state(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Other kinds do not count; a state in which there is none is left out."""

    async def main() -> Mapping[JobState, int]:
        async with database.transaction() as work:
            for key in ("1", "2"):
                await enqueue(work, "note", key, now=clock.now())
            await enqueue(work, "other", "1", now=clock.now())
        async with database.read() as connection:
            return await counted(connection, "note")

    assert run(main()) == {JobState.QUEUED: 2}


def test_same_kind_and_key_is_the_same_job(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Asked for twice, queued or done, a job is there once and runs once."""
    runs: list[int] = []

    async def note(given: Job) -> None:
        runs.append(given.job_key)

    async def main() -> None:
        assert await ask(database, clock, "note")
        assert not await ask(database, clock, "note")
        async with running(database, {"note": note}, clock=clock):
            await until_state(database, "note", JobState.DONE)
            assert not await ask(database, clock, "note")

    run(main())
    assert len(runs) == 1


@pytest.mark.parametrize("value", ["Ada", 1.5, None, True])
def test_arguments_are_whole_numbers(
    run: Run, database: Database, clock: ManualClock, value: Any
) -> None:
    """A text, a fraction, nothing and a truth value are no arguments of a job."""

    async def main() -> None:
        async with database.transaction() as work:
            await enqueue(work, "note", "1", {"learner": value}, now=clock.now())

    with pytest.raises(JobArgsError):
        run(main())


def test_job_waits_for_its_time(run: Run, database: Database, clock: ManualClock) -> None:
    """A job is not begun before `run_after`, and then at once."""

    async def note(_given: Job) -> None:
        pass

    async def main() -> None:
        async with database.transaction() as work:
            later = clock.now() + timedelta(seconds=60)
            await enqueue(work, "note", "1", run_after=later, now=clock.now())
        await ask(database, clock, "other")
        async with running(database, {"note": note, "other": note}, clock=clock):
            await until_state(database, "other", JobState.DONE)
            assert (await row_of(database, "note")).state == JobState.QUEUED
            clock.advance(60)
            await until_state(database, "note", JobState.DONE)

    run(main())


def test_kinds_of_others_are_left_alone(run: Run, database: Database, clock: ManualClock) -> None:
    """A job of a kind without a handler stays queued for a worker that has one."""

    async def note(_given: Job) -> None:
        pass

    async def main() -> None:
        await ask(database, clock, "of_a_newer_version")
        await ask(database, clock, "note")
        async with running(database, {"note": note}, clock=clock):
            await until_state(database, "note", JobState.DONE)
        row = await row_of(database, "of_a_newer_version")
        assert (row.state, row.attempts) == (JobState.QUEUED, 0)

    run(main())


def test_failing_job_is_tried_again_ever_later_and_dies(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Waits double from attempt to attempt; after the last one the job is dead, with its code."""
    due: list[float] = []
    start = clock.now()
    policy = RetryPolicy(max_attempts=4, first_wait_s=10, max_wait_s=25)

    async def fail(given: Job) -> None:
        due.append((given.due_at - start).total_seconds())
        raise Away

    async def main() -> JobRow:
        await ask(database, clock, "fail")
        async with running(database, {"fail": fail}, retries={"fail": policy}, clock=clock):
            for attempt, wait_s in enumerate((10, 20, 25), start=1):
                await until_count(due, attempt)
                await until_error(database, "fail")
                clock.advance(wait_s)
            await until_state(database, "fail", JobState.DEAD)
        async with database.read() as connection:
            (dead,) = await jobs_in(connection, JobState.DEAD)
        return dead

    dead = run(main())
    assert due == [0, 10, 30, 55]
    assert (dead.attempts, dead.error_code) == (4, "AWAY")


def test_dead_job_is_requeued_by_an_operator(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A dead job requeued begins again at its first attempt; one that is done cannot be."""
    attempts: list[int] = []

    async def fail_once(given: Job) -> None:
        attempts.append(given.attempt)
        if len(attempts) == 1:
            raise GiveUp(reason="NO_RUBRIC")

    async def again() -> None:
        async with database.transaction() as work:
            await requeue(work, "fail_once", "1", now=clock.now())

    async def main() -> None:
        await ask(database, clock, "fail_once")
        async with running(database, {"fail_once": fail_once}, clock=clock):
            await until_state(database, "fail_once", JobState.DEAD)
            await again()
            await until_state(database, "fail_once", JobState.DONE)
            with pytest.raises(JobMissing):
                await again()

    run(main())
    assert attempts == [1, 1]


def test_log_holds_no_words_of_an_error(run: Run, database: Database, clock: ManualClock) -> None:
    """What a failing handler said, and the job's key, do not reach the log; code and place do."""
    words = "Ada Lovelace, 8 years old"

    async def fail(_given: Job) -> None:
        raise ValueError(words)

    async def main() -> None:
        await ask(database, clock, "fail", "session-of-ada")
        retries = {"fail": RetryPolicy(max_attempts=1)}
        async with running(database, {"fail": fail}, retries=retries, clock=clock):
            await until_state(database, "fail", JobState.DEAD)

    with structlog.testing.capture_logs() as logs:
        run(main())
    assert words not in str(logs)
    assert "session-of-ada" not in str(logs)
    (failed,) = [entry for entry in logs if entry["action"] == "jobs.failed"]
    assert failed["error_code"] == "ValueError"
    assert "test_runner.py" in failed["where"]


def test_cancelled_job_that_waits_never_runs(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A queued job that is cancelled is not carried out."""

    async def note(given: Job) -> None:
        assert given.kind == "other"

    async def main() -> None:
        await ask(database, clock, "note")
        async with database.transaction() as work:
            await cancel(work, "note", "1", now=clock.now())
        await ask(database, clock, "other")
        async with running(database, {"note": note, "other": note}, clock=clock):
            await until_state(database, "other", JobState.DONE)
        assert (await row_of(database, "note")).state == JobState.CANCELLED

    run(main())


def test_cancelled_job_that_runs_is_stopped_and_fenced(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Cancelling a running job fences its writes at once, and its task is stopped soon after."""
    begun, stopped = asyncio.Event(), asyncio.Event()
    fenced: list[bool] = []

    async def hang(given: Job) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
            try:
                async with database.transaction() as work:
                    await given.fence(work)
            except Fenced:
                fenced.append(True)

    async def main() -> None:
        await ask(database, clock, "hang")
        async with running(database, {"hang": hang}, clock=clock):
            await within(begun.wait(), "the handler's begin")
            async with database.transaction() as work:
                await cancel(work, "hang", "1", now=clock.now())
            await within(stopped.wait(), "the end of the handler")
        assert (await row_of(database, "hang")).state == JobState.CANCELLED

    run(main())
    assert fenced == [True]


def test_lost_job_is_taken_over_and_the_first_run_is_fenced(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Once the lease is over another runner runs the job; the first run may then neither write
    nor finish, and what it does afterwards changes nothing."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    attempts: list[int] = []
    fenced: list[str] = []

    async def slow(given: Job) -> None:
        attempts.append(given.attempt)
        begun.set()
        await go_on.wait()
        for name, guard in (("fence", given.fence), ("finish", given.finish)):
            try:
                async with database.transaction() as work:
                    await guard(work)
            except Fenced:
                fenced.append(name)

    async def quick(given: Job) -> None:
        attempts.append(given.attempt)

    async def main() -> None:
        await ask(database, clock, "slow")
        frozen = Pace(concurrency=1, lease_s=3600, poll_s=0.01)  # it does not prolong in this test
        async with running(database, {"slow": slow}, clock=clock, pace=frozen):
            await within(begun.wait(), "the handler's begin")
            clock.advance(3601)
            async with running(database, {"slow": quick}, clock=clock):
                await until_state(database, "slow", JobState.DONE)
            go_on.set()
        row = await row_of(database, "slow")
        assert (row.state, row.attempts) == (JobState.DONE, 2)

    run(main())
    assert attempts == [1, 2]
    assert fenced == ["fence", "finish"]


def test_living_runner_keeps_its_job(run: Run, database: Database, clock: ManualClock) -> None:
    """A job that runs for longer than a lease is prolonged and taken over by nobody."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def slow(given: Job) -> None:
        runs.append(given.attempt)
        begun.set()
        await go_on.wait()

    async def prolonged(lease_us: int) -> bool:
        return bool((await row_of(database, "slow")).lease_until_us > lease_us)

    async def main() -> None:
        await ask(database, clock, "slow")
        async with running(database, {"slow": slow}, clock=clock):
            await within(begun.wait(), "the handler's begin")
            async with running(database, {"slow": slow}, clock=clock):
                for _ in range(5):
                    lease_us = (await row_of(database, "slow")).lease_until_us
                    clock.advance(0.2)
                    await until(partial(prolonged, lease_us))
                go_on.set()
                await until_state(database, "slow", JobState.DONE)

    run(main())
    assert runs == [1]


def test_job_claimed_but_never_begun_comes_free(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A row that stands under a living runner which does not run it is not prolonged for ever."""

    async def note(_given: Job) -> None:
        pass

    async def main() -> None:
        await ask(database, clock, "note")
        runner = Runner(database, {"note": note}, clock=clock, pace=PACE)
        lost = {"state": "running", "executor": runner.executor, "attempts": 1}
        lease = {"lease_until_us": to_us(clock.now()) + 300_000}
        async with database.transaction() as work:
            await work.connection.execute(update(job).values(lost | lease))
        await runner.start()
        for _ in range(3):  # in each, time to prolong what it believes to hold
            clock.advance(0.2)
            await asyncio.sleep(0.2)
        await until_state(database, "note", JobState.DONE)
        await runner.stop()

    run(main())


def test_claims_at_once_are_disjoint_and_within_their_limit(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Five claimers at once get two jobs each of ten, none twice, the longest due first."""

    def claims(executor: str) -> Claims:
        return Claims(
            database,
            clock,
            executor=executor,
            lease_s=30,
            max_attempts={"note": 10},
            periods_s={},
        )

    async def main() -> None:
        for number in range(11):
            await ask(database, clock, "note", str(number))
            clock.advance(1)
        claimed = await asyncio.gather(*(claims(f"c{number}").claim(2) for number in range(5)))
        assert [len(jobs) for jobs in claimed] == [2] * 5
        keys = [given.key for jobs in claimed for given in jobs]
        assert sorted(keys, key=int) == [str(number) for number in range(10)]

    run(main())


def test_job_that_runs_here_is_never_lost_here(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A run that kept its own runner from prolonging the lease is neither begun again nor buried;
    to every other runner it is lost."""

    def claims(executor: str, most: int) -> Claims:
        return Claims(
            database,
            clock,
            executor=executor,
            lease_s=30,
            max_attempts={"scrub": most},
            periods_s={},
        )

    async def main() -> None:
        await ask(database, clock, "scrub")
        mine = claims("mine", 10)
        held = await mine.claim(1)
        clock.advance(31)
        assert await mine.claim(1, held) == []
        assert await claims("mine", 1).bury_lost(held) == []
        assert await mine.prolong(held) == frozenset()
        clock.advance(31)
        assert [job.attempt for job in await claims("other", 10).claim(1)] == [2]

    run(main())


def test_job_that_kills_its_workers_is_given_up(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A job whose last allowed run did not survive is dead, instead of killing the next worker."""

    async def note(given: Job) -> None:
        assert given.kind == "other"

    async def main() -> None:
        await ask(database, clock, "killer")
        lost = {"state": "running", "attempts": 10, "lease_until_us": 1, "executor": "dead"}
        async with database.transaction() as work:
            await work.connection.execute(update(job).values(lost))
        await ask(database, clock, "other")
        async with running(database, {"killer": note, "other": note}, clock=clock):
            await until_state(database, "other", JobState.DONE)
            row = await until_state(database, "killer", JobState.DEAD)
        assert row.error_code == WORKER_LOST

    run(main())


def test_stopped_runner_puts_its_jobs_back(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """What does not end within the grace is queued again, and the run does not count."""
    begun = asyncio.Event()

    async def hang(_given: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def main() -> None:
        await ask(database, clock, "hang")
        runner = Runner(database, {"hang": hang}, clock=clock, pace=PACE)
        await runner.start()
        await within(begun.wait(), "the handler's begin")
        await runner.stop(grace_s=0)
        row = await row_of(database, "hang")
        assert (row.state, row.attempts, row.executor) == (JobState.QUEUED, 0, None)

    run(main())


def test_stopping_runner_lets_its_jobs_end(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """What ends within the grace is done; nothing new is begun meanwhile."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_given: Job) -> None:
        begun.set()
        await go_on.wait()

    async def main() -> None:
        await ask(database, clock, "slow")
        runner = Runner(database, {"slow": slow, "late": slow}, clock=clock, pace=PACE)
        await runner.start()
        await within(begun.wait(), "the handler's begin")
        stopping = asyncio.create_task(runner.stop(grace_s=60))
        await asyncio.sleep(0)
        await ask(database, clock, "late")
        go_on.set()
        await within(stopping, "the runner's stop")
        await within(runner.wait(), "the runner's end")
        assert (await row_of(database, "slow")).state == JobState.DONE
        assert (await row_of(database, "late")).state == JobState.QUEUED

    run(main())


def test_finish_is_one_with_the_last_write(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A transaction that finished its job and then failed has neither written nor finished."""
    attempts: list[int] = []

    async def handle(given: Job) -> None:
        attempts.append(given.attempt)
        async with database.transaction() as work:
            await enqueue(work, "effect", str(given.attempt), now=clock.now())
            await given.finish(work)
            if given.attempt == 1:
                raise Away

    async def main() -> list[str]:
        await ask(database, clock, "handle")
        retries = {"handle": RetryPolicy(first_wait_s=0)}
        async with running(database, {"handle": handle}, retries=retries, clock=clock):
            await until_state(database, "handle", JobState.DONE)
        async with database.read() as connection:
            return [row.key for row in await jobs_in(connection, JobState.QUEUED)]

    assert run(main()) == ["2"]
    assert attempts == [1, 2]


def test_periodic_job_runs_once_a_turn(run: Run, database: Database, clock: ManualClock) -> None:
    """Two runners, three turns, one of them missed by both: each turn that came runs once."""
    turns: list[float] = []
    start = clock.now()

    async def sweep(given: Job) -> None:
        turns.append((given.due_at - start).total_seconds())

    async def next_turn(count: int) -> None:
        await until_count(turns, count)
        await until_state(database, "sweep", JobState.QUEUED)

    async def main() -> None:
        periodic = [Periodic(kind="sweep", every_s=60)]
        async with (
            running(database, {"sweep": sweep}, periodic=periodic, clock=clock),
            running(database, {"sweep": sweep}, periodic=periodic, clock=clock),
        ):
            clock.advance(60)
            await next_turn(1)
            clock.advance(130)
            await next_turn(2)
            clock.advance(55)
            await next_turn(3)

    run(main())
    assert turns == [60, 120, 240]


def test_failing_periodic_job_never_dies(run: Run, database: Database, clock: ManualClock) -> None:
    """A periodic job that cannot succeed waits for its next turn and shows its code."""

    async def fail(_given: Job) -> None:
        raise GiveUp(reason="NO_RUBRIC")

    async def main() -> Any:
        periodic = [Periodic(kind="fail", every_s=60)]
        async with running(database, {"fail": fail}, periodic=periodic, clock=clock):
            clock.advance(60)
            await until_error(database, "fail")
        return await row_of(database, "fail")

    row = run(main())
    assert (row.state, row.attempts, row.error_code) == (JobState.QUEUED, 0, "JOB_GIVEN_UP")


def test_runner_outlives_a_store_that_is_away(
    run: Run, database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database does not answer the runner waits; afterwards it goes on."""

    async def note(_given: Job) -> None:
        pass

    async def main() -> None:
        await ask(database, clock, "note")
        async with running(database, {"note": note}, clock=clock) as runner:
            with monkeypatch.context() as patch:
                refusals = _refuse_claims(runner, patch)
                await until_count(refusals, 3)
            await until_state(database, "note", JobState.DONE)

    run(main())


def _refuse_claims(runner: Runner, patch: pytest.MonkeyPatch) -> list[int]:
    refusals: list[int] = []

    async def refuse(count: int, _running: list[Job]) -> list[Job]:
        refusals.append(count)
        raise Away

    patch.setattr(runner._claims, "claim", refuse)
    return refusals


def test_broken_runner_says_so(
    run: Run, database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect in the runner itself ends `wait` with the error, instead of idling for ever."""

    async def main() -> None:
        runner = Runner(database, {}, clock=clock, pace=PACE)

        async def broken(_count: int, _running: list[Job]) -> list[Job]:
            raise ZeroDivisionError

        monkeypatch.setattr(runner._claims, "claim", broken)
        await runner.start()
        try:
            with pytest.raises(ZeroDivisionError):
                await within(runner.wait(), "the runner's end")
        finally:
            await runner.stop()

    run(main())


def test_rows_of_done_jobs_go_after_a_week(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """A job done more than seven days ago is removed; a dead one stays for the operator."""

    async def handle(given: Job) -> None:
        if given.kind == "dead":
            raise GiveUp(reason="NO_RUBRIC")

    async def only_the_dead_is_there() -> bool:
        async with database.read() as connection:
            return list(await connection.scalars(select(job.c.kind))) == ["dead"]

    async def main() -> None:
        for kind in ("done", "dead"):
            await ask(database, clock, kind)
        async with running(database, {"done": handle, "dead": handle}, clock=clock):
            await until_state(database, "done", JobState.DONE)
            await until_state(database, "dead", JobState.DEAD)
            clock.advance(7 * 86400 + 1)
            await until(only_the_dead_is_there)

    run(main())


def test_a_waiter_that_gives_up_costs_no_lease(
    run: Run, database: Database, clock: ManualClock
) -> None:
    """Whoever waits for a runner may be cancelled: jobs that run are still prolonged."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Job) -> None:
        begun.set()
        await go_on.wait()

    async def prolonged(lease_us: int) -> bool:
        return bool((await row_of(database, "slow")).lease_until_us > lease_us)

    async def main() -> None:
        await ask(database, clock, "slow")
        async with running(database, {"slow": slow}, clock=clock) as runner:
            await within(begun.wait(), "the handler's begin")
            waiting = asyncio.create_task(runner.wait())
            await asyncio.sleep(0)
            waiting.cancel()
            lease_us = (await row_of(database, "slow")).lease_until_us
            clock.advance(0.2)
            await until(partial(prolonged, lease_us))
            go_on.set()
            await until_state(database, "slow", JobState.DONE)

    run(main())
