"""Workers die at any instant; no job is lost and no effect happens twice."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.jobs import enqueue
from etude.store import Database
from etude.testing.waiting import ended

Run = Callable[..., Any]
WORKER = Path(__file__).with_name("worker_process.py")
DEADLINE_S = 120
CREATE = "CREATE TABLE effect (job_key INTEGER, step VARCHAR(20), pid INTEGER)"


class Workers:
    """Worker processes of one test; none outlives it."""

    def __init__(self, url: str, signal_file: Path, lease_s: float) -> None:
        self._arguments = [sys.executable, str(WORKER), url, str(lease_s), str(signal_file)]
        self.alive: list[subprocess.Popen[bytes]] = []

    def start(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        environment = {**os.environ, "ETUDE_CRASH_AT": crash_at}
        process = subprocess.Popen(self._arguments, env=environment)  # noqa: S603 - our own script
        self.alive.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        ended(process)
        self.alive.remove(process)

    def close(self) -> None:
        for process in list(self.alive):
            self.kill(process)


@pytest.fixture
def workers(database_url: str, tmp_path: Path) -> Iterator[Workers]:
    started = Workers(database_url, tmp_path / "began", lease_s=1.0)
    yield started
    started.close()


async def ask(database: Database, count: int) -> None:
    async with database.transaction() as work:
        await work.connection.exec_driver_sql(CREATE)
        for number in range(count):
            await enqueue(work, ("at_once", "in_steps")[number % 2], f"job-{number}")


async def count_of(database: Database, what: str) -> int:
    async with database.read() as connection:
        found = await connection.exec_driver_sql(f"SELECT count(*) FROM {what}")  # noqa: S608 - literals
        return int(found.scalar_one())


async def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for something that must come; the deadline only ends a test that hangs."""
    deadline = time.monotonic() + DEADLINE_S
    while not await condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        await asyncio.sleep(0.05)


async def freeze(database: Database, process: subprocess.Popen[bytes]) -> None:
    """Stop a process at an instant when it does not write: nobody else could write then."""
    for _ in range(50):
        process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(5), database.transaction() as work:
                await work.connection.exec_driver_sql("UPDATE job SET kind = kind")
        except TimeoutError:
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.05)
        else:
            return
    raise AssertionError(process.pid)


async def check_effects(database: Database, count: int) -> None:
    async with database.read() as connection:
        rows = (
            await connection.exec_driver_sql(
                "SELECT job.kind, effect.job_key, effect.step"
                " FROM effect JOIN job ON job.job_key = effect.job_key"
            )
        ).all()
    seen = Counter((row.job_key, row.step) for row in rows)
    assert [effect for effect, times in seen.items() if times > 1] == []
    assert Counter(row.step for row in rows) == {
        "only": (count + 1) // 2,
        "first": count // 2,
        "second": count // 2,
    }


async def kill_workers(database: Database, workers: Workers, jobs: int, kills: int) -> None:
    """Run two workers; kill one of them `kills` times at a random instant, start another."""
    chance = random.Random(20261130)
    await ask(database, jobs)
    for _ in range(2):
        workers.start()
    for number in range(kills):
        enough = jobs * (number + 1) // (kills + 2)  # spread over the work, whatever the speed

        async def so_far(enough: int = enough) -> bool:
            return await count_of(database, "effect") >= enough

        await until(so_far, f"effect {enough}")
        await asyncio.sleep(chance.uniform(0, 0.05))
        workers.kill(chance.choice(workers.alive))
        workers.start()

    async def all_done() -> bool:
        return await count_of(database, "job WHERE state = 'done'") == jobs

    await until(all_done, "the end of all jobs")
    await check_effects(database, jobs)


def test_killed_workers_lose_nothing_and_repeat_nothing(
    run: Run, database: Database, workers: Workers
) -> None:
    """Workers killed at four random instants: every job is done, every effect is there once."""
    run(kill_workers(database, workers, jobs=60, kills=4))


@pytest.mark.soak
def test_two_hundred_killed_workers_lose_nothing(
    run: Run, database: Database, workers: Workers
) -> None:
    """The same holds for two hundred kills."""
    run(kill_workers(database, workers, jobs=2400, kills=200))


@pytest.mark.parametrize(
    "crash_at",
    [
        "jobs.run.claimed",
        "jobs.run.handled",
        "jobs.run.finished",
        "store.transaction.before_commit:2",
        "store.transaction.committed:2",
    ],
)
def test_kill_at_each_crash_point(
    run: Run, database: Database, workers: Workers, crash_at: str
) -> None:
    """A worker killed at a crash point leaves its jobs to a peer, which repeats nothing."""

    async def main() -> None:
        await ask(database, 10)
        doomed = workers.start(crash_at)
        assert await asyncio.to_thread(ended, doomed) == -signal.SIGKILL
        workers.start()

        async def all_done() -> bool:
            return await count_of(database, "job WHERE state = 'done'") == 10

        await until(all_done, "the end of all jobs")
        await check_effects(database, 10)

    run(main())


def test_live_peer_takes_over_and_the_sleeper_is_fenced(
    run: Run, database: Database, workers: Workers, tmp_path: Path
) -> None:
    """A frozen worker loses its job to a live peer; woken up, it cannot write any more."""

    async def main() -> None:
        began = tmp_path / "began"
        async with database.transaction() as work:
            await work.connection.exec_driver_sql(CREATE)
            await enqueue(work, "hang", "the one")
        sleeper = workers.start()
        await until(lambda: asyncio.to_thread(began.exists), "the first run")
        await freeze(database, sleeper)
        began.unlink()
        peer = workers.start()

        async def taken_over() -> bool:
            return began.exists() and began.read_text() == str(peer.pid)

        await until(taken_over, "the second run")
        os.kill(sleeper.pid, signal.SIGCONT)
        began.with_suffix(".go").touch()

        async def done() -> bool:
            return await count_of(database, "job WHERE state = 'done'") == 1

        await until(done, "the end of the job")
        sleeper.terminate()
        await asyncio.to_thread(ended, sleeper)
        async with database.read() as connection:
            pids = (await connection.exec_driver_sql("SELECT pid FROM effect")).scalars().all()
        assert pids == [peer.pid]

    run(main())
