"""A stored session as the examiner takes it: events, begin, recordings at hand."""

from datetime import datetime
from pathlib import Path
from typing import Final

from etude.cli.local import Local, with_database
from etude.clock import from_us
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.sessions import export, media, repository
from etude.sessions.errors import SessionErasedError, SessionUnknownError
from etude.sessions.reading import check_session_id

MAX_BYTES: Final = 64 << 20

Stored = tuple[tuple[Event, ...], datetime | None, frozenset[str]]


def stored_session(session_id: str, data: Path | None) -> Stored:
    """Return events, begin and recordings of a session of this installation.

    Raises:
        SessionIdInvalidError, SessionUnknownError, SessionErasedError, SessionTooLongError: and
            what `with_database` does.
    """
    check_session_id(session_id)

    async def read(local: Local) -> Stored:
        async with local.database.read() as connection:
            record = await repository.find(connection, session_id)
            if record is None and await repository.tombstones(connection, [session_id]):
                raise SessionErasedError
            if record is None:
                raise SessionUnknownError(session_id=session_id)
            kept = await media.listed(connection, record.session_key)
        lines = await export.lines_within(local.database, record, MAX_BYTES)
        return (
            tuple(decode_line(line) for line in lines),
            from_us(record.started_us),
            frozenset(one.sha256 for one in kept),
        )

    return with_database("examine", data, read)
