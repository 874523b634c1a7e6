"""A command that waits for a job of its own ends, also where nobody will ever do it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from etude.authoring.records import RUN, Run, RunState
from etude.cli import courses
from etude.cli.carrying_out import carrying_out, lost_job
from etude.clock import SystemClock
from etude.jobs import GiveUp, Job, enqueue
from etude.jobs.claims import Claims
from etude.store import Database

Runs = Callable[..., Any]
END_S = 60


async def nothing(_: Job) -> None:
    pass


async def gives_up(_: Job) -> None:
    raise GiveUp(reason="NO_USE")


async def wait_on(database: Database) -> None:
    async with carrying_out(database, {"a": nothing}) as moment:
        while True:
            await moment()


async def ask(database: Database, kind: str, key: str) -> None:
    async with database.transaction() as work:
        await enqueue(work, kind, key)


def test_what_breaks_the_runner_is_raised(
    run: Runs, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would do anything any more: who waits is told, and does not wait on."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Claims, "claim", broken)

    async def story() -> None:
        async with asyncio.timeout(END_S), await Database.open(sqlite_url) as database:
            with pytest.raises(ZeroDivisionError):
                await wait_on(database)

    run(story())


def test_a_job_is_lost_once_nobody_will_do_it(run: Runs, sqlite_url: str) -> None:
    """Waiting: no. Given up, or not there: yes, with the reason."""

    async def story() -> None:
        async with asyncio.timeout(END_S), await Database.open(sqlite_url) as database:
            await ask(database, "a", "one")
            assert await lost_job(database, "a", "one") is None
            missing = await lost_job(database, "a", "two")
            assert missing is not None
            assert missing.params == {"reason": "JOB_MISSING"}
            async with carrying_out(database, {"a": gives_up}) as moment:
                while (lost := await lost_job(database, "a", "one")) is None:
                    await moment()
            assert lost.params == {"reason": "JOB_GIVEN_UP"}

    run(story())


def test_a_course_whose_run_was_given_up_is_not_waited_for(
    run: Runs, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is dead and the run never ended: the command says so."""
    active = Run(
        run_key=1,
        run_id="r",
        course_key=1,
        kind="modules",
        state=RunState.ACTIVE,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    course: Any = SimpleNamespace(course_id="c", active=active)
    monkeypatch.setattr(courses, "course_handlers", lambda *_: {RUN: gives_up})

    class Shelf:
        async def get(self, _: str) -> Any:
            return course

    async def story() -> None:
        async with asyncio.timeout(END_S), await Database.open(sqlite_url) as database:
            await ask(database, RUN, "r")
            here: Any = SimpleNamespace(database=database, clock=SystemClock())
            settings: Any = None
            shelf: Any = Shelf()
            with pytest.raises(GiveUp) as caught:
                await courses._finished(shelf, course, here, settings, None)
        assert caught.value.params == {"reason": "JOB_GIVEN_UP"}

    run(story())
