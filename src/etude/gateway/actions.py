"""The three actions that a person or program may ask of a device, and what each carries.

Names of members are those of the board's own control messages (`docs/gateway-link.md`), so that
what is asked over HTTP goes to the device as it is.
"""

from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from etude.errors import InvalidError

MAX_PAYLOAD_BYTES: Final = 4096

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,31}$")]
"""The id of an app or a task (`docs/gateway-link.md §Asking something of a toy`)."""

FileName = Annotated[str, Meta(min_length=1, max_length=120, pattern="^[^\\u0000-\\u001f]+$")]


class Action(StrEnum):
    """What may be asked of a device (`docs/rules.md 23`)."""

    START_APP_TASK = "START_APP_TASK"
    SET_ALARM = "SET_ALARM"
    ENSURE_APP_DIRS = "ENSURE_APP_DIRS"


class ActionPayloadError(InvalidError):
    """The payload is not what the action carries; `reason` names the member."""

    code = "ACTION_PAYLOAD_INVALID"


class StartAppTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start a task; `loop` (times) and `name` (of a file) are the repeater's."""

    app: Name
    task: Name
    loop: Annotated[int, Meta(ge=1, le=100)] | None = None
    name: FileName | None = None


class SetAlarm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Set an alarm on the device, passed through as it is; perhaps with the task it is to start."""

    time: Annotated[str, Meta(pattern="^[0-9A-Za-z:+. -]{1,40}$")]
    app: Name | None = None
    task: Name | None = None


class EnsureAppDirs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make the folders of an app's tasks on the card, where they are missing."""

    app_id: Name
    tasks: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=32)]


Payload = StartAppTask | SetAlarm | EnsureAppDirs

_TYPES: Final[dict[Action, type[Payload]]] = {
    Action.START_APP_TASK: StartAppTask,
    Action.SET_ALARM: SetAlarm,
    Action.ENSURE_APP_DIRS: EnsureAppDirs,
}


def read_payload(action: Action, payload: object) -> Payload:
    """Check the payload of an action, given as JSON values; raises `ActionPayloadError`."""
    try:
        read: Payload = msgspec.convert(payload, _TYPES[action])
    except msgspec.ValidationError as error:
        raise ActionPayloadError(action=action, reason=str(error)[:200]) from error
    return read


def to_json(payload: Payload) -> dict[str, object]:
    """Return the payload as JSON values, without the members that were not given."""
    values: dict[str, object] = msgspec.to_builtins(payload)
    return {name: value for name, value in values.items() if value is not None}
