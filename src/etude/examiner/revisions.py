"""Reading reports: which revisions there are, and what is to be expected where there is none."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.errors import EtudeError
from etude.events.model import Event
from etude.examiner import repository
from etude.examiner.enqueue import EXAMINE, ask
from etude.examiner.repository import RevisionRow
from etude.examiner.serving_errors import ReportFailedError, RevisionUnknownError
from etude.examiner.verify import read_rubric_json
from etude.files import crash_point
from etude.jobs import JobState, find
from etude.people import audit
from etude.people.records import Actor, Principal
from etude.rubric.errors import RubricUnknownError
from etude.rubric.library import rubric_pin
from etude.rubric.model import Rubric
from etude.sessions.errors import SessionEmptyError, SessionTooLongError
from etude.sessions.export import LIMIT_BYTES
from etude.sessions.records import SessionRow
from etude.store.work import UnitOfWork

Status = Literal["open", "queued", "running"]
_SHORTEST_WAIT_S: Final = 1
_OPEN_WAIT_S: Final = 60


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """There is no report yet: why, and when to ask again."""

    status: Status
    retry_after_s: int


async def load(
    connection: AsyncConnection, session: SessionRow, number: int | None, now: datetime
) -> RevisionRow | Expected:
    """Return a revision of the session's report, the latest without `number`.

    Raises:
        SessionEmptyError: the session has no events.
        RevisionUnknownError: there is no revision of this number.
        RubricUnknownError: nobody knows what to examine it by (`docs/rules.md 3`).
        SessionTooLongError: it is too long to be examined.
        ReportFailedError: it was tried again and again.
    """
    head = await repository.head(connection, session.session_key)
    wanted = head.revision if number is None else number
    row = await repository.revision(connection, session.session_key, wanted)
    if row is not None:
        return row
    if number is not None:
        raise RevisionUnknownError(session_id=session.session_id, revision=number)
    if not session.event_count:
        raise SessionEmptyError(session_id=session.session_id)
    if head.refused is not None:
        raise _refusal(head.refused, session)
    return await _expected(connection, session, now)


async def not_reworded(connection: AsyncConnection, row: RevisionRow) -> str | None:
    """Return why no model was asked for other words in a revision; None: nothing kept it."""
    head = await repository.head(connection, row.session_key)
    return head.not_reworded if head.revision == row.revision else None


async def _expected(connection: AsyncConnection, session: SessionRow, now: datetime) -> Expected:
    job = await find(connection, EXAMINE, str(session.session_key))
    if job is None:
        return Expected(status="open", retry_after_s=_OPEN_WAIT_S)
    if job.state is JobState.DEAD:
        raise ReportFailedError(session_id=session.session_id, reason=job.error_code or "?")
    if job.state is JobState.RUNNING:
        return Expected(status="running", retry_after_s=_SHORTEST_WAIT_S)
    wait_s = round((job.run_after - now).total_seconds() + 0.5)
    return Expected(status="queued", retry_after_s=max(_SHORTEST_WAIT_S, wait_s))


def _refusal(code: str, session: SessionRow) -> EtudeError:
    if code == SessionTooLongError.code:
        return SessionTooLongError(session_id=session.session_id, limit_bytes=LIMIT_BYTES)
    return RubricUnknownError(rubric="?")


async def rubric_of(connection: AsyncConnection, row: RevisionRow) -> Rubric:
    """Return the rubric that a revision was made by, as it was then."""
    body = await repository.rubric_body(connection, row.rubric_digest)
    return read_rubric_json(body or b"")


async def pinned_rubric(connection: AsyncConnection, events: Iterable[Event]) -> Rubric | None:
    """Return the rubric that came with what was practised (`meta.rubric.digest`), if it is kept."""
    start = next((one for one in events if one.event_type == "session_start"), None)
    digest = rubric_pin(start)
    body = None if digest is None else await repository.rubric_body(connection, digest)
    return None if body is None else read_rubric_json(body)


async def assign_rubric(
    work: UnitOfWork, session: SessionRow, rubric: Rubric, actor: Actor | Principal, now: datetime
) -> None:
    """Examine a session by a rubric that a person chose, from now on; audited.

    `session` must be locked.
    """
    head = await repository.head(work.connection, session.session_key)
    changed = msgspec.structs.replace(head, assigned_rubric=rubric.key, refused=None)
    await repository.save_head(work, changed)
    await ask(work, [session.session_key], now, now)
    await audit.record(
        work,
        actor,
        "session.rubric_assigned",
        subject=("session", session.session_key),
        now=now,
        detail={"rubric": rubric.id, "version": rubric.version},
    )
    crash_point("examiner.rubric.assigned")
