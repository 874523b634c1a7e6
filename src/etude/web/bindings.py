"""Binding devices over HTTP: the codes that they show, typing one, taking it back."""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import JSONBody
from msgspec import Meta

from etude.people.bind_codes import shown_codes
from etude.people.bindings import (
    BindRequest,
    bind_device,
    revoke_credential,
    revoke_credentials,
    unbind_device,
)
from etude.people.errors import (
    BindCodeExpiredError,
    BindCodeUnknownError,
    BindCodeUsedError,
    BindProofMissingError,
    DeviceBoundElsewhereError,
    DeviceNotBoundError,
    DeviceUnknownError,
    HolderOverlapError,
    IdInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    NameInvalidError,
)
from etude.people.names import MAX_ID, MAX_NAME
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.devices import PATH, DeviceId
from etude.web.services import HttpRequest, services_of

CODES: Final = "/api/v1/bind-codes"


class Bind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The code that a device shows, what to call it (its id without), and who has it from now on.

    `rebind` takes the place of another client id that the device is bound with.
    """

    code: Annotated[str, Meta(pattern="^[0-9]{6}$")]
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None = None
    learner_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)] | None = None
    rebind: bool = False


class BoundView(msgspec.Struct, frozen=True, kw_only=True):
    """A device that may connect from now on. `rebound`: it had another client id before."""

    device_id: str
    name: str
    rebound: bool
    learner_id: str | None


class CodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A code that can be typed. `board` and `version` are what the device says of itself."""

    code: str
    device_id: str
    board: str
    version: str
    expires_at: datetime


class Revocation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which credential of the device to refuse, by its id in the gateway's log; null: all."""

    credential_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)] | None = None


@get(
    CODES,
    opt=declared(roles=("server",), needs=Scope.OPERATE, raises=(StoreUnavailable,)),
    tags=["People"],
)
async def show_codes(request: HttpRequest) -> list[CodeView]:
    """List the codes that unbound devices show now, the newest first, at most 200."""
    services = services_of(request)
    async with services.database.read() as connection:
        shown = await shown_codes(connection, services.clock.now())
    return [CodeView(**msgspec.structs.asdict(each)) for each in shown]


@post(
    PATH + "/bind",
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            BindCodeUnknownError,
            BindCodeExpiredError,
            BindCodeUsedError,
            BindProofMissingError,
            DeviceBoundElsewhereError,
            LearnerUnknownError,
            LearnerErasedError,
            HolderOverlapError,
            NameInvalidError,
            StoreUnavailable,
        ),
    ),
    tags=["People"],
)
async def bind(request: HttpRequest, data: JSONBody[Bind]) -> BoundView:
    """Bind the device that shows a code: it may connect, and is registered if it is new.

    A code binds once. Whoever else types it is told `409 BIND_CODE_USED`.
    """
    services = services_of(request)
    wanted = BindRequest(**msgspec.structs.asdict(data))
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        bound = await bind_device(
            work, wanted, actor=principal_of(request), now=services.clock.now()
        )
    return BoundView(
        device_id=bound.device.device_id,
        name=bound.device.name,
        rebound=bound.rebound,
        learner_id=bound.learner_id,
    )


@post(
    PATH + "/{device_id:str}/unbind",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceUnknownError, DeviceNotBoundError, StoreUnavailable),
    ),
    tags=["People"],
)
async def unbind(request: HttpRequest, device_id: DeviceId) -> Response[None]:
    """Let the device in no more: it is disconnected within a second and shows a code again."""
    services = services_of(request)
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        await unbind_device(work, device_id, actor=principal_of(request), now=services.clock.now())
    return Response(None, status_code=204)


@post(
    PATH + "/{device_id:str}/revoke-credentials",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceUnknownError, DeviceNotBoundError, IdInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def revoke(
    request: HttpRequest, device_id: DeviceId, data: JSONBody[Revocation]
) -> Response[None]:
    """Refuse one or all credentials of a bound device; it gets another at its next start."""
    services, actor = services_of(request), principal_of(request)
    now = services.clock.now()
    async with services.database.transaction() as work:
        work.after_commit(services.links.wake)
        if data.credential_id is None:
            await revoke_credentials(work, device_id, actor=actor, now=now)
        else:
            await revoke_credential(work, device_id, data.credential_id, actor=actor, now=now)
    return Response(None, status_code=204)


route_handlers = [show_codes, bind, unbind, revoke]
