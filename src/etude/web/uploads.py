"""Events and recordings come to the server (`docs/sessions.md §Upload`, `docs/rules.md 5`)."""

from typing import Annotated, Final

import msgspec
from litestar import Response, post, put
from litestar.params import HeaderParameter, PathParameter

from etude import i18n
from etude.assess import enqueue as assessment
from etude.errors import EtudeError
from etude.examiner import enqueue as examination
from etude.people.devices import get_device
from etude.people.errors import DeviceUnknownError, LearnerErasedError
from etude.people.scopes import Scope
from etude.sessions import media
from etude.sessions.batch import MAX_BODY_BYTES, read_batch
from etude.sessions.errors import (
    DeviceNotNamedError,
    MediaDigestInvalidError,
    MediaTypeMissingError,
    NoValidLineError,
    SessionErasedError,
    SessionForeignError,
    SessionIdInvalidError,
    SessionNotYetError,
    SessionUnknownError,
    TooManyLinesError,
)
from etude.sessions.ownership import writable
from etude.sessions.reading import check_session_id
from etude.sessions.records import Answer, Upload
from etude.store.errors import BlobDigestMismatch, BlobTooLarge, StoreUnavailable
from etude.store.work import UnitOfWork
from etude.web.auth import principal_of
from etude.web.bodies import read_body, require_media_type, stream_body
from etude.web.declared import Body, declared
from etude.web.services import HttpRequest, services_of

NDJSON: Final = "application/x-ndjson"
# A body this large is read off the event loop, so that other requests go on meanwhile.
LARGE_BODY_BYTES: Final = 512 * 1024

SessionId = Annotated[str, PathParameter(description="The session's id, percent-encoded.")]
Digest = Annotated[
    str, PathParameter(description="SHA-256 of the bytes, 64 lower-case hex digits.")
]
DeviceHeader = Annotated[
    str | None,
    HeaderParameter(
        name="Etude-Device",
        description="With a token of scope upload:on-behalf: the device the session is of.",
    ),
]


class RefusedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not stored: its number from 1, the code, and why in the caller's language."""

    line: int
    code: str
    message: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an upload. Everything counted as received is durable.

    `events_received` counts valid lines: stored, duplicate (`duplicates_skipped`) and in conflict
    with what is stored (`conflicts`, by id). `errors` shows the first 20 of `events_rejected`.
    `watermark` is the highest `seq` up to which nothing is missing.
    """

    status: str = "accepted"
    session_id: str
    events_received: int
    duplicates_skipped: int
    events_rejected: int
    errors: list[RefusedLine]
    conflicts: list[str]
    watermark: int | None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A recording that is durable."""

    sha256: str
    status: str


@post(
    "/api/v1/sessions/{session_id:str}/events",
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_WRITE,
        raises=(
            SessionIdInvalidError,
            SessionForeignError,
            SessionNotYetError,
            DeviceNotNamedError,
            DeviceUnknownError,
            SessionErasedError,
            LearnerErasedError,
            TooManyLinesError,
            NoValidLineError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(NDJSON,),
            limit_bytes=MAX_BODY_BYTES,
            compressible=True,
            description="One event a line (docs/events.md), at most 20,000 lines of 64 KiB.",
        ),
    ),
    tags=["Sessions"],
)
async def upload_events(
    request: HttpRequest, session_id: SessionId, device: DeviceHeader = None
) -> Accepted:
    """Store a session's events exactly once; the answer follows when they are durable."""
    check_session_id(session_id)
    require_media_type(request, NDJSON)
    services = services_of(request)
    body = await read_body(request, MAX_BODY_BYTES)
    batch = (
        await services.in_thread(read_batch, body, session_id)
        if len(body) > LARGE_BODY_BYTES
        else read_batch(body, session_id)
    )
    upload = Upload(
        principal=principal_of(request), device_key=await _device_key(request, device), batch=batch
    )
    answer = await services.ingest.receive(upload)
    return _accepted(answer, i18n.negotiate(request.headers.get("accept-language")))


@put(
    "/api/v1/sessions/{session_id:str}/media/{sha256:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_WRITE,
        raises=(
            SessionIdInvalidError,
            MediaDigestInvalidError,
            MediaTypeMissingError,
            SessionUnknownError,
            SessionForeignError,
            SessionErasedError,
            BlobTooLarge,
            BlobDigestMismatch,
            StoreUnavailable,
        ),
        body=Body(
            media_types=("audio/wav", "audio/ogg", "application/octet-stream"),
            limit_bytes=media.MAX_BYTES,
            description="The recording's bytes, whole. Sent again, it is kept once.",
        ),
    ),
    tags=["Sessions"],
)
async def upload_media(
    request: HttpRequest, session_id: SessionId, sha256: Digest
) -> Response[Kept]:
    """Keep a recording of a session that exists: 201 when it is new there, 200 when it is not."""
    check_session_id(session_id)
    media.check_digest(sha256)
    content_type = media.check_content_type(request.headers.get("content-type"))
    services = services_of(request)
    async with services.database.read() as connection:
        session = await writable(connection, principal_of(request), session_id)
    new = await media.put(
        services.database,
        services.blobs,
        services.clock,
        session,
        sha256=sha256,
        content_type=content_type,
        chunks=stream_body(request, media.MAX_BYTES),
        on_new=_recording_arrived,
    )
    return Response(
        Kept(sha256=sha256, status="stored" if new else "present"), status_code=201 if new else 200
    )


async def _recording_arrived(work: UnitOfWork, session_key: int, now_us: int) -> None:
    """Ask for what a new recording calls for."""
    await assessment.recording_arrived(work, session_key, now_us)
    await examination.recording_arrived(work, session_key, now_us)


async def _device_key(request: HttpRequest, device_id: str | None) -> int | None:
    if device_id is None or principal_of(request).kind != "service":
        return None
    async with services_of(request).database.read() as connection:
        return (await get_device(connection, device_id)).device_key


def _accepted(answer: Answer, locale: str) -> Accepted:
    return Accepted(
        session_id=answer.session_id,
        events_received=answer.events_received,
        duplicates_skipped=answer.duplicates_skipped,
        events_rejected=answer.events_rejected,
        errors=[refused_line(error, locale) for error in answer.errors],
        conflicts=answer.conflicts,
        watermark=answer.watermark,
    )


def refused_line(error: EtudeError, locale: str) -> RefusedLine:
    """Return a line's error as an answer shows it."""
    return RefusedLine(
        line=int(error.params["line"]),
        code=error.code,
        message=i18n.text(f"error.{error.code}", locale, **error.params),
    )


route_handlers = [upload_events, upload_media]
