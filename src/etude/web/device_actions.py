"""What may be asked of a device, and where it is connected, over HTTP."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, get, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta

from etude.gateway.actions import (
    MAX_PAYLOAD_BYTES,
    Action,
    ActionPayloadError,
    read_payload,
    to_json,
)
from etude.people import audit
from etude.people.commands import (
    Command,
    CommandState,
    NewCommand,
    add_command,
    get_command,
)
from etude.people.devices import get_device
from etude.people.errors import CommandUnknownError, DeviceUnknownError, MessageIdTakenError
from etude.people.presence import presence_of
from etude.people.records import Subject
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.devices import PATH, DeviceId
from etude.web.services import HttpRequest, services_of

MSG_ID_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
# A task that starts minutes late would surprise a child; folders may wait for a toy to be charged.
WITHIN: Final = {
    Action.START_APP_TASK: timedelta(seconds=60),
    Action.SET_ALARM: timedelta(minutes=15),
    Action.ENSURE_APP_DIRS: timedelta(hours=24),
}

MsgId = Annotated[str, PathParameter(description="The action's id.")]


class NewAction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to ask of a device. Without `msg_id` one is made."""

    action: Action
    payload: dict[str, Any]
    msg_id: Annotated[str, Meta(min_length=1, max_length=64, pattern=MSG_ID_PATTERN)] | None = None


class ActionView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an action. `code` and `message` are the answer of device or gateway."""

    msg_id: str
    device_id: str
    action: Action
    payload: dict[str, Any]
    state: CommandState
    created_at: datetime
    expires_at: datetime
    settled_at: datetime | None
    code: int | None
    message: str | None


class PresenceView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a device is connected now, since when, and to which gateway."""

    online: bool
    gateway_id: str | None
    since: datetime | None


@post(
    PATH + "/{device_id:str}/actions",
    status_code=202,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceUnknownError, MessageIdTakenError, ActionPayloadError, StoreUnavailable),
    ),
    tags=["Devices"],
)
async def create_action(
    request: HttpRequest, device_id: DeviceId, data: JSONBody[NewAction]
) -> Response[ActionView]:
    """Ask something of a device.

    The answer comes at once; what became of it is at `Location`. The same `msg_id` with the same
    content asks nothing twice and has the same answer, with the state as it is by then.
    """
    services, now = services_of(request), services_of(request).clock.now()
    payload = to_json(read_payload(data.action, data.payload))
    text = msgspec.json.encode(payload, order="sorted")
    if len(text) > MAX_PAYLOAD_BYTES:
        raise ActionPayloadError(action=data.action, reason=f"over {MAX_PAYLOAD_BYTES} bytes")
    msg_id = data.msg_id or services.ids.new()
    async with services.database.transaction() as work:
        device = await get_device(work.connection, device_id)
        wanted = NewCommand(
            msg_id=msg_id,
            device_key=device.device_key,
            action=data.action,
            payload=text.decode(),
            within=WITHIN[data.action],
        )
        if await add_command(work, wanted, now):
            subject: Subject = ("device", device.device_key)
            actor = principal_of(request)
            detail = {"action": data.action.lower()}
            await audit.record(
                work, actor, "device.action", subject=subject, now=now, detail=detail
            )
        command = await get_command(work.connection, device.device_key, msg_id, now)
        work.after_commit(services.links.wake)
    location = f"{PATH}/{device_id}/actions/{msg_id}"
    return Response(_view(command), status_code=202, headers={"Location": location})


@get(
    PATH + "/{device_id:str}/actions/{msg_id:str}",
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(DeviceUnknownError, CommandUnknownError, StoreUnavailable),
    ),
    tags=["Devices"],
)
async def show_action(request: HttpRequest, device_id: DeviceId, msg_id: MsgId) -> ActionView:
    """Show what became of an action."""
    services = services_of(request)
    async with services.database.read() as connection:
        device = await get_device(connection, device_id)
        now = services.clock.now()
        return _view(await get_command(connection, device.device_key, msg_id, now))


@get(
    PATH + "/{device_id:str}/presence",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(DeviceUnknownError, StoreUnavailable)
    ),
    tags=["Devices"],
)
async def show_presence(request: HttpRequest, device_id: DeviceId) -> PresenceView:
    """Show whether a device is connected now."""
    services = services_of(request)
    async with services.database.read() as connection:
        device = await get_device(connection, device_id)
        found = await presence_of(connection, device.device_key, services.clock.now())
    return PresenceView(
        online=found is not None,
        gateway_id=found.gateway_id if found else None,
        since=found.since if found else None,
    )


def _view(command: Command) -> ActionView:
    return ActionView(
        msg_id=command.msg_id,
        device_id=command.device_id,
        action=Action(command.action),
        payload=msgspec.json.decode(command.payload),
        state=command.state,
        created_at=command.created_at,
        expires_at=command.expires_at,
        settled_at=command.settled_at,
        code=command.code,
        message=command.message,
    )


route_handlers = [create_action, show_action, show_presence]
