"""Task instances as they are stored: found by a row of their own, folded when they are read."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.events.ndjson import decode_line
from etude.people.devices import get_device_by_key
from etude.people.learners import get_learner_by_key
from etude.people.records import Principal
from etude.people.tables import device, learner
from etude.sessions import reading, repository
from etude.sessions.batch import Batch
from etude.sessions.errors import SessionTooLongError
from etude.sessions.export import LIMIT_BYTES
from etude.sessions.ingest import Ingest
from etude.sessions.instance_puts import Identified, InstancePut, batch_of, said, settle
from etude.sessions.projectors import Stored
from etude.sessions.records import Answer, SessionRow, Upload
from etude.sessions.tables import session, session_event, task_instance
from etude.sessions.turns import HEAD_TYPES, About, Folded, Head, Received, fold, named_task
from etude.store.dialects import insert_if_absent
from etude.store.engine import Database
from etude.store.work import UnitOfWork

# More than this is folded off the event loop, so that other requests go on meanwhile.
LARGE_BYTES: Final = 256 * 1024
_START: Final = "session_start"
_HEAD_FIELDS: Final = Head.__struct_fields__
_PAGE_ROWS: Final = 2_000


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """An instance in a list, and the key of its session, for the list's cursor."""

    session_key: int
    head: Head


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """Who puts an instance, and the device that it is put for."""

    principal: Principal
    device_key: int | None


class InstanceProjector:
    """Notes which sessions are tasks, when their `session_start` says so."""

    event_types: Collection[str] | None = frozenset({_START})

    async def project(self, work: UnitOfWork, stored: Stored) -> None:
        """See `etude.sessions.projectors.Projector.project`."""
        found = sorted(
            session_key
            for session_key, events in stored.items()
            if any(_names_a_task(sent.line) for sent in events)
        )
        if found:
            await work.connection.execute(
                insert_if_absent(work, task_instance), [{"session_key": key} for key in found]
            )


async def load(connection: AsyncConnection, record: SessionRow) -> Folded | None:
    """Return the instance of a session; None if it is no task.

    Raises:
        SessionTooLongError: its events are too many to be folded while somebody waits.
    """
    rows, size_bytes = await _rows(connection, record)
    about = await _about(connection, record)
    if size_bytes > LARGE_BYTES:
        return await asyncio.to_thread(_folded, about, rows)
    return _folded(about, rows)


async def listed(
    connection: AsyncConnection, wanted: reading.Filter, *, after_key: int, limit: int
) -> list[Listed]:
    """Return up to `limit` instances behind `after_key`, in the order in which they first came."""
    statement = (
        select(*repository.COLUMNS, device.c.device_id, learner.c.learner_id)
        .join(task_instance, task_instance.c.session_key == session.c.session_key)
        .outerjoin(device, device.c.device_key == session.c.device_key)
        .outerjoin(learner, learner.c.learner_key == session.c.learner_key)
        .where(session.c.session_key > after_key, task_instance.c.session_key > after_key)
        .order_by(task_instance.c.session_key)
        .limit(limit)
    )
    rows = (await connection.execute(reading.narrowed(statement, wanted))).all()
    events = await _head_events(connection, [row.session_key for row in rows])
    found = []
    for row in rows:
        about = About(
            session_id=row.session_id,
            device_id=row.device_id,
            learner_id=row.learner_id,
            started_ms=row.started_us // 1000,
            last_ts_s=row.last_ts_s,
            abandoned=row.status == "abandoned",
        )
        folded = fold(about, events.get(row.session_key, ()))
        if folded is not None:
            found.append(Listed(session_key=row.session_key, head=_head(folded)))
    return found


