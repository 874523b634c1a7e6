"""Jobs that come up again and again: one row a key, on both databases."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from etude.jobs import Fenced, Job, JobRow, JobState, ask_again, find
from etude.jobs.claims import Claims
from etude.store import Database
from etude.testing.clocks import ManualClock

Run = Callable[..., Any]
KEYS = {"7": {"session_key": 7}, "8": {"session_key": 8}}


class Asked:
    def __init__(self, database: Database, run: Run) -> None:
        self.database, self.run, self.clock = database, run, ManualClock()
        self.claims = Claims(
            database,
            self.clock,
            executor="one",
            lease_s=30,
            max_attempts={"again": 3},
            periods_s={},
        )

    def ask(self, after_s: float = 0, *, postpone: bool = False) -> None:
        async def asked() -> None:
            now = self.clock.now()
            run_after = now + timedelta(seconds=after_s)
            async with self.database.transaction() as work:
                await ask_again(
                    work, "again", KEYS, run_after=run_after, postpone=postpone, now=now
                )

        self.run(asked())

    def row(self) -> JobRow:
        async def found() -> JobRow | None:
            async with self.database.read() as connection:
                return await find(connection, "again", "7")

        row: JobRow | None = self.run(found())
        assert row is not None
        return row

    def claim(self) -> list[Job]:
        claimed: list[Job] = self.run(self.claims.claim(10))
        return claimed

    def wait_s(self) -> float:
        return (self.row().run_after - self.clock.now()).total_seconds()

    def end(self, job: Job, after_s: float | None) -> None:
        async def ended() -> None:
            async with self.database.transaction() as work:
                if after_s is None:
                    await job.finish(work)
                else:
                    await job.again(work, self.clock.now() + timedelta(seconds=after_s))

        self.run(ended())


@pytest.fixture
def asked(database: Database, run: Run) -> Asked:
    return Asked(database, run)


def test_a_waiting_job_keeps_the_sooner_time_unless_it_is_postponed(asked: Asked) -> None:
    """Asked for often, it is one row; `postpone` begins the wait anew."""
    asked.ask(30)
    asked.ask(60)
    assert asked.wait_s() == 30
    asked.ask(10)
    assert asked.wait_s() == 10
    asked.ask(40, postpone=True)
    assert asked.wait_s() == 40
    asked.clock.advance(40)
    assert len(asked.claim()) == 2


def test_a_job_that_is_over_is_queued_anew_with_all_its_attempts(asked: Asked) -> None:
    """Done, it runs again; the old run can write nothing more."""
    asked.ask()
    old, other = asked.claim()
    asked.end(old, None)
    asked.end(other, None)
    asked.ask()
    assert (asked.row().state, asked.row().attempts) == (JobState.QUEUED, 0)
    new = asked.claim()
    assert {job.attempt for job in new} == {1}
    with pytest.raises(Fenced):
        asked.end(old, None)


def test_a_running_job_is_left_alone_and_comes_again_by_itself(asked: Asked) -> None:
    """`Job.again` puts it back in the run's own transaction, not before the time given."""
    asked.ask()
    job, _ = asked.claim()
    asked.ask(5)
    assert asked.row().state is JobState.RUNNING
    asked.end(job, 30)
    assert (asked.row().state, asked.wait_s()) == (JobState.QUEUED, 30)
    assert asked.claim() == []
    with pytest.raises(Fenced):
        asked.end(job, None)
    asked.clock.advance(30)
    assert [one.attempt for one in asked.claim() if one.key == job.key] == [1]
