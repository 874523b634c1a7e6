"""Reading sessions back: what is known of them, their lines, recap, recordings and quarantine."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import get, patch
from litestar.params import FromQuery, JSONBody, QueryParameter
from litestar.response import Stream
from sqlalchemy.ext.asyncio import AsyncConnection

from etude import i18n
from etude.clock import from_us
from etude.events.cloudevents import to_cloudevent
from etude.events.ndjson import decode_line
from etude.people.devices import get_device, get_device_by_key
from etude.people.errors import (
    CursorInvalidError,
    DeviceUnknownError,
    LearnerErasedError,
    LearnerUnknownError,
    TimeOutOfRangeError,
)
from etude.people.learners import get_learner, get_learner_by_key
from etude.people.paging import DEFAULT_LIMIT, cursor_after, key_after
from etude.people.scopes import Scope
from etude.people.times import check_time
from etude.rubric.recap import recap
from etude.sessions import export, lifecycle, media, reading, repository
from etude.sessions.errors import (
    MediaDigestInvalidError,
    MediaUnknownError,
    SessionEmptyError,
    SessionErasedError,
    SessionIdInvalidError,
    SessionTooLongError,
    SessionUnknownError,
)
from etude.sessions.records import SessionRow
from etude.store.blob_files import OpenBlob
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of
from etude.web.uploads import NDJSON, Digest, SessionId

_READ_ERRORS: Final = (
    SessionIdInvalidError,
    SessionUnknownError,
    SessionErasedError,
    StoreUnavailable,
)
# What a recap may hold in memory: some fifty thousand events, a session has ten to two hundred.


class MediaView(msgspec.Struct, frozen=True, kw_only=True):
    """A recording that the session has."""

    sha256: str
    size_bytes: int
    content_type: str
    received_at: datetime


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list. `started_at` is corrected; `clock_flag` says why it was estimated."""

    session_id: str
    status: Literal["open", "ended", "abandoned"]
    events: int
    started_at: datetime
    started_estimated: bool
    clock_flag: str | None
    last_received_at: datetime


class SessionView(SessionSummary, frozen=True, kw_only=True):
    """All that is known of a session besides its lines.

    `gaps` are the missing numbers of `seq` as inclusive pairs, the first 1,000; `owner_basis` says
    what decided whose session it is: `token`, `session_time`, `receipt_time` or `staff`.
    """

    learner_id: str | None
    device_id: str | None
    owner_basis: str
    watermark: int | None
    gaps: list[tuple[int, int]]
    device_started_at: datetime | None
    utc_offset_min: int | None
    first_received_at: datetime
    media: list[MediaView]
    quarantined: int


class SessionPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list of sessions, in the order in which they first came."""

    items: list[SessionSummary]
    next_cursor: str | None


class QuarantineView(msgspec.Struct, frozen=True, kw_only=True):
    """A line whose id had been taken by other content, as it was sent."""

    event_id: str
    line: str
    sent_by: str
    received_at: datetime


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a session's quarantine, in order of receipt."""

    items: list[QuarantineView]
    next_cursor: str | None


class Assignment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose session it is from now on; null for nobody's."""

    learner_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None


