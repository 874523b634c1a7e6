"""A command that carries out jobs itself and waits for the end of one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from etude.jobs import GiveUp, Handler, JobState, Pace, Runner, find
from etude.store import Database

LOOK_EVERY_S: Final = 0.1
_LIVE: Final = (JobState.QUEUED, JobState.RUNNING)


@contextlib.asynccontextmanager
async def carrying_out(
    database: Database, handlers: Mapping[str, Handler]
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Carry out jobs, one at a time, while the block lasts.

    Gives what waits for `LOOK_EVERY_S`; it raises what broke the runner, if something did: nobody
    would do anything any more, and whoever waits for a job would wait for ever.
    """
    runner = Runner(database, handlers, pace=Pace(concurrency=1, poll_s=LOOK_EVERY_S))
    await runner.start()
    broken = asyncio.create_task(runner.wait())

    async def moment() -> None:
        await asyncio.wait({broken}, timeout=LOOK_EVERY_S)
        if broken.done():
            broken.result()

    try:
        yield moment
    finally:
        await runner.stop()
        broken.cancel()
        await asyncio.gather(broken, return_exceptions=True)


async def lost_job(database: Database, kind: str, key: str) -> GiveUp | None:
    """Return why nobody will ever do a job that is not done, or done with; None = it is alive."""
    async with database.read() as connection:
        row = await find(connection, kind, key)
    if row is not None and row.state in _LIVE:
        return None
    return GiveUp(reason=(row.error_code if row is not None else None) or "JOB_MISSING")
