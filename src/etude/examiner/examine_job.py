"""The job that examines a session: read everything, make the report, store it as a revision.

One job a session, asked for again whenever there is something new (`etude.examiner.enqueue`). What
it writes, it writes in one transaction: the session locked, the run fenced, the revision added
unless the latest says the same, the job done. So a kill anywhere leaves either nothing or all of
it, and the same inputs never make two revisions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Literal

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, Ids, from_us, to_us
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner import repository
from etude.examiner.enqueue import GATHER, ask_to_reword
from etude.examiner.examining import make_report
from etude.examiner.journey import EarlierSession
from etude.examiner.report import Locale, Report, as_earlier, report_bytes
from etude.examiner.repository import Head, RevisionRow
from etude.examiner.revisions import pinned_rubric
from etude.examiner.shelf import RubricShelf
from etude.files import crash_point
from etude.jobs import Job
from etude.people.learners import get_learner_by_key
from etude.rubric.errors import RubricUnknownError
from etude.rubric.library import rubric_digest, rubric_json
from etude.rubric.model import Rubric
from etude.sessions import media
from etude.sessions import repository as sessions
from etude.sessions.errors import SessionTooLongError
from etude.sessions.export import lines_within
from etude.sessions.records import SessionRow
from etude.store.engine import Database
from etude.store.work import UnitOfWork

HISTORY: Final = 50
"""How many sessions of a journey a report looks back at."""
METRICS_WAIT: Final = timedelta(seconds=15)
_LOOK_AGAIN: Final = timedelta(seconds=1)

Pending = Callable[[AsyncConnection, int], Awaitable[bool]]
"""Says whether metrics of a session's turns (by its key) are still being made."""

_log: Final = structlog.get_logger(__name__)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was read: the inputs of its report."""

    session: SessionRow
    head: Head
    lines: Sequence[bytes]
    recordings: frozenset[str]
    locale: Locale


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A report, its bytes, and the rubric that it was made by."""

    report: Report
    body: bytes
    rubric: Rubric


