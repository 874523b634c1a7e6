"""Actions on one device, by whichever way reaches it (`docs/gateway-link.md §Ways`).

A connected device is asked over its own connection; one that is not, or that cannot do it there,
over the broker if there is one. Nobody waits here for longer than the time-outs of the two ways.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec
import structlog

from etude.gateway.actions import Action, EnsureAppDirs, Payload, SetAlarm, StartAppTask, to_json
from etude.gateway.connection import DeviceConnection
from etude.gateway.ports import CloseReason, ToolFailure

ENSURE_APP_TOOL: Final = "self.sd.ensure_app"
PLAY_TOOL: Final = "self.mp3.play"
START_TOOL: Final = "self.app.start_task"
ALARM_TOOL: Final = "self.alarm.set"
TOOL_S: Final = 10.0

REFUSED: Final = 1
CANNOT: Final = 2
INTERRUPTED: Final = 3

log = structlog.get_logger("etude.gateway")


class Ack(msgspec.Struct, frozen=True, kw_only=True):
    """The device or this gateway has answered: `code` 0 = done, anything else = refused."""

    code: int = 0
    message: str = ""


class Timeout(msgspec.Struct, frozen=True):
    """It was asked and did not answer in time: perhaps it was done."""


class Offline(msgspec.Struct, frozen=True):
    """There is no way to the device now; nothing was asked of it."""


Outcome = Ack | Timeout | Offline


class Broker(Protocol):
    """The way over a broker; `etude.gateway.mqtt` is it, and without one `NoBroker`."""

    async def send_action(
        self, device_id: str, action: Action, payload: Payload, msg_id: str
    ) -> Outcome:
        """Ask the device; never raises."""


class NoBroker:
    """There is no broker: no device is reached."""

    async def send_action(
        self,
        device_id: str,  # noqa: ARG002 - nobody is reached
        action: Action,  # noqa: ARG002 - nobody is reached
        payload: Payload,  # noqa: ARG002 - nobody is reached
        msg_id: str,  # noqa: ARG002 - nobody is reached
    ) -> Outcome:
        """Return `Offline`."""
        return Offline()


class Control:
    """Asks devices. Lives as long as the process, belongs to one event loop."""

    def __init__(
        self,
        connection: Callable[[str], DeviceConnection | None],
        broker: Broker | None = None,
    ) -> None:
        """Ask over `connection` of a device, else over `broker`."""
        self._connection = connection
        self._broker = broker or NoBroker()

    async def send_action(
        self, device_id: str, action: Action, payload: Payload, msg_id: str
    ) -> Outcome:
        """Ask one thing of a device and return what it came to, whatever the device does.

        The broker is asked when the connection is no way for it, or breaks before an answer.
        """
        device = self._connection(device_id)
        outcome = Offline() if device is None else await self._over_connection(device, payload)
        if not isinstance(outcome, Offline):
            return outcome
        outcome = await self._broker.send_action(device_id, action, payload, msg_id)
        if not isinstance(outcome, Offline) or device is None:
            return outcome
        return self._by_itself(device, payload)

    def disconnect(self, device_id: str, connection_id: str) -> None:
        """End one connection of a device, because a newer one is at another gateway."""
        device = self._connection(device_id)
        if device is not None and device.connection_id == connection_id:
            device.close(CloseReason.REPLACED)

    async def _over_connection(self, device: DeviceConnection, payload: Payload) -> Outcome:
        tools = device.tools
        if tools is None:  # connected a moment ago: it is not known what it can do
            return Offline()
        if isinstance(payload, EnsureAppDirs):
            if ENSURE_APP_TOOL not in tools:
                return Ack(code=CANNOT, message="the device has no card")
            return await _ensure_app(device, payload)
        tool = START_TOOL if isinstance(payload, StartAppTask) else ALARM_TOOL
        if tool in tools:
            return await _call(device, tool, to_json(payload))
        if isinstance(payload, StartAppTask) and PLAY_TOOL not in tools:
            return _start(device, payload)
        return Offline()

    def _by_itself(self, device: DeviceConnection, payload: Payload) -> Outcome:
        """What is left for a connected device without a broker: this server starts its task."""
        if isinstance(payload, StartAppTask) and device.tools is not None:
            return _start(device, payload)
        if isinstance(payload, SetAlarm) and isinstance(self._broker, NoBroker):
            return Ack(code=CANNOT, message="the device has no alarm, and there is no broker")
        return Offline()


def _start(device: DeviceConnection, payload: StartAppTask) -> Outcome:
    """Start the task from here: practice plays to the device, from its card or by streaming."""
    wanted = {"loop": payload.loop, "name": payload.name}
    arguments = {name: value for name, value in wanted.items() if value is not None}
    if not device.start_task(payload.app, payload.task, arguments):
        return Offline()
    return Ack()


async def _ensure_app(device: DeviceConnection, payload: EnsureAppDirs) -> Outcome:
    for task_id in payload.tasks:
        arguments = {"app_id": payload.app_id, "task_id": task_id}
        outcome = await _call(device, ENSURE_APP_TOOL, arguments)
        if outcome != Ack():
            return outcome
    return Ack()


async def _call(device: DeviceConnection, tool: str, arguments: Mapping[str, object]) -> Outcome:
    result = await device.call_tool(tool, arguments, TOOL_S)
    match result.failure:
        case None:
            return Ack()
        case ToolFailure.TIMEOUT:
            return Timeout()
        case ToolFailure.CLOSED:
            return Offline()
        case ToolFailure.UNKNOWN_TOOL | ToolFailure.REFUSED:
            return Ack(code=REFUSED, message=result.message)
