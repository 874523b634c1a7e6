"""A stored session as the examiner takes it: events, begin, recordings at hand, its report."""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.cli.local import Local, with_database
from etude.clock import from_us
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner import repository as reports
from etude.examiner.report import Report, read_report
from etude.examiner.revisions import pinned_rubric
from etude.examiner.verify import read_rubric_json
from etude.rubric.model import Rubric
from etude.sessions import export, media, repository
from etude.sessions.errors import SessionErasedError, SessionUnknownError
from etude.sessions.reading import check_session_id
from etude.sessions.records import SessionRow

MAX_BYTES: Final = 64 << 20
_MOST_EVENTS: Final = 2**31 - 1


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of this installation.

    Attributes:
        events: all that are stored.
        reported: those that `report` was made from.
        report: None = none is made yet.
        rubric: the one that `report` was made by, or without a report the one that came with what
            was practised; None = it is not kept here.
    """

    events: tuple[Event, ...]
    reported: tuple[Event, ...]
    started_at: datetime
    media: frozenset[str]
    report: Report | None
    rubric: Rubric | None


def stored_session(
    session_id: str, data: Path | None, given: Report | None = None
) -> StoredSession:
    """Return a session of this installation, with `given` or the latest revision of its report.

    Raises:
        SessionIdInvalidError, SessionUnknownError, SessionErasedError, SessionTooLongError: and
            what `with_database` does.
    """
    check_session_id(session_id)

    async def read(local: Local) -> StoredSession:
        async with local.database.read() as connection:
            record = await repository.find(connection, session_id)
            if record is None and await repository.tombstones(connection, [session_id]):
                raise SessionErasedError
            if record is None:
                raise SessionUnknownError(session_id=session_id)
            kept = await media.listed(connection, record.session_key)
            report = given or await _latest(connection, record)
            reported, rubric = await _inputs(connection, record, report)
        events = tuple(
            map(decode_line, await export.lines_within(local.database, record, MAX_BYTES))
        )
        if report is None:
            async with local.database.read() as connection:
                rubric = await pinned_rubric(connection, events)
        return StoredSession(
            events=events,
            reported=tuple(map(decode_line, reported)),
            started_at=from_us(record.started_us),
            media=frozenset(one.sha256 for one in kept),
            report=report,
            rubric=rubric,
        )

    return with_database("examine", data, read)


async def _latest(connection: AsyncConnection, record: SessionRow) -> Report | None:
    head = await reports.head(connection, record.session_key)
    row = await reports.revision(connection, record.session_key, head.revision)
    return None if row is None else read_report(row.body, record.session_id)


async def _inputs(
    connection: AsyncConnection, record: SessionRow, report: Report | None
) -> tuple[list[bytes], Rubric | None]:
    """Return the lines and the rubric that a report was made from, whatever has come since."""
    if report is None:
        return [], None
    count = min(max(report.inputs.event_count, 0), _MOST_EVENTS)
    body = await reports.rubric_body(connection, report.inputs.rubric.digest)
    return (
        await export.first_lines(connection, record.session_key, count),
        None if body is None else read_rubric_json(body),
    )
