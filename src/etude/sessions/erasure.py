"""What `sessions` does when a learner's data is exported or erased (`docs/rules.md 13, 49, 50`)."""

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

import msgspec
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, to_us
from etude.files import crash_point
from etude.people.learner_data import ExportFile, LearnerData
from etude.sessions import instances, media, repository
from etude.sessions.errors import SessionTooLongError
from etude.sessions.export import events_digest, lines
from etude.sessions.tables import (
    session,
    session_event,
    session_media,
    session_quarantine,
    session_tombstone,
    task_instance,
)
from etude.store.blobs import Blobs
from etude.store.engine import Database
from etude.store.work import UnitOfWork

CONTEXT: Final = "sessions"
# For whoever opens an export; the machine's own table of types differs from one to the next.
_SUFFIXES: Final = {
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/webm": ".webm",
    "audio/x-wav": ".wav",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
}


async def sessions_of(
    connection: AsyncConnection, learner_key: int, *, lock: bool = False
) -> list[tuple[int, str]]:
    """Return `(session_key, session_id)` of every session of the learner, oldest first.

    `lock` holds them against uploads until the transaction ends.
    """
    statement = (
        select(session.c.session_key, session.c.session_id)
        .where(session.c.learner_key == learner_key)
        .order_by(session.c.session_key)
    )
    rows = await connection.execute(statement.with_for_update() if lock else statement)
    return [(row.session_key, row.session_id) for row in rows]


def sessions_data(clock: Clock, blobs: Blobs) -> LearnerData:
    """Return what sessions registers: every session of the learner with lines and recordings."""

    async def erase(work: UnitOfWork, learner_key: int) -> None:
        for session_key, session_id in await sessions_of(work.connection, learner_key, lock=True):
            await _bury(work, session_key, session_id, to_us(clock.now()))
            await blobs.remove_references(work, media.owner(session_key))

    def export(database: Database, learner_key: int) -> AsyncIterator[ExportFile]:
        return _exported(database, blobs, learner_key)

    return LearnerData(
        context=CONTEXT,
        tables=(session, session_event, session_quarantine, session_media, task_instance),
        export_learner=export,
        erase_learner=erase,
    )


async def _bury(work: UnitOfWork, session_key: int, session_id: str, now_us: int) -> None:
    """Remove a session; its tombstone refuses it for ever."""
    await work.connection.execute(
        insert(session_tombstone),
        {
            "session_id_sha256": repository.digest_of_id(session_id),
            "events_digest": await events_digest(work.connection, session_key),
            "erased_us": now_us,
        },
    )
    for table in (session_event, session_quarantine, session_media, task_instance, session):
        await work.connection.execute(delete(table).where(table.c.session_key == session_key))
    crash_point("sessions.erasure.session_removed")


async def _exported(
    database: Database, blobs: Blobs, learner_key: int
) -> AsyncIterator[ExportFile]:
    async with database.read() as connection:
        sessions = await sessions_of(connection, learner_key)
    for session_key, session_id in sessions:
        folder = f"sessions/{quote(session_id, safe='')}"
        yield ExportFile(
            path=f"{folder}/events.jsonl", chunks=_with_line_ends(database, session_key)
        )
        async with database.read() as connection:
            task = await _task(connection, session_id)
            recordings = await media.listed(connection, session_key)
        if task is not None:
            yield ExportFile(path=f"{folder}/instance.json", chunks=_once(task))
        for recording in recordings:
            yield ExportFile(
                path=f"{folder}/media/{recording.sha256}{_suffix(recording.content_type)}",
                chunks=_bytes(blobs, recording.sha256),
                compressed=True,
            )


async def _task(connection: AsyncConnection, session_id: str) -> bytes | None:
    """Return the session as the task that was done, if it is one; the lines say it all too."""
    record = await repository.find(connection, session_id)
    try:
        folded = None if record is None else await instances.load(connection, record)
    except SessionTooLongError:
        return None
    return None if folded is None else msgspec.json.encode(folded.instance)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _with_line_ends(database: Database, session_key: int) -> AsyncIterator[bytes]:
    async for line in lines(database, session_key):
        yield line + b"\n"


async def _bytes(blobs: Blobs, sha256: str) -> AsyncIterator[bytes]:
    with await blobs.open(sha256) as recording:
        async for chunk in recording:
            yield chunk


def _suffix(content_type: str) -> str:
    return _SUFFIXES.get(content_type, ".bin")