async def put(
    database: Database,
    ingest: Ingest,
    session_id: str,
    sent: InstancePut,
    sender: Sender,
) -> Answer:
    """Store what another server says about an instance; return what ingest answers.

    Raises:
        InstancePartUnusableError, TooManyLinesError, SessionTooLongError: nothing was stored.
        SessionForeignError, SessionErasedError, LearnerErasedError, DeviceNotNamedError: as for
            every upload.
    """
    async with database.read() as connection:
        record = await repository.find(connection, session_id)
        stored = None if record is None else await load(connection, record)
        # Up to 8 MiB are worked on: off the event loop, so that other requests go on meanwhile.
        told = await asyncio.to_thread(said, session_id, sent, stored)
        ids = [event_id for each in told for event_id in each.events]
        known = set() if record is None else await _known(connection, record.session_key, ids)
    device_key = sender.device_key
    if device_key is None and record is not None and sender.principal.kind == "service":
        device_key = record.device_key
    batch = await asyncio.to_thread(_settled, session_id, told, stored, known)
    return await ingest.receive(
        Upload(principal=sender.principal, device_key=device_key, batch=batch)
    )


def _settled(
    session_id: str, told: Sequence[Identified], stored: Folded | None, known: AbstractSet[str]
) -> Batch:
    return batch_of(session_id, settle(session_id, told, stored, known))


async def _known(
    connection: AsyncConnection, session_key: int, event_ids: Sequence[str]
) -> set[str]:
    """Return those of the ids that the session has events of."""
    found: set[str] = set()
    for first in range(0, len(event_ids), 500):
        found.update(
            await connection.scalars(
                select(session_event.c.event_id).where(
                    session_event.c.session_key == session_key,
                    session_event.c.event_id.in_(event_ids[first : first + 500]),
                )
            )
        )
    return found


def _names_a_task(line: bytes) -> bool:
    # Most sessions are none: they are told by one look for a word.
    return b"task_id" in line and named_task(decode_line(line).value) is not None


def _head(folded: Folded) -> Head:
    return Head(**{name: getattr(folded.instance, name) for name in _HEAD_FIELDS})


async def _about(connection: AsyncConnection, record: SessionRow) -> About:
    device_id = learner_id = None
    if record.device_key is not None:
        device_id = (await get_device_by_key(connection, record.device_key)).device_id
    if record.learner_key is not None:
        learner_id = (await get_learner_by_key(connection, record.learner_key)).learner_id
    return About(
        session_id=record.session_id,
        device_id=device_id,
        learner_id=learner_id,
        started_ms=record.started_us // 1000,
        last_ts_s=record.last_ts_s,
        abandoned=record.status == "abandoned",
    )


_ROWS: Final = select(
    session_event.c.session_key,
    session_event.c.receipt,
    session_event.c.received_us,
    session_event.c.line,
)


async def _rows(connection: AsyncConnection, record: SessionRow) -> tuple[list[Any], int]:
    statement: Select[Any] = _ROWS.where(session_event.c.session_key == record.session_key)
    rows = await connection.stream(statement, execution_options={"yield_per": _PAGE_ROWS})
    size_bytes, found = 0, []
    async for row in rows:
        size_bytes += len(row.line)
        if size_bytes > LIMIT_BYTES:
            raise SessionTooLongError(session_id=record.session_id, limit_bytes=LIMIT_BYTES)
        found.append(row)
    return found, size_bytes


def _folded(about: About, rows: Iterable[Any]) -> Folded | None:
    return fold(about, map(_read, rows))


async def _head_events(
    connection: AsyncConnection, session_keys: Collection[int]
) -> dict[int, list[Received]]:
    rows = await connection.execute(
        _ROWS.where(
            session_event.c.session_key.in_(session_keys),
            session_event.c.event_type.in_(HEAD_TYPES),
        )
    )
    found: dict[int, list[Received]] = {}
    for row in rows:
        found.setdefault(row.session_key, []).append(_read(row))
    return found


def _read(row: Any) -> Received:  # noqa: ANN401 - a row of `_ROWS`
    return Received(
        event=decode_line(row.line), receipt=row.receipt, received_ms=row.received_us // 1000
    )
