"""Stored sessions assessed once more, with the engines and methods that are there now.

For sessions that were recorded before `etude[speech]` was installed, and after engines, models or
methods have changed. What was said before stays; what is found now is a new event beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.assessing import (
    LAST_HEARING,
    StoredTurn,
    TurnAssessor,
    session_of,
    versions_of,
)
from etude.assess.metrics import Method
from etude.assess.model_file import shipped_model
from etude.assess.spoken_methods import PRONUNCIATION
from etude.assess.turns import EVENT_TYPE, is_no_engine, lacking
from etude.clock import Clock
from etude.errors import EtudeError
from etude.events.ndjson import decode_line
from etude.files import crash_point
from etude.jobs import Job, ask_again
from etude.people.errors import LearnerErasedError
from etude.sessions import media, reading
from etude.sessions.errors import SessionErasedError
from etude.sessions.records import SessionRow
from etude.sessions.turns import Metric
from etude.store import Database

ASSESS_AGAIN: Final = "assess.again"
ASSESSOR: Final = "assessor"
_FIRST: Final = timedelta(days=1)  # as if they had been asked for so much earlier
_PAGE: Final = 200
_log = structlog.get_logger(__name__)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: sessions, and how many of them come first, having had no engine."""

    sessions: int = 0
    without_engine: int = 0


class AssessAgain:
    """The handler of `assess.again` jobs: leaves alone what today's engines have said."""

    def __init__(self, assessor: TurnAssessor) -> None:
        """Assess with `assessor`."""
        self._assessor = assessor
        # What the engines call themselves is known from what they have heard.
        self._now = {ASSESSOR: f"{PRONUNCIATION}/{shipped_model().card.version}"}

    async def __call__(self, job: Job) -> None:
        """Assess the session that the job names."""
        async with self._assessor.database.read() as connection:
            session = await session_of(connection, job.args["session_key"])
            turns = () if session is None else await self._recorded(connection, session)
        if session is not None and turns:
            try:
                await self._assess(session, turns, last=job.attempt >= LAST_HEARING)
            except (SessionErasedError, LearnerErasedError):
                return
        async with self._assessor.database.transaction() as work:
            await job.finish(work)
            crash_point("assess.again.before_commit")

    async def _recorded(
        self, connection: AsyncConnection, session: SessionRow
    ) -> tuple[StoredTurn, ...]:
        turns = await self._assessor.turns(connection, session)
        return tuple(one for one in turns if one.recording is not None)

    async def _assess(
        self, session: SessionRow, turns: Sequence[StoredTurn], *, last: bool
    ) -> None:
        failed: EtudeError | None = None
        times = await self._assessor.times(session)
        for one in turns:
            methods = one.assessment.among(self._assessor.methods)
            if not is_stale(one, methods, self._now):
                continue
            ts_s = times.get(one.turn.step_index, 0.0)
            try:
                found = await self._assessor.assess(session, one, ts_s, last=last, anew=True)
            except (SessionErasedError, LearnerErasedError):
                raise
            except EtudeError as error:
                _log.warning("a turn waits", action="assess.failed", code=error.code)
                failed = error
                continue
            self._now |= found
        if failed is not None:
            raise failed


def is_stale(stored: StoredTurn, methods: Mapping[str, Method], now: Mapping[str, str]) -> bool:
    """Say whether a turn is to be heard again. Pure.

    Args:
        stored: the turn, with what was said of it.
        methods: those that are installed and asked for.
        now: what engines and assessor call themselves, as far as that is known by now.
    """
    said_here = stored.said_by.keys() & methods.keys()
    own = [one for one in stored.turn.metrics if one.method in said_here]
    said = list(_versions(own))
    if stored.heard is not None:
        said.append(stored.heard.engines)
    if not said or any(now.get(key) != name for one in said for key, name in one.items()):
        return True
    unsaid = set(lacking(stored.turn, methods)) - {one.method for one in own}
    return bool(unsaid) and bool(stored.turn.expected_text)


def _versions(metrics: Sequence[Metric]) -> Iterator[Mapping[str, str]]:
    for metric in metrics:
        if found := versions_of([metric]):
            yield found
        elif is_no_engine(metric.detail):
            yield {"model": ""}  # nobody's


async def ask_for(
    database: Database,
    clock: Clock,
    wanted: reading.Filter,
    told: Callable[[Asked], None] = lambda _: None,
) -> Asked:
    """Ask for all sessions of a filter; `told` hears after each page what was asked for so far."""
    asked, after_key = Asked(), 0
    while True:
        async with database.read() as connection:
            page = await reading.listed(connection, wanted, after_key=after_key, limit=_PAGE)
        more = await ask_of(database, clock, page)
        asked = Asked(
            sessions=asked.sessions + more.sessions,
            without_engine=asked.without_engine + more.without_engine,
        )
        told(asked)
        if len(page) < _PAGE:
            return asked
        after_key = page[-1].session_key


async def ask_of(database: Database, clock: Clock, sessions: Sequence[SessionRow]) -> Asked:
    """Ask for the re-assessment of those sessions that are over and have recordings.

    Those in which something had no engine are carried out first. Asking twice asks once; what an
    earlier run has done, and fits the engines of today, is left alone.
    """
    over = [one.session_key for one in sessions if one.status != "open"]
    async with database.read() as connection:
        recorded = await media.recorded_among(connection, over)
        first = await _without_engine(connection, recorded)
    await _ask(database, clock, recorded, first)
    return Asked(sessions=len(recorded), without_engine=len(first))


async def _ask(
    database: Database, clock: Clock, session_keys: frozenset[int], first: frozenset[int]
) -> None:
    if not session_keys:
        return
    now = clock.now()
    async with database.transaction() as work:
        for keys, due in ((first, now - _FIRST), (session_keys - first, now)):
            args = {str(key): {"session_key": key} for key in keys}
            await ask_again(work, ASSESS_AGAIN, args, run_after=due, now=now)
        crash_point("assess.again.asked")


async def _without_engine(
    connection: AsyncConnection, session_keys: frozenset[int]
) -> frozenset[int]:
    """Return the sessions in which the last that some method has said is that it had no engine."""
    lines: dict[int, list[bytes]] = {}
    async for session_key, line in reading.lines_of_type(connection, session_keys, EVENT_TYPE):
        lines.setdefault(session_key, []).append(line)
    return frozenset(key for key, said in lines.items() if _lacks_engine(said))


def _lacks_engine(lines: Sequence[bytes]) -> bool:
    if not any(b"no_engine" in line for line in lines):
        return False
    last: dict[tuple[str | None, str], bool] = {}
    for event in map(decode_line, lines):
        value = event.value if isinstance(event.value, Mapping) else {}
        last[event.correlation_id, event.signal] = is_no_engine(value.get("detail"))
    return any(last.values())
