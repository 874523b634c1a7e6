"""The worker's part that assesses turns: its engines, its ingest and its runner."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.enqueue import ASSESS, AssessProjector
from etude.assess.metrics import Method, load_methods
from etude.assess.pooled import PooledEngines
from etude.assess.sweep import AssessTurns, is_pending
from etude.cli.speech_options import speech_options
from etude.clock import Clock
from etude.examiner.enqueue import projectors
from etude.jobs import Pace, RetryPolicy, Runner
from etude.sessions.ingest import Ingest
from etude.settings import Settings
from etude.speech.libraries import engines_installed
from etude.speech.pool import SpeechPool
from etude.store import Blobs, Database

RETRY: Final = RetryPolicy(max_attempts=20, first_wait_s=5)


def speech_pool(settings: Settings) -> SpeechPool | None:
    """Return the engines' pool, not started; None where there are none to be had."""
    if not settings.speech_processes or not engines_installed():
        return None
    return SpeechPool(speech_options(settings), processes=settings.speech_processes)


def assessing_runner(
    database: Database, blobs: Blobs, clock: Clock, pool: SpeechPool | None, processes: int
) -> Runner:
    """Return a runner of its own: recordings that take long take no other job's place."""
    ingest = Ingest(database, clock, projectors=(*projectors(clock), AssessProjector(clock)))
    engines = None if pool is None else PooledEngines(pool)
    handler = AssessTurns(database, blobs, ingest, clock, methods(), engines)
    pace = Pace(concurrency=max(1, processes))
    return Runner(database, {ASSESS: handler}, retries={ASSESS: RETRY}, pace=pace)


@cache
def methods() -> dict[str, Method]:
    """Return the methods that are installed; found once a process."""
    return load_methods()


def pending_metrics() -> Callable[[AsyncConnection, int], Awaitable[bool]]:
    """Return what says whether metrics of a session are still being made."""

    async def pending(connection: AsyncConnection, session_key: int) -> bool:
        return await is_pending(connection, session_key, methods())

    return pending
