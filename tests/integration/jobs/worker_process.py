"""A worker process for tests: carries out jobs of two kinds until it is killed or told to stop.

Usage: worker_process.py <database url> <lease seconds>

`at_once` writes its effect and finishes in one transaction. `in_steps` writes two keyed effects in
two transactions and leaves the finish to the runner. `hang` says that it began and never ends.
Effects go into the table `effect`, which has no unique key: an effect that happens twice shows.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select

from etude.files import arm_from_environment
from etude.jobs import Job, Pace, RetryPolicy, Runner
from etude.store import Database, UnitOfWork

effect = Table(
    "effect",
    MetaData(),
    Column("job_key", Integer),
    Column("step", String(20)),
    Column("pid", Integer),
)
KINDS = ("at_once", "in_steps")
PACE_S = 0.05


async def write(work: UnitOfWork, job: Job, step: str) -> None:
    row = {"job_key": job.job_key, "step": step, "pid": os.getpid()}
    await work.connection.execute(insert(effect), [row])


def handlers(database: Database, signal_file: Path | None = None):  # noqa: ANN201 - a test's own mapping
    async def at_once(job: Job) -> None:
        await asyncio.sleep(0.01)
        async with database.transaction() as work:
            await job.fence(work)
            await write(work, job, "only")
            await job.finish(work)

    async def in_steps(job: Job) -> None:
        for step in ("first", "second"):
            async with database.transaction() as work:
                await job.fence(work)
                done = select(effect.c.step).where(
                    effect.c.job_key == job.job_key, effect.c.step == step
                )
                if (await work.connection.execute(done)).first() is None:
                    await write(work, job, step)
            await asyncio.sleep(0.01)

    async def hang(job: Job) -> None:
        assert signal_file is not None
        await asyncio.to_thread(signal_file.write_text, str(os.getpid()))
        go = signal_file.with_suffix(".go")
        while not await asyncio.to_thread(go.exists):  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(PACE_S)
        async with database.transaction() as work:
            await job.fence(work)
            await write(work, job, "only")
            await job.finish(work)

    return {"at_once": at_once, "in_steps": in_steps, "hang": hang}


async def main(url: str, lease_s: float, signal_file: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    retry = RetryPolicy(max_attempts=1000, first_wait_s=0.05, max_wait_s=0.2)
    async with await Database.open(url, connections=2) as database:
        runner = Runner(
            database,
            handlers(database, signal_file),
            retries=dict.fromkeys(("at_once", "in_steps", "hang"), retry),
            pace=Pace(concurrency=3, lease_s=lease_s, poll_s=PACE_S),
        )
        await runner.start()
        await stop.wait()
        await runner.stop(grace_s=2)


if __name__ == "__main__":
    arm_from_environment()
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])))
