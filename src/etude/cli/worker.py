"""The worker process: the jobs of every context, wired to what they need."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from etude.assess import enqueue as assessment
from etude.authoring.authors import Voice
from etude.authoring.classrooms.composition import classroom_handlers, lesson_authors
from etude.authoring.classrooms.learner_data import classrooms_data
from etude.authoring.classrooms.making import TIDY, TIDY_EVERY_S
from etude.authoring.model.configured import model_author
from etude.cli.assessing import assessing_runners, pending_metrics, speech_pool
from etude.cli.course_making import course_handlers, voice_of
from etude.cli.model import chat_of, rewording
from etude.cli.stopping import aside, stop_signal
from etude.clock import Clock, RandomIds, SystemClock
from etude.examiner.enqueue import EXAMINE, REWORD, sessions_abandoned
from etude.examiner.examine_job import Examine
from etude.examiner.learner_data import all_learner_data
from etude.examiner.reword_job import Reword
from etude.examiner.shelf import RubricShelf
from etude.jobs import Handler, Job, Pace, Periodic, RetryPolicy, Runner
from etude.llm.chat import Chat
from etude.people.erasure import SCRUB, scrub_handler
from etude.people.spending.ledger import forget_old_calls
from etude.people.spending.paying import Payer
from etude.people.spending.terms import spending_terms
from etude.practice.assignments.learner_data import assignments_data
from etude.sessions.lifecycle import close_abandoned
from etude.settings import Settings
from etude.speech.pool import SpeechPool
from etude.store import Blobs, Database, check
from etude.store.work import UnitOfWork

ABANDON: Final = "sessions.abandon"
ABANDON_EVERY_S: Final = 300
SWEEP: Final = "store.sweep"
SWEEP_EVERY_S: Final = 3600

COURSE_PACE: Final = Pace(concurrency=2)
MODEL_PACE: Final = Pace(concurrency=2)
GRACE_S: Final = 10.0
"""What running jobs have to end in order."""
PUT_BACK_S: Final = 1.0
"""What those that can be stopped then have to be put back, before the engines are gone."""
MODEL_RETRY: Final = RetryPolicy(max_attempts=6, first_wait_s=10)

log = structlog.get_logger("etude.worker")


async def run(settings: Settings) -> None:
    """Carry out jobs until SIGTERM or SIGINT; running ones then have 10 s to end.

    Raises:
        SchemaBehind, SchemaAhead, StoreUnavailable, LlmAddressError, LlmNotInstalledError:
            nothing was begun; the message helps.
    """
    await check(settings.database_url)
    clock = SystemClock()
    async with await Database.open(settings.database_url) as database:
        blobs = Blobs(settings.blobs, clock)
        shelf = RubricShelf(settings.rubrics)
        chat = chat_of(settings)
        carried_out = handlers(
            database, blobs, clock, shelf, settings.classrooms, with_model=chat is not None
        )
        pool = speech_pool(settings)
        runners = [
            Runner(database, carried_out, periodic=PERIODIC),
            *assessing_runners(database, blobs, clock, pool, settings.speech_processes),
        ]
        if chat is not None:
            payer = Payer(database, clock, spending_terms(settings))
            runners.append(asking_runner(database, chat, payer, clock))
        voice = voice_of(settings, pool)
        runners.append(course_runner(settings, database, clock, voice))
        runners.append(classroom_runner(settings, database, blobs, clock, voice))
        stopping = stop_signal()
        try:
            for runner in runners:
                await runner.start()
            log.info("working", action="worker.started")
            await _until(stopping, runners)
        finally:
            await stop_all(runners, pool)
            if chat is not None:
                await chat.close()
    log.info("stopped", action="worker.stopped")


PERIODIC: Final = (
    Periodic(kind=ABANDON, every_s=ABANDON_EVERY_S),
    Periodic(kind=SWEEP, every_s=SWEEP_EVERY_S),
)


def handlers(
    database: Database,
    blobs: Blobs,
    clock: Clock,
    shelf: RubricShelf,
    classrooms: Path,
    *,
    with_model: bool = False,
) -> Mapping[str, Handler]:
    """Return what carries out each kind of job that asks no model."""

    async def abandon(job: Job) -> None:
        closed = await close_abandoned(database, clock, _given_up)
        log.info("sessions abandoned", action=job.kind, sessions=closed)

    async def sweep(job: Job) -> None:
        removed = await blobs.sweep_orphans(database)
        log.info("blobs swept", action=job.kind, blobs=removed)
        async with database.transaction() as work:
            await forget_old_calls(work, clock.now())

    registry = all_learner_data(
        clock, blobs, assignments_data(clock), classrooms_data(clock, blobs, classrooms)
    )
    return {
        ABANDON: abandon,
        EXAMINE: Examine(
            database, shelf, clock, RandomIds(), pending_metrics(), with_model=with_model
        ),
        SCRUB: scrub_handler(database, blobs, registry),
        SWEEP: sweep,
    }


async def _given_up(work: UnitOfWork, session_keys: Sequence[int], now_us: int) -> None:
    """Ask for what sessions that were given up call for."""
    await assessment.sessions_abandoned(work, session_keys, now_us)
    await sessions_abandoned(work, session_keys, now_us)


def course_runner(
    settings: Settings, database: Database, clock: Clock, voice: Voice | None
) -> Runner:
    """Return a runner of its own for courses: one that is long takes no other's place."""
    handlers = course_handlers(settings, database, clock, voice)
    return Runner(database, handlers, pace=COURSE_PACE)


def classroom_runner(
    settings: Settings, database: Database, blobs: Blobs, clock: Clock, voice: Voice | None
) -> Runner:
    """Return a runner of its own for single classrooms: no course takes their place."""
    model = model_author(settings, database, blobs, clock, voice)
    authors = lesson_authors(blobs, voice, model)
    carried_out = classroom_handlers(database, blobs, clock, RandomIds(), settings, authors)
    tidy = Periodic(kind=TIDY, every_s=TIDY_EVERY_S)
    return Runner(database, carried_out, periodic=[tidy], pace=COURSE_PACE)


def asking_runner(database: Database, chat: Chat, payer: Payer, clock: Clock) -> Runner:
    """Return a runner of its own for what asks a model: one that hangs takes no other's place."""
    reword = Reword(database, rewording(chat, payer), chat.endpoint.model, clock, RandomIds())
    return Runner(database, {REWORD: reword}, retries={REWORD: MODEL_RETRY}, pace=MODEL_PACE)


async def stop_all(
    runners: Sequence[Runner], pool: SpeechPool | None, grace_s: float = GRACE_S
) -> None:
    """Stop the runners, and the engines that their jobs ask.

    A job in a thread cannot be ended from outside. After the grace the engines are closed under it:
    it learns that at its next question, where it would else wait for its turn among many.
    """
    stops = [asyncio.create_task(runner.stop(grace_s)) for runner in runners]
    if stops:
        await asyncio.wait(stops, timeout=grace_s + PUT_BACK_S)
    if pool is not None:
        await aside(pool.close)
    await asyncio.gather(*stops)


async def _until(stopping: asyncio.Event, runners: Sequence[Runner]) -> None:
    """Return when asked to stop; raise what broke a runner, if that comes first."""
    asked = asyncio.create_task(stopping.wait())
    broken = asyncio.create_task(_waited_for(runners))
    await asyncio.wait({asked, broken}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if broken.done():
        broken.result()
    broken.cancel()


async def _waited_for(runners: Sequence[Runner]) -> None:
    """Return when all have stopped; raise what broke one of them, at once."""
    await asyncio.gather(*(runner.wait() for runner in runners))
