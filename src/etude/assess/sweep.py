"""The job that assesses a session's turns: every one that lacks metrics, until none does.

Metrics are written through ingest, one event each with an id of its content, so a second run finds
them. An engine that fails costs its turn this run only: the others are written, the job fails and
comes back. Its last transaction looks once more at what the session holds by then.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.assess.assessing import LAST_HEARING, StoredTurn, TurnAssessor, session_of
from etude.assess.enqueue import ASSESS
from etude.assess.metrics import Method
from etude.assess.turns import lacking
from etude.clock import Clock
from etude.errors import EtudeError
from etude.files import crash_point
from etude.jobs import Job, JobState, find
from etude.people.errors import LearnerErasedError
from etude.sessions import instances, media
from etude.sessions import repository as sessions
from etude.sessions.errors import SessionErasedError
from etude.sessions.records import SessionRow

_TO_COME: Final = frozenset({JobState.QUEUED, JobState.RUNNING})
_log = structlog.get_logger(__name__)


class AssessTurns:
    """The handler of `assess.turns` jobs."""

    def __init__(self, assessor: TurnAssessor, clock: Clock) -> None:
        """Assess with `assessor`."""
        self._assessor = assessor
        self._clock = clock

    async def __call__(self, job: Job) -> None:
        """Assess the session that the job names."""
        session_key = job.args["session_key"]
        async with self._assessor.database.read() as connection:
            session = await session_of(connection, session_key)
            waiting = () if session is None else await self._waiting(connection, session)
        failed: EtudeError | None = None
        if session is not None and waiting:
            times = await self._assessor.times(session)
            for one in waiting:
                ts_s = times.get(one.turn.step_index, 0.0)
                try:
                    await self._assessor.assess(
                        session, one, ts_s, last=job.attempt >= LAST_HEARING
                    )
                except (SessionErasedError, LearnerErasedError):
                    return
                except EtudeError as error:
                    _log.warning(
                        "a turn waits", action="assess.failed", code=error.code, key=session_key
                    )
                    failed = error
        if failed is not None:
            raise failed
        await self._finish(job, waiting)

    async def _waiting(
        self, connection: AsyncConnection, session: SessionRow
    ) -> tuple[StoredTurn, ...]:
        """Return the turns that some method, asked for, has said nothing of."""
        methods = self._assessor.methods
        turns = await self._assessor.turns(connection, session)
        return tuple(one for one in turns if lacking(one.turn, one.assessment.among(methods)))

    async def _finish(self, job: Job, done: Sequence[StoredTurn]) -> None:
        """End the job, or put it back if the session holds by now what this run did not see."""
        async with self._assessor.database.transaction() as work:
            session = await session_of(work.connection, job.args["session_key"])
            if session is not None:
                await sessions.lock(work, [session.session_id])
                seen = {self._name(one) for one in done}
                now = await self._waiting(work.connection, session)
                if any(self._name(one) not in seen for one in now):
                    await job.again(work, self._clock.now())
                    return
            await job.finish(work)
            crash_point("assess.turns.before_commit")

    def _name(self, stored: StoredTurn) -> tuple[int, str | None, str | None, str | None]:
        """Return what a run has seen of a turn: a change of it is to be assessed again.

        Of a recording that was heard, the turn's own text changes nothing.
        """
        turn, recording = stored.turn, stored.recording
        if recording is None:
            return turn.step_index, turn.expected_text, turn.asr_text, None
        text = None if self._assessor.hears else turn.asr_text
        return turn.step_index, turn.expected_text, text, recording.sha256


async def is_pending(
    connection: AsyncConnection, session_key: int, methods: Mapping[str, Method]
) -> bool:
    """Say whether turns of a session have recordings that no method has spoken about yet.

    Never of what no method is asked about, and only while somebody is still to ask.
    """
    session = await session_of(connection, session_key)
    job = await find(connection, ASSESS, str(session_key))
    if session is None or job is None or job.state not in _TO_COME:
        return False
    folded = await instances.load(connection, session)
    if folded is None:
        return False
    asked = folded.assessment.among(methods)
    if not asked:
        return False
    have = {one.sha256 for one in await media.listed(connection, session_key)}
    return any(
        turn.audio_id in have and not any(one.method in asked for one in turn.metrics)
        for turn in folded.instance.turns
    )
