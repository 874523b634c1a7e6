"""A stored session as the examiner takes it: events, begin, recordings at hand, latest report."""

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from etude.cli.local import Local, with_database
from etude.clock import from_us
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner import repository as reports
from etude.examiner import revisions
from etude.examiner.report import Report, read_report
from etude.rubric.model import Rubric
from etude.sessions import export, media, repository
from etude.sessions.errors import SessionErasedError, SessionUnknownError
from etude.sessions.reading import check_session_id

MAX_BYTES: Final = 64 << 20


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of this installation; `report` and `rubric` None = none is made yet."""

    events: tuple[Event, ...]
    started_at: datetime
    media: frozenset[str]
    report: Report | None
    rubric: Rubric | None


def stored_session(session_id: str, data: Path | None) -> StoredSession:
    """Return a session of this installation, with the latest revision of its report.

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
            head = await reports.head(connection, record.session_key)
            row = await reports.revision(connection, record.session_key, head.revision)
            rubric = None if row is None else await revisions.rubric_of(connection, row)
        lines = await export.lines_within(local.database, record, MAX_BYTES)
        return StoredSession(
            events=tuple(map(decode_line, lines)),
            started_at=from_us(record.started_us),
            media=frozenset(one.sha256 for one in kept),
            report=None if row is None else read_report(row.body, session_id),
            rubric=rubric,
        )

    return with_database("examine", data, read)