@get(
    "/api/v1/sessions",
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_READ,
        raises=(
            CursorInvalidError,
            LearnerUnknownError,
            LearnerErasedError,
            DeviceUnknownError,
            TimeOutOfRangeError,
            StoreUnavailable,
        ),
    ),
    tags=["Sessions"],
)
async def list_sessions(
    request: HttpRequest,
    learner: FromQuery[str | None] = None,
    device: FromQuery[str | None] = None,
    status: FromQuery[Literal["open", "ended", "abandoned"] | None] = None,
    since: FromQuery[datetime | None] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> SessionPage:
    """List sessions: a device or learner sees its own, staff and services see all.

    `since` is an instant: RFC 3339 with an offset, from 1970.
    """
    after_key = key_after(cursor)
    async with services_of(request).database.read() as connection:
        wanted = reading.Filter(
            learner_key=(await get_learner(connection, learner)).learner_key if learner else None,
            device_key=(await get_device(connection, device)).device_key if device else None,
            status=status,
            since=check_time(since) if since else None,
        )
        narrowed = reading.own(principal_of(request), wanted)
        rows = await reading.listed(connection, narrowed, after_key=after_key, limit=limit + 1)
    more = len(rows) > limit
    return SessionPage(
        items=[SessionSummary(**_summary(row)) for row in rows[:limit]],
        next_cursor=cursor_after(rows[limit - 1].session_key) if more else None,
    )


@get(
    "/api/v1/sessions/{session_id:str}",
    opt=declared(roles=("server",), needs=Scope.SESSIONS_READ, raises=_READ_ERRORS),
    tags=["Sessions"],
)
async def show_session(request: HttpRequest, session_id: SessionId) -> SessionView:
    """Show what is known of a session: whose, when, how far it has arrived, what is missing."""
    record = await _readable(request, session_id)
    async with services_of(request).database.read() as connection:
        return await _view(connection, record)


@patch(
    "/api/v1/sessions/{session_id:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(*_READ_ERRORS, LearnerUnknownError, LearnerErasedError),
    ),
    tags=["Sessions"],
)
async def assign_session(
    request: HttpRequest, session_id: SessionId, data: JSONBody[Assignment]
) -> SessionView:
    """Correct whose session it is; the change is audited and outlasts later uploads."""
    services = services_of(request)
    await _readable(request, session_id)
    async with services.database.transaction() as work:
        record = (await repository.lock(work, [session_id])).get(session_id)
        if record is None:
            raise SessionErasedError
        await lifecycle.assign(
            work, record, data.learner_id, principal_of(request), services.clock.now()
        )
    return await _reloaded(request, session_id)


@get(
    "/api/v1/sessions/{session_id:str}/events",
    opt=declared(roles=("server",), needs=Scope.SESSIONS_READ, raises=_READ_ERRORS),
    media_type=NDJSON,
    tags=["Sessions"],
)
async def export_events(
    request: HttpRequest,
    session_id: SessionId,
    format_: Annotated[Literal["ndjson", "cloudevents"], QueryParameter(name="format")] = "ndjson",
) -> Stream:
    """Give a session's lines back as they were sent, in order; or one CloudEvent (1.0) a line."""
    record = await _readable(request, session_id)
    lines = export.lines(services_of(request).database, record.session_key)
    body = _cloudevents(lines, record) if format_ == "cloudevents" else _with_line_ends(lines)
    return Stream(body, media_type=NDJSON)


@get(
    "/api/v1/sessions/{session_id:str}/recap",
    opt=declared(
        roles=("server", "learner"),
        needs=Scope.SESSIONS_READ,
        raises=(*_READ_ERRORS, SessionEmptyError, SessionTooLongError),
    ),
    tags=["Sessions"],
)
async def show_recap(
    request: HttpRequest,
    session_id: SessionId,
    locale: FromQuery[Literal["en", "zh-CN"] | None] = None,
) -> dict[str, Any]:
    """Make the recap from the stored events, by the same function that the device uses."""
    record = await _readable(request, session_id)
    if not record.event_count:
        raise SessionEmptyError(session_id=session_id)
    lines = await export.lines_within(services_of(request).database, record)
    language = locale or i18n.negotiate(request.headers.get("accept-language"))
    made = await asyncio.to_thread(_recap_of, lines, language)
    return {"session_id": session_id, **made}


