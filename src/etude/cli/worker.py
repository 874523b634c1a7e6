"""The worker process: the jobs of every context, wired to what they need."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from etude.cli.stopping import stop_signal
from etude.clock import Clock, RandomIds, SystemClock
from etude.examiner.enqueue import EXAMINE, sessions_abandoned
from etude.examiner.examine_job import Examine
from etude.examiner.learner_data import all_learner_data
from etude.examiner.shelf import RubricShelf
from etude.jobs import Handler, Job, Periodic, Runner
from etude.people.erasure import SCRUB, scrub_handler
from etude.sessions.lifecycle import close_abandoned
from etude.settings import Settings
from etude.store import Blobs, Database, check

ABANDON: Final = "sessions.abandon"
ABANDON_EVERY_S: Final = 300
SWEEP: Final = "store.sweep"
SWEEP_EVERY_S: Final = 3600

log = structlog.get_logger("etude.worker")


async def run(settings: Settings) -> None:
    """Carry out jobs until SIGTERM or SIGINT; running ones then have 10 s to end.

    Raises:
        SchemaBehind, SchemaAhead, StoreUnavailable: nothing was begun; the message helps.
    """
    await check(settings.database_url)
    clock = SystemClock()
    async with await Database.open(settings.database_url) as database:
        blobs = Blobs(settings.blobs, clock)
        shelf = RubricShelf(settings.rubrics)
        runner = Runner(database, handlers(database, blobs, clock, shelf), periodic=PERIODIC)
        stopping = stop_signal()
        await runner.start()
        log.info("working", action="worker.started")
        try:
            await _until(stopping, runner)
        finally:
            await runner.stop()
    log.info("stopped", action="worker.stopped")


PERIODIC: Final = (
    Periodic(kind=ABANDON, every_s=ABANDON_EVERY_S),
    Periodic(kind=SWEEP, every_s=SWEEP_EVERY_S),
)


def handlers(
    database: Database, blobs: Blobs, clock: Clock, shelf: RubricShelf
) -> Mapping[str, Handler]:
    """Return what carries out each kind of job."""

    async def abandon(job: Job) -> None:
        closed = await close_abandoned(database, clock, sessions_abandoned)
        log.info("sessions abandoned", action=job.kind, sessions=closed)

    async def sweep(job: Job) -> None:
        removed = await blobs.sweep_orphans(database)
        log.info("blobs swept", action=job.kind, blobs=removed)

    registry = all_learner_data(clock, blobs)
    return {
        ABANDON: abandon,
        EXAMINE: Examine(database, shelf, clock, RandomIds()),
        SCRUB: scrub_handler(database, blobs, registry),
        SWEEP: sweep,
    }


async def _until(stopping: asyncio.Event, runner: Runner) -> None:
    """Return when asked to stop; raise what broke the runner, if that comes first."""
    asked = asyncio.create_task(stopping.wait())
    broken = asyncio.create_task(runner.wait())
    await asyncio.wait({asked, broken}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if broken.done():
        broken.result()
    broken.cancel()
