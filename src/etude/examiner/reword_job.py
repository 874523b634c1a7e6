"""The job that lets a model reword a report: after the report is stored, and never instead of it.

The report by templates is a revision already and can be read. What a model makes of it becomes the
next revision, if the check lets anything through; else nothing changes. Each answer is kept before
the next question is asked, so a kill repeats at most the one question in flight. Where no model may
be asked any more, the templates stay for good, and why is noted with the report.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
import structlog

from etude.clock import Clock, Ids, to_us
from etude.examiner import repository, wordings
from etude.examiner.examine_job import locked
from etude.examiner.report import Report, read_report, report_bytes
from etude.examiner.repository import RevisionRow
from etude.examiner.rewriting import reworded
from etude.files import crash_point
from etude.jobs import Job
from etude.llm.errors import LlmError, LlmTimeoutError
from etude.people.spending.errors import PriceMissingError, QuotaSpentError
from etude.sessions import repository as sessions
from etude.sessions.records import SessionRow
from etude.store.engine import Database

TOTAL_S: Final = 60.0
"""The longest that one run waits for the model, for all dimensions together."""

Ask = Callable[[str, str, str], Awaitable[str]]
"""Takes a question, whose day is drawn on, and what for; returns what the model says."""
NotAsked = QuotaSpentError | PriceMissingError

_log: Final = structlog.get_logger(__name__)


class Reword:
    """The handler of `examiner.reword` jobs."""

    def __init__(
        self,
        database: Database,
        ask: Ask,
        model: str,
        clock: Clock,
        ids: Ids,
        total_s: float = TOTAL_S,
    ) -> None:
        """Ask `ask`, which speaks to the model called `model`."""
        self._database = database
        self._ask = ask
        self._model = model
        self._clock = clock
        self._ids = ids
        self._total_s = total_s

    async def __call__(self, job: Job) -> None:
        """Reword the latest report of the session that the job names.

        Raises:
            LlmError: a question is open and asking later may help; the job is then tried again.
        """
        session_key = job.args["session_key"]
        async with self._database.read() as connection:
            head = await repository.head(connection, session_key)
            latest = await repository.revision(connection, session_key, head.revision)
            kept = await wordings.answers(connection, session_key)
            session = (await sessions.by_keys(connection, [session_key])).get(session_key)
        if latest is None or session is None:
            return  # erased
        report = read_report(latest.body)
        if _is_reworded(report):
            return
        asker = _Asker(self, job, kept, owner_of(session))
        made = await reworded(report, asker.ask, timeout_s=self._total_s)
        failure = asker.failure(self._total_s)
        if isinstance(failure, LlmError) and not failure.retry_is_pointless:
            raise failure
        code = None if failure is None else failure.code
        await self._store(job, latest, made, code)

    async def asked(self, job: Job, owner: str, key: str, question: str) -> str:
        """Ask the model in the name of `owner`, and keep what it says."""
        said = await self._ask(question, owner, f"session:{job.args['session_key']}")
        async with self._database.transaction() as work:
            await job.fence(work)
            if await locked(work, job.args["session_key"]) is not None:
                now_us = to_us(self._clock.now())
                await wordings.keep(work, job.args["session_key"], key, said, now_us)
            crash_point("examiner.reword.answered")
        return said

    def key_of(self, question: str) -> str:
        """Return the key under which the answer is kept."""
        return wordings.asked_sha256(self._model, question)

    async def _store(self, job: Job, latest: RevisionRow, made: Report, failed: str | None) -> None:
        async with self._database.transaction() as work:
            session = await locked(work, latest.session_key)
            head = await repository.head(work.connection, latest.session_key)
            if session is not None and head.revision != latest.revision:
                await job.again(work, self._clock.now())  # there is a newer one to reword
                return
            if session is not None and _is_reworded(made):
                row = self._row(latest, made)
                rubric = await repository.rubric_body(work.connection, latest.rubric_digest)
                await repository.add_revision(work, row, rubric or b"")
                head = msgspec.structs.replace(head, revision=row.revision)
            if session is not None:
                changed = msgspec.structs.replace(head, not_reworded=failed)
                await repository.save_head(work, changed)
            crash_point("examiner.reword.revised")
            await job.finish(work)

    def _row(self, latest: RevisionRow, made: Report) -> RevisionRow:
        """Return the next revision: other words, the same digest."""
        now = self._clock.now()
        stamped = msgspec.structs.replace(
            made,
            report_id=self._ids.new(),
            revision=latest.revision + 1,
            generated_at=now,
        )
        return msgspec.structs.replace(
            latest,
            revision=stamped.revision,
            report_id=stamped.report_id,
            body=report_bytes(stamped),
            made_us=to_us(now),
        )


class _Asker:
    """One run's questions: what is kept is not asked, the rest one after the other."""

    def __init__(self, reword: Reword, job: Job, kept: dict[str, str], owner: str) -> None:
        self._reword = reword
        self._job = job
        self._kept = kept
        self._owner = owner
        self._turn = asyncio.Lock()
        self._wanted: set[str] = set()
        self._failed: list[LlmError | NotAsked] = []

    async def ask(self, question: str) -> str:
        """Return the model's answer, an earlier one if it is kept."""
        key = self._reword.key_of(question)
        self._wanted.add(key)
        async with self._turn:
            if key not in self._kept:
                if any(map(_is_pointless, self._failed)):
                    raise self._failed[-1]  # the next question would end in the same way
                try:
                    self._kept[key] = await self._reword.asked(
                        self._job, self._owner, key, question
                    )
                except (LlmError, QuotaSpentError, PriceMissingError) as error:
                    self._failed.append(error)
                    raise
            return self._kept[key]

    def failure(self, total_s: float) -> LlmError | NotAsked | None:
        """Return what kept a question from being answered; None = all are."""
        if self._wanted <= self._kept.keys():
            return None
        error = _worst(self._failed) or LlmTimeoutError(total_s=total_s)
        _log.info("not reworded", action="examiner.reword", code=error.code)
        return error


def owner_of(session: SessionRow) -> str:
    """Return whose day a report draws on: its learner's, else its device's or uploader's."""
    if session.learner_key is not None:
        return f"learner:{session.learner_key}"
    if session.device_key is not None:
        return f"device:{session.device_key}"
    return f"{session.principal_kind}:{session.principal_key}"


def _worst(errors: Sequence[LlmError | NotAsked]) -> LlmError | NotAsked | None:
    return next(filter(_is_pointless, errors), errors[-1] if errors else None)


def _is_pointless(error: LlmError | NotAsked) -> bool:
    """Whether asking again soon ends in the same way; a quota is spent until the next day."""
    return not isinstance(error, LlmError) or error.retry_is_pointless


def _is_reworded(report: Report) -> bool:
    chain = report.examiner_assessment.evidence_chain
    return any(item.narrative_source == "model" for item in chain)
