"""Devices and their holders over HTTP."""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta

from etude.people import audit
from etude.people.bindings import bound_among, mark_device
from etude.people.devices import add_device, get_device, list_devices
from etude.people.errors import (
    CursorInvalidError,
    DeviceExistsError,
    DeviceUnknownError,
    HolderIntervalError,
    HolderMissingError,
    HolderOverlapError,
    IdInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    NameInvalidError,
    TimeOutOfRangeError,
)
from etude.people.holders import hold_device, list_holdings, release_device
from etude.people.names import ID_PATTERN, MAX_DEVICE_ID, MAX_ID, MAX_NAME
from etude.people.paging import DEFAULT_LIMIT
from etude.people.records import Device, Holding, Subject
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/devices"
DeviceId = Annotated[str, PathParameter(description="The device's id, percent-encoded.")]
Instant = Annotated[datetime, Meta(tz=True, description="RFC 3339 with an offset, from 1970.")]


class NewDevice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device to register. Without `device_id` (serial number, hardware address) one is made."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    device_id: (
        Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID, pattern=ID_PATTERN)] | None
    ) = None


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """A device. `name` says which one it is, not whose; `bound`: it may connect to a gateway."""

    device_id: str
    name: str
    created_at: datetime
    bound: bool = False


class DevicePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list of devices, oldest first."""

    items: list[DeviceView]
    next_cursor: str | None


class NewHolding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to have the device, from when until just before when (null: until further notice)."""

    learner_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)]
    starts_at: Instant
    ends_at: Instant | None = None


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From when on nobody has the device."""

    at: Instant


class HoldingView(msgspec.Struct, frozen=True, kw_only=True):
    """Who had the device from `starts_at` until just before `ends_at` (null: still).

    `learner_id` is null if the learner was erased since.
    """

    learner_id: str | None
    starts_at: datetime
    ends_at: datetime | None


@post(
    PATH,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceExistsError, IdInvalidError, NameInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def create_device(request: HttpRequest, data: JSONBody[NewDevice]) -> Response[DeviceView]:
    """Register a device."""
    services, now = services_of(request), services_of(request).clock.now()
    async with services.database.transaction() as work:
        made = await add_device(
            work.connection,
            device_id=data.device_id or services.ids.new(),
            name=data.name,
            now=now,
        )
        subject: Subject = ("device", made.device_key)
        await audit.record(work, principal_of(request), "device.added", subject=subject, now=now)
    return Response(_view(made), status_code=201, headers={"Location": f"{PATH}/{made.device_id}"})


@get(
    PATH,
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(CursorInvalidError, StoreUnavailable)
    ),
    tags=["People"],
)
async def show_devices(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> DevicePage:
    """List the devices."""
    async with services_of(request).database.read() as connection:
        page = await list_devices(connection, cursor=cursor, limit=limit)
        bound = await bound_among(connection, [each.device_key for each in page.items])
    return DevicePage(
        items=[_view(each, bound=each.device_key in bound) for each in page.items],
        next_cursor=page.next_cursor,
    )


@get(
    PATH + "/{device_id:str}",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(DeviceUnknownError, StoreUnavailable)
    ),
    tags=["People"],
)
async def show_device(request: HttpRequest, device_id: DeviceId) -> DeviceView:
    """Show a device."""
    async with services_of(request).database.read() as connection:
        device = await get_device(connection, device_id)
        bound = await bound_among(connection, [device.device_key])
    return _view(device, bound=device.device_key in bound)


@post(
    PATH + "/{device_id:str}/holders",
    status_code=201,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            DeviceUnknownError,
            LearnerUnknownError,
            LearnerErasedError,
            HolderOverlapError,
            HolderIntervalError,
            TimeOutOfRangeError,
            StoreUnavailable,
        ),
    ),
    tags=["People"],
)
async def create_holding(
    request: HttpRequest, device_id: DeviceId, data: JSONBody[NewHolding]
) -> Response[HoldingView]:
    """Give a device to a learner for a time.

    A holding that is still open and began earlier ends at `starts_at`; any other overlap is 409 and
    names who has the device, and when. A session is whose device it was at the session's time.
    """
    services, actor = services_of(request), principal_of(request)
    async with services.database.transaction() as work:
        held = await hold_device(
            work.connection,
            device_id=device_id,
            learner_id=data.learner_id,
            starts_at=data.starts_at,
            ends_at=data.ends_at,
        )
        device = await get_device(work.connection, device_id)
        await audit.record_all(
            work,
            actor,
            "device.held",
            subjects=[("device", device.device_key), ("learner", held.learner_key)],
            now=services.clock.now(),
            detail={"device": device.device_key, "learner": held.learner_key},
        )
        await mark_device(work, device.device_key, services.clock.now())
    location = f"{PATH}/{device_id}/holders"
    return Response(_holding(held), status_code=201, headers={"Location": location})


@get(
    PATH + "/{device_id:str}/holders",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(DeviceUnknownError, StoreUnavailable)
    ),
    tags=["People"],
)
async def show_holdings(request: HttpRequest, device_id: DeviceId) -> list[HoldingView]:
    """List who had a device, in order of time."""
    async with services_of(request).database.read() as connection:
        device = await get_device(connection, device_id)
        holdings = await list_holdings(connection, device.device_key)
    return [_holding(each) for each in holdings]


@post(
    PATH + "/{device_id:str}/release",
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceUnknownError, HolderMissingError, TimeOutOfRangeError, StoreUnavailable),
    ),
    tags=["People"],
)
async def release(
    request: HttpRequest, device_id: DeviceId, data: JSONBody[Release]
) -> HoldingView:
    """End the open holding of a device: nobody has it from then on."""
    services = services_of(request)
    async with services.database.transaction() as work:
        ended = await release_device(work.connection, device_id, data.at)
        device = await get_device(work.connection, device_id)
        await audit.record_all(
            work,
            principal_of(request),
            "device.released",
            subjects=[("device", device.device_key), ("learner", ended.learner_key)],
            now=services.clock.now(),
            detail={"device": device.device_key, "learner": ended.learner_key},
        )
        await mark_device(work, device.device_key, services.clock.now())
    return _holding(ended)


def _view(device: Device, *, bound: bool = False) -> DeviceView:
    return DeviceView(
        device_id=device.device_id, name=device.name, created_at=device.created_at, bound=bound
    )


def _holding(holding: Holding) -> HoldingView:
    return HoldingView(
        learner_id=holding.learner_id, starts_at=holding.starts_at, ends_at=holding.ends_at
    )


route_handlers = [
    create_device,
    show_devices,
    show_device,
    create_holding,
    show_holdings,
    release,
]