@get(
    "/api/v1/sessions/{session_id:str}/quarantine",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(*_READ_ERRORS, CursorInvalidError)
    ),
    tags=["Sessions"],
)
async def list_quarantine(
    request: HttpRequest,
    session_id: SessionId,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> QuarantinePage:
    """Show the lines of a session that came under an id that was taken."""
    record = await _readable(request, session_id)
    async with services_of(request).database.read() as connection:
        kept = await reading.quarantined(connection, record.session_key, cursor=cursor, limit=limit)
    items = [
        QuarantineView(
            event_id=each.event_id,
            line=each.line.decode(),
            sent_by=each.principal_kind,
            received_at=each.received,
        )
        for each in kept.items
    ]
    return QuarantinePage(items=items, next_cursor=kept.next_cursor)


@get(
    "/api/v1/sessions/{session_id:str}/media/{sha256:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_READ,
        raises=(*_READ_ERRORS, MediaDigestInvalidError, MediaUnknownError),
    ),
    media_type="application/octet-stream",
    tags=["Sessions"],
)
async def download_media(request: HttpRequest, session_id: SessionId, sha256: Digest) -> Stream:
    """Give a recording of the session back; its bytes are checked against the digest first."""
    media.check_digest(sha256)
    record = await _readable(request, session_id)
    services = services_of(request)
    async with services.database.read() as connection:
        found = await media.get(connection, record, sha256)
    recording = await services.blobs.open(sha256)
    return Stream(
        _contents(recording),
        headers={
            "Content-Type": found.content_type,  # Litestar's parameter loses to the route's
            "Content-Disposition": "attachment",
            "Content-Length": str(recording.size),
            "ETag": f'"{sha256}"',
        },
    )


async def _readable(request: HttpRequest, session_id: str) -> SessionRow:
    services = services_of(request)
    return await reading.readable(
        services.database, principal_of(request), session_id, services.clock.now()
    )


async def _reloaded(request: HttpRequest, session_id: str) -> SessionView:
    async with services_of(request).database.read() as connection:
        record = await repository.find(connection, session_id)
        if record is None:
            raise SessionErasedError
        return await _view(connection, record)


async def _view(connection: AsyncConnection, record: SessionRow) -> SessionView:
    learner_id = device_id = None
    if record.learner_key is not None:
        learner_id = (await get_learner_by_key(connection, record.learner_key)).learner_id
    if record.device_key is not None:
        device_id = (await get_device_by_key(connection, record.device_key)).device_id
    return SessionView(
        **_summary(record),
        learner_id=learner_id,
        device_id=device_id,
        owner_basis=record.owner_basis,
        watermark=record.watermark,
        gaps=await repository.missing(connection, record),
        device_started_at=_time(record.device_started_us),
        utc_offset_min=record.utc_offset_min,
        first_received_at=from_us(record.first_received_us),
        media=[
            MediaView(
                sha256=each.sha256,
                size_bytes=each.size_bytes,
                content_type=each.content_type,
                received_at=each.received,
            )
            for each in await media.listed(connection, record.session_key)
        ],
        quarantined=await reading.count_quarantined(connection, record.session_key),
    )


def _time(moment_us: int | None) -> datetime | None:
    return None if moment_us is None else from_us(moment_us)


def _summary(record: SessionRow) -> dict[str, Any]:
    return {
        "session_id": record.session_id,
        "status": record.status,
        "events": record.event_count,
        "started_at": from_us(record.started_us),
        "started_estimated": record.started_estimated,
        "clock_flag": record.clock_flag,
        "last_received_at": from_us(record.last_received_us),
    }


def _recap_of(lines: list[bytes], locale: str) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(
        recap((decode_line(line, number) for number, line in enumerate(lines, 1)), locale=locale)
    )
    return made


async def _with_line_ends(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield line + b"\n"


async def _contents(recording: OpenBlob) -> AsyncIterator[bytes]:
    with recording:
        async for chunk in recording:
            yield chunk


async def _cloudevents(lines: AsyncIterator[bytes], record: SessionRow) -> AsyncIterator[bytes]:
    started = from_us(record.started_us)
    async for line in lines:
        yield msgspec.json.encode(to_cloudevent(decode_line(line), started)) + b"\n"


route_handlers = [
    list_sessions,
    show_session,
    assign_session,
    export_events,
    show_recap,
    list_quarantine,
    download_media,
]
