"""The worker's part that assesses turns: its engines, its ingest and its runners."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.again import ASSESS_AGAIN, AssessAgain
from etude.assess.assessing import TurnAssessor
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
from etude.speech.pool import Lane, SpeechPool
from etude.store import Blobs, Database

RETRY: Final = RetryPolicy(max_attempts=20, first_wait_s=5)


def speech_pool(settings: Settings) -> SpeechPool | None:
    """Return the engines' pool, not started; None where there are none to be had."""
    if not settings.speech_processes or not engines_installed():
        return None
    return SpeechPool(speech_options(settings), processes=settings.speech_processes)


def assessing_runners(
    database: Database, blobs: Blobs, clock: Clock, pool: SpeechPool | None, processes: int
) -> tuple[Runner, Runner]:
    """Return runners of their own: recordings that take long take no other job's place.

    Those of today have one, and go first in the pool; those that are assessed again have another.
    """
    ingest = Ingest(database, clock, projectors=(*projectors(clock), AssessProjector(clock)))
    pace = Pace(concurrency=max(1, processes))

    def assessor(lane: Lane) -> TurnAssessor:
        engines = None if pool is None else PooledEngines(pool, lane)
        return TurnAssessor(database, blobs, ingest, methods(), engines)

    turns = {ASSESS: AssessTurns(assessor(Lane.SWEEP), clock)}
    again = {ASSESS_AGAIN: AssessAgain(assessor(Lane.AGAIN))}
    return (
        Runner(database, turns, retries={ASSESS: RETRY}, pace=pace),
        Runner(database, again, retries={ASSESS_AGAIN: RETRY}, pace=pace),
    )


@cache
def methods() -> dict[str, Method]:
    """Return the methods that are installed; found once a process."""
    return load_methods()


def pending_metrics() -> Callable[[AsyncConnection, int], Awaitable[bool]]:
    """Return what says whether metrics of a session are still being made."""

    async def pending(connection: AsyncConnection, session_key: int) -> bool:
        return await is_pending(connection, session_key, methods())

    return pending
