"""Task instances: what was done with a task, put whole by another server and read by anybody.

The routes and the answers' shape are those of XiaoZhi's management server (`docs/rules.md 22`).
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

import msgspec
from litestar import get, put
from litestar.params import FromQuery, PathParameter, QueryParameter

from etude.people.devices import get_device
from etude.people.errors import (
    CursorInvalidError,
    DeviceUnknownError,
    LearnerErasedError,
    LearnerUnknownError,
    TimeOutOfRangeError,
)
from etude.people.learners import get_learner
from etude.people.paging import DEFAULT_LIMIT, cursor_after, key_after
from etude.people.scopes import Scope
from etude.people.times import check_time
from etude.sessions import instances, reading
from etude.sessions.batch import MAX_BODY_BYTES
from etude.sessions.errors import (
    DeviceNotNamedError,
    InstancePartUnusableError,
    InstanceUnknownError,
    SessionErasedError,
    SessionForeignError,
    SessionIdInvalidError,
    SessionTooLongError,
    SessionUnknownError,
    TooManyLinesError,
)
from etude.sessions.instance_puts import InstancePut
from etude.sessions.turns import Head, TaskInstance
from etude.store.errors import StoreUnavailable
from etude.web.auth import JSON, principal_of
from etude.web.bodies import read_body, require_media_type
from etude.web.declared import Body, declared
from etude.web.errors import BodyMalformedError, RequestInvalidError
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

BELOW: Final = "/xiaozhi"
"""Where XiaoZhi's management server has its routes; they are also at the root."""
_ONE: Final = "/task/instance/{instance_id:str}"
_MILLISECONDS: Final = re.compile(r"\d{1,15}")
# Milliseconds since 1970 have passed this number in 1973; a smaller one is told in seconds.
_SECONDS_BELOW: Final = 10**11

InstanceId = Annotated[
    str, PathParameter(description="The instance's id, which is its session's, percent-encoded.")
]
Since = Annotated[
    str | None,
    QueryParameter(
        name="since",
        max_length=64,
        description="Begun then or later: milliseconds since 1970, or RFC 3339 with an offset.",
    ),
]
Wanted = TypeVar("Wanted")


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a `PUT`: how much of it was new, and how much was there already."""

    id: str
    events_stored: int
    duplicates: int


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An instance is durable."""

    code: int = 0
    msg: str = "success"
    data: Stored


class InstanceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An instance, whole. Times are milliseconds since 1970."""

    code: int = 0
    msg: str = "success"
    data: TaskInstance


class Heads(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list of instances, without their events and turns."""

    items: list[Head]
    next_cursor: str | None


class HeadsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list of instances."""

    code: int = 0
    msg: str = "success"
    data: Heads


@put(
    [_ONE, BELOW + _ONE],
    opt=declared(
        roles=("server",),
        needs=Scope.UPLOAD_ON_BEHALF,
        raises=(
            SessionIdInvalidError,
            DeviceNotNamedError,
            DeviceUnknownError,
            SessionForeignError,
            SessionErasedError,
            LearnerErasedError,
            SessionTooLongError,
            TooManyLinesError,
            InstancePartUnusableError,
            BodyMalformedError,
            RequestInvalidError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(JSON,),
            limit_bytes=MAX_BODY_BYTES,
            compressible=True,
            model=InstancePut,
            description="The whole instance. Unknown members are passed over.",
        ),
        envelope=True,
    ),
    tags=["Tasks"],
)
async def put_task_instance(request: HttpRequest, instance_id: InstanceId) -> StoredAnswer:
    """Store what another server says about an instance; what it leaves out stays as it is."""
    reading.check_session_id(instance_id)
    sent = await read_json(request, InstancePut)
    answer = await instances.put(
        services_of(request).database,
        services_of(request).ingest,
        instance_id,
        sent,
        await sender_of(request, sent.device),
    )
    stored = answer.events_received - answer.duplicates_skipped
    return StoredAnswer(
        data=Stored(id=instance_id, events_stored=stored, duplicates=answer.duplicates_skipped)
    )


@get(
    [_ONE, BELOW + _ONE],
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_READ,
        raises=(
            SessionIdInvalidError,
            InstanceUnknownError,
            SessionErasedError,
            SessionTooLongError,
            StoreUnavailable,
        ),
        envelope=True,
    ),
    tags=["Tasks"],
)
async def show_task_instance(request: HttpRequest, instance_id: InstanceId) -> InstanceAnswer:
    """Show an instance with its turns, whoever wrote them: a toy, a phone, another server."""
    services = services_of(request)
    try:
        record = await reading.readable(
            services.database, principal_of(request), instance_id, services.clock.now()
        )
    except SessionUnknownError as error:
        raise InstanceUnknownError(instance_id=instance_id) from error
    async with services.database.read() as connection:
        folded = await instances.load(connection, record)
    if folded is None:
        raise InstanceUnknownError(instance_id=instance_id)
    return InstanceAnswer(data=folded.instance)


@get(
    ["/task/instances", BELOW + "/task/instances"],
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
        envelope=True,
    ),
    tags=["Tasks"],
)
async def list_task_instances(
    request: HttpRequest,
    learner: FromQuery[str | None] = None,
    device: FromQuery[str | None] = None,
    since: Since = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> HeadsAnswer:
    """List instances: a device or learner sees its own, staff and services see all."""
    after_key = key_after(cursor)
    async with services_of(request).database.read() as connection:
        wanted = reading.Filter(
            learner_key=(await get_learner(connection, learner)).learner_key if learner else None,
            device_key=(await get_device(connection, device)).device_key if device else None,
            since=None if since is None else _moment(since),
        )
        narrowed = reading.own(principal_of(request), wanted)
        found = await instances.listed(connection, narrowed, after_key=after_key, limit=limit + 1)
    shown = found[:limit]
    more = len(found) > limit
    heads = Heads(
        items=[each.head for each in shown],
        next_cursor=cursor_after(shown[-1].session_key) if more else None,
    )
    return HeadsAnswer(data=heads)


async def read_json(request: HttpRequest, wanted: type[Wanted]) -> Wanted:
    """Return the body as `wanted`.

    Raises:
        MediaTypeError, BodyTooLargeError: and what else `read_body` raises.
        BodyMalformedError: it is not JSON, or nested too deeply.
        RequestInvalidError: something in it is not what it must be; `field` says where.
    """
    require_media_type(request, JSON)
    body = await read_body(request, MAX_BODY_BYTES)
    return await services_of(request).in_thread(_decoded, body, wanted)


async def sender_of(request: HttpRequest, device_id: str | None) -> instances.Sender:
    """Return who asks, and the device that a service names. Raises `DeviceUnknownError`."""
    principal = principal_of(request)
    if device_id is None or principal.kind != "service":
        return instances.Sender(principal=principal, device_key=None)
    async with services_of(request).database.read() as connection:
        found = await get_device(connection, device_id)
    return instances.Sender(principal=principal, device_key=found.device_key)


def _decoded(body: bytes, wanted: type[Wanted]) -> Wanted:
    try:
        return msgspec.json.decode(body, type=wanted)
    except msgspec.ValidationError as error:
        raise RequestInvalidError(field=_place(str(error))) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BodyMalformedError from error


def _place(message: str) -> str:
    """Return where in the body msgspec found fault; what it found may be somebody's words."""
    return "body" + message.rpartition("`$")[2].rstrip("`") if "`$" in message else "body"


def _moment(since: str) -> datetime:
    """Read a time as this API or as the others write it. Raises `TimeOutOfRangeError`."""
    try:
        if _MILLISECONDS.fullmatch(since):
            told = int(since)
            unit: dict[str, Any] = (
                {"seconds": told} if told < _SECONDS_BELOW else {"milliseconds": told}
            )
            return check_time(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(**unit))
        return check_time(datetime.fromisoformat(since))
    except (ValueError, OverflowError) as error:
        raise TimeOutOfRangeError(at=since) from error


route_handlers = [put_task_instance, show_task_instance, list_task_instances]
