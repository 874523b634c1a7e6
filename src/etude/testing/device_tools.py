"""The device's MCP server, as strict as the firmware's (`docs/gateway.md §Tools`).

Ids must be numbers in the range of an int32, others get no answer at all; notifications are
dropped; a page of `tools/list` holds 8,000 bytes and names the next tool as its cursor; arguments
are checked against the declared types; an error has a message and no code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

PAGE_BYTES: Final = 8_000
_INT32_MAX: Final = 2**31 - 1
_INT32_MIN: Final = -(2**31)

Arguments = Mapping[str, Any]


class ToolRefusedError(Exception):
    """The tool does not do it; the text is what the server is told."""


class Property(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a tool: its type, and its default (None = it must be given)."""

    type: str
    default: bool | int | str | None = None
    minimum: int | None = None
    maximum: int | None = None


class DeviceTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool and what it does; `run` returns the text of the result."""

    name: str
    description: str
    run: Callable[[Arguments], str]
    properties: Mapping[str, Property] = {}
    user_only: bool = False

    def described(self) -> dict[str, Any]:
        """Return the tool as `tools/list` shows it."""
        shown: dict[str, Any] = {}
        for name, one in self.properties.items():
            limits = {"minimum": one.minimum, "maximum": one.maximum, "default": one.default}
            shown[name] = {"type": one.type} | {k: v for k, v in limits.items() if v is not None}
        schema: dict[str, Any] = {"type": "object", "properties": shown}
        required = [name for name, one in self.properties.items() if one.default is None]
        if required:
            schema["required"] = required
        return {"name": self.name, "description": self.description, "inputSchema": schema}


_PYTHON: Final[Mapping[str, type]] = {"boolean": bool, "integer": int, "string": str}


class ToolServer:
    """Answers JSON-RPC requests.

    Attributes:
        calls: name and arguments of every `tools/call` that was understood, in order.
    """

    def __init__(self, tools: Sequence[DeviceTool], board: str = "etude-simulated") -> None:
        """Offer `tools`, in this order."""
        self._tools = {tool.name: tool for tool in tools}
        self._board = board
        self.calls: list[tuple[str, Arguments]] = []

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Handle one request; None = the firmware stays silent."""
        method, number = request.get("method"), request.get("id")
        if request.get("jsonrpc") != "2.0" or not isinstance(method, str):
            return None
        if method.startswith("notifications"):
            return None
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        if not _INT32_MIN <= number <= _INT32_MAX:
            return None
        params = request.get("params")
        try:
            said = {"result": self._handle(method, params if isinstance(params, dict) else {})}
        except ToolRefusedError as refused:
            said = {"error": {"message": str(refused)}}
        return {"jsonrpc": "2.0", "id": int(number), **said}

    def _handle(self, method: str, params: Arguments) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": self._board, "version": "2.4.2"},
            }
        if method == "tools/list":
            return self._page(str(params.get("cursor", "")), params.get("withUserTools") is True)
        if method == "tools/call":
            return self._call(params)
        reason = f"Method not implemented: {method}"
        raise ToolRefusedError(reason)

    def _page(self, cursor: str, user_tools: bool) -> dict[str, Any]:  # noqa: FBT001 - as on the wire
        listed = [tool for tool in self._tools.values() if user_tools or not tool.user_only]
        names = [tool.name for tool in listed]
        start = names.index(cursor) if cursor in names else 0
        page: list[dict[str, Any]] = []
        size = 0
        for tool in listed[start:]:
            shown = tool.described()
            size += len(msgspec.json.encode(shown)) + 1
            if page and size > PAGE_BYTES:
                return {"tools": page, "nextCursor": tool.name}
            page.append(shown)
        return {"tools": page}

    def _call(self, params: Arguments) -> dict[str, Any]:
        name, given = params.get("name"), params.get("arguments") or {}
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(given, dict):
            reason = f"Unknown tool: {name}"
            raise ToolRefusedError(reason)
        arguments = {key: _checked(key, one, given) for key, one in tool.properties.items()}
        self.calls.append((tool.name, arguments))
        content = [{"type": "text", "text": tool.run(arguments)}]
        return {"content": content, "isError": False}


def _checked(name: str, declared: Property, given: Arguments) -> bool | int | str:
    value = given.get(name, declared.default)
    if value is None:
        reason = f"Missing valid argument: {name}"
        raise ToolRefusedError(reason)
    if type(value) is not _PYTHON[declared.type]:
        reason = f"Invalid type of argument: {name}"
        raise ToolRefusedError(reason)
    low, high = declared.minimum, declared.maximum
    if isinstance(value, int) and (
        (low is not None and value < low) or (high is not None and value > high)
    ):
        reason = f"Value of {name} is out of range"
        raise ToolRefusedError(reason)
    assert isinstance(value, bool | int | str)  # noqa: S101 - the three types of the table
    return value


def stock_tools() -> tuple[DeviceTool, ...]:
    """Return what every board of the stock firmware has."""
    percent = Property(type="integer", minimum=0, maximum=100)
    return (
        DeviceTool(
            name="self.get_device_status",
            description="The real-time state of the device: volume, battery, network.",
            run=lambda _: '{"audio_speaker":{"volume":70},"network":{"type":"wifi"}}',
        ),
        DeviceTool(
            name="self.audio_speaker.set_volume",
            description="Set the volume of the speaker.",
            run=lambda _: "true",
            properties={"volume": percent},
        ),
        DeviceTool(
            name="self.reboot",
            description="Reboot the system.",
            run=lambda _: "true",
            user_only=True,
        ),
    )