class Examine:
    """The handler of `examiner.examine` jobs."""

    def __init__(
        self,
        database: Database,
        shelf: RubricShelf,
        clock: Clock,
        ids: Ids,
        pending: Pending | None = None,
        *,
        with_model: bool = False,
    ) -> None:
        """Examine with the rubrics of `shelf`; `pending` None: nobody makes metrics.

        `with_model`: a model is configured, so each revision is given to it for rewording.
        """
        self._database = database
        self._shelf = shelf
        self._clock = clock
        self._ids = ids
        self._pending = pending
        self._with_model = with_model

    async def __call__(self, job: Job) -> None:
        """Examine the session that the job names."""
        try:
            loaded = await self._load(job.args["session_key"])
            if loaded is None:
                return  # erased
            if await self._must_wait(loaded):
                await self._look_again(job)
                return
            made = await self._make(loaded)
        except (RubricUnknownError, SessionTooLongError) as error:
            await self._refuse(job, error.code)
            return
        crash_point("examiner.examine.made")
        await self._store(job, loaded, made)

    async def _load(self, session_key: int) -> Loaded | None:
        async with self._database.read() as connection:
            found = await sessions.by_keys(connection, [session_key])
            session = found.get(session_key)
            if session is None:
                return None
            head = await repository.head(connection, session_key)
            recordings = await media.listed(connection, session_key)
            locale = await _locale(connection, session)
        return Loaded(
            session=session,
            head=head,
            lines=await lines_within(self._database, session),
            recordings=frozenset(one.sha256 for one in recordings),
            locale=locale,
        )

    async def _must_wait(self, loaded: Loaded) -> bool:
        """Metrics of the turns may be on their way: the first report waits for them, not long."""
        asked_us = loaded.head.asked_us
        if self._pending is None or loaded.head.revision or asked_us is None:
            return False
        if self._clock.now() >= from_us(asked_us) + METRICS_WAIT:
            return False
        async with self._database.read() as connection:
            return await self._pending(connection, loaded.session.session_key)

    async def _look_again(self, job: Job) -> None:
        async with self._database.transaction() as work:
            await job.again(work, self._clock.now() + _LOOK_AGAIN)

    async def _make(self, loaded: Loaded) -> Made:
        """Read, score and write off the event loop, so that other jobs go on meanwhile."""
        events = await asyncio.to_thread(_decoded, loaded.lines)
        library = await asyncio.to_thread(self._shelf.library)
        assigned = loaded.head.assigned_rubric
        start = next((one for one in events if one.event_type == "session_start"), None)
        kept = await self._pinned(events) if assigned is None else None
        rubric = kept or (library.of_session(start) if assigned is None else library.get(assigned))
        journey_id = next((one.journey_id for one in events if one.journey_id), None)
        history = await self._history(loaded.session, journey_id)

        def make() -> Made:
            report = make_report(
                events,
                rubric,
                history,
                locale=loaded.locale,
                clock=self._clock,
                ids=self._ids,
                revision=loaded.head.revision + 1,
                started_at=from_us(loaded.session.started_us),
                media=loaded.recordings,
            )
            return Made(report=report, body=report_bytes(report), rubric=rubric)

        return await asyncio.to_thread(make)

    async def _pinned(self, events: Sequence[Event]) -> Rubric | None:
        async with self._database.read() as connection:
            return await pinned_rubric(connection, events)

    async def _history(
        self, session: SessionRow, journey_id: str | None
    ) -> Sequence[EarlierSession]:
        """Return what is known of the journey's earlier sessions of the same learner."""
        if journey_id is None:
            return ()
        async with self._database.read() as connection:
            found = await repository.earlier_of_journey(
                connection, journey_id, session.started_us, session.session_key
            )
            rows = await sessions.by_keys(connection, [key for key, _ in found])
        own = [body for key, body in found if key in rows and _same_learner(rows[key], session)]
        return [msgspec.json.decode(body, type=EarlierSession) for body in own[:HISTORY]]

    async def _refuse(self, job: Job, code: str) -> None:
        async with self._database.transaction() as work:
            session = await locked(work, job.args["session_key"])
            if session is not None:
                head = await repository.head(work.connection, session.session_key)
                changed = msgspec.structs.replace(head, refused=code, asked_us=None)
                await repository.save_head(work, changed)
            crash_point("examiner.examine.refused")
            await job.finish(work)
        _log.info("no report", action="examiner.refused", job_key=job.job_key, code=code)

    async def _store(self, job: Job, loaded: Loaded, made: Made) -> None:
        async with self._database.transaction() as work:
            session = await locked(work, loaded.session.session_key)
            if session is None:
                await job.finish(work)
                return
            outcome = await self._revise(work, session, loaded, made)
            crash_point("examiner.examine.revised")
            if outcome == "whole":
                await job.finish(work)
            else:
                wait = GATHER if outcome == "gather" else timedelta(0)
                await job.again(work, self._clock.now() + wait)

    async def _revise(
        self, work: UnitOfWork, session: SessionRow, loaded: Loaded, made: Made
    ) -> Literal["whole", "gather", "redo"]:
        """Add the revision unless it says nothing new; return what is to be done next."""
        head = await repository.head(work.connection, session.session_key)
        same_owner = session.learner_key == loaded.session.learner_key
        if head.revision != loaded.head.revision or not same_owner:
            return "redo"  # another run was quicker, or the history is somebody else's
        if head.assigned_rubric != loaded.head.assigned_rubric:
            return "redo"
        recordings = await media.listed(work.connection, session.session_key)
        grown = session.event_count != loaded.session.event_count or (
            {one.sha256 for one in recordings} != loaded.recordings
        )
        latest = await repository.revision(work.connection, session.session_key, head.revision)
        if latest is None or latest.digest != made.report.digest:
            row = _row(session.session_key, made)
            await repository.add_revision(work, row, rubric_json(made.rubric))
            head = msgspec.structs.replace(
                head, revision=row.revision, not_reworded=None, **_journey(session, made)
            )
            if self._with_model:
                await ask_to_reword(work, session.session_key, self._clock.now())
        asked_us = to_us(self._clock.now()) if grown else None
        changed = msgspec.structs.replace(head, refused=None, asked_us=asked_us)
        await repository.save_head(work, changed)
        return "gather" if grown else "whole"


async def locked(work: UnitOfWork, session_key: int) -> SessionRow | None:
    """Return the session, held against uploads and erasure until the transaction ends."""
    found = (await sessions.by_keys(work.connection, [session_key])).get(session_key)
    if found is None:
        return None
    return (await sessions.lock(work, [found.session_id])).get(found.session_id)


async def _locale(connection: AsyncConnection, session: SessionRow) -> Locale:
    if session.learner_key is None:
        return "en"
    learner = await get_learner_by_key(connection, session.learner_key)
    return "zh-CN" if learner.locale == "zh-CN" else "en"


def _same_learner(one: SessionRow, other: SessionRow) -> bool:
    """Anybody may write any journey id; only one's own sessions are a journey."""
    if one.learner_key is not None or other.learner_key is not None:
        return one.learner_key == other.learner_key
    return (one.principal_kind, one.principal_key) == (other.principal_kind, other.principal_key)


def _decoded(lines: Sequence[bytes]) -> list[Event]:
    return [decode_line(line, number) for number, line in enumerate(lines, 1)]


def _row(session_key: int, made: Made) -> RevisionRow:
    report = made.report
    return RevisionRow(
        session_key=session_key,
        revision=report.revision,
        report_id=report.report_id,
        digest=report.digest,
        events_digest=report.inputs.events_digest,
        rubric_digest=rubric_digest(made.rubric),
        overall_score=report.examiner_assessment.overall_score,
        body=made.body,
        made_us=to_us(report.generated_at),
    )


def _journey(session: SessionRow, made: Made) -> dict[str, object]:
    earlier = as_earlier(made.report)
    return {
        "journey_id": made.report.journey_context.journey_id,
        "started_us": session.started_us,
        "earlier": None if earlier is None else msgspec.json.encode(earlier),
    }
