"""The device's tools: JSON-RPC 2.0 inside messages of type `mcp`.

The device is the server, we are its client. Replies come in through `receive`, which the receive
loop calls; nothing in there waits. A missing reply is normal (some clients answer nothing to a tool
they do not have), so every request has its time-out; late, doubled and unknown replies are ignored.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
import structlog

from etude.errors import EtudeError
from etude.gateway.ports import Tool, ToolFailure, ToolResult

PROTOCOL: Final = "2024-11-05"
FIRST_ID: Final = 1_000_000
"""Ids are numbers (firmware ignores texts), far from those that other servers used before us."""
INITIALIZE_S: Final = 10.0
PAGE_S: Final = 10.0
MOST_PAGES: Final = 32
MOST_TOOLS: Final = 256
_NAME_CHARACTERS: Final = 128
_DESCRIPTION_CHARACTERS: Final = 2_000
_MESSAGE_CHARACTERS: Final = 500

_log = structlog.get_logger(__name__)


class _Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a request came to: `result`, or why there is none."""

    result: Mapping[str, Any] | None = None
    failure: ToolFailure | None = None
    message: str = ""


class McpClient:
    """The tools of one connection.

    Args:
        send: sends one JSON-RPC message; raises `EtudeError` if it is too long for a device.
        listed: called once the tools are known.
    """

    def __init__(
        self, send: Callable[[Mapping[str, Any]], None], listed: Callable[[], None]
    ) -> None:
        """Nothing is sent before `start`."""
        self._send = send
        self._listed = listed
        self._loop = asyncio.get_running_loop()
        self._ids = itertools.count(FIRST_ID)
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._tools: Mapping[str, Tool] | None = None
        self._closed = False

    @property
    def tools(self) -> Mapping[str, Tool] | None:
        """The device's tools by name; None until they were listed, or asked for in vain."""
        return self._tools

    @property
    def calling(self) -> bool:
        """Whether a request waits for its reply."""
        return bool(self._waiting)

    def start(self) -> None:
        """Greet the device and list its tools, in a task of its own."""
        self._task(self._introduce())

    def start_without(self) -> None:
        """Know at once that the device has no tools."""
        self._tools = {}
        self._listed()

    def call(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float
    ) -> "asyncio.Task[ToolResult]":
        """See `Device.call_tool`."""
        return self._task(self._call(name, arguments, timeout_s))

    def receive(self, payload: Mapping[str, Any]) -> None:
        """Take a message of the device. Its notifications and requests are ignored."""
        if "method" in payload:
            return
        waiting = self._waiting.get(_id(payload.get("id")))
        if waiting is None or waiting.done():
            return
        waiting.set_result(_reply(payload))

    def close(self) -> None:
        """Fail what waits; calls from now on fail at once."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(_Reply(failure=ToolFailure.CLOSED))

    def _task(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = self._loop.create_task(work)
        self._tasks.add(task)  # the loop itself keeps only weak references
        task.add_done_callback(self._tasks.discard)
        return task

    async def _call(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> ToolResult:
        if not self._closed and self._tools is not None and name not in self._tools:
            return ToolResult(failure=ToolFailure.UNKNOWN_TOOL)
        params = {"name": name, "arguments": dict(arguments)}
        reply = await self._request("tools/call", params, timeout_s)
        if reply.result is None:
            return ToolResult(failure=reply.failure, message=reply.message)
        text = _text(reply.result)
        if reply.result.get("isError") is True:
            return ToolResult(failure=ToolFailure.REFUSED, message=text[:_MESSAGE_CHARACTERS])
        return ToolResult(text=text)

    async def _introduce(self) -> None:
        """Initialise and list. A device that does not answer the first may answer the second.

        One that answers nothing at all counts as one without tools, so that nobody waits for ever.
        """
        vision = {"url": "", "token": ""}  # a third-party client answers nothing without them
        params = {
            "protocolVersion": PROTOCOL,
            "capabilities": {"vision": vision},
            "clientInfo": {"name": "etude", "version": "1"},
        }
        await self._request("initialize", params, INITIALIZE_S)
        if self._closed:
            return
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools = await self._list()
        if tools is None:  # firmware answers nothing while it waits for its sound to end
            tools = await self._list()
        if not self._closed:
            self._tools = tools or {}
            self._listed()

    async def _list(self) -> Mapping[str, Tool] | None:
        """Return what the device lists, None if it lists nothing; a broken list counts so far."""
        tools: dict[str, Tool] = {}
        cursor = ""
        for page in range(MOST_PAGES):
            params = {"cursor": cursor, "withUserTools": False}
            reply = await self._request("tools/list", params, PAGE_S)
            if reply.result is None:
                _log.info("tools not listed", action="mcp.list", page=page, failure=reply.failure)
                return tools if page else None
            for tool in _tools(reply.result):
                if len(tools) < MOST_TOOLS:
                    tools.setdefault(tool.name, tool)
            following = reply.result.get("nextCursor")
            if not isinstance(following, str) or following in {"", cursor}:
                break
            cursor = following
        return tools

    async def _request(self, method: str, params: Mapping[str, Any], timeout_s: float) -> _Reply:
        if self._closed:
            return _Reply(failure=ToolFailure.CLOSED)
        number = next(self._ids)
        waiting: asyncio.Future[_Reply] = self._loop.create_future()
        self._waiting[number] = waiting
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            async with asyncio.timeout(timeout_s):
                return await waiting
        except TimeoutError:
            return _Reply(failure=ToolFailure.TIMEOUT)
        except (EtudeError, TypeError, ValueError) as error:  # too long, or no JSON at all
            return _Reply(failure=ToolFailure.REFUSED, message=type(error).__name__)
        finally:
            del self._waiting[number]


def _id(value: object) -> int:
    """Return a reply's id as a number, -1 if it is none of ours; some clients quote it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:  # noqa: PLR2004 - digits of an int32
        return int(value)
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return int(value) if whole else -1  # type: ignore[call-overload] # `whole` says so


def _reply(payload: Mapping[str, Any]) -> _Reply:
    result = payload.get("result")
    if isinstance(result, dict):
        return _Reply(result=result)
    error = payload.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    message = said[:_MESSAGE_CHARACTERS] if isinstance(said, str) else ""
    unknown = message.casefold().startswith("unknown tool")
    failure = ToolFailure.UNKNOWN_TOOL if unknown else ToolFailure.REFUSED
    return _Reply(failure=failure, message=message)


def _text(result: Mapping[str, Any]) -> str:
    """Return the texts of a result; pictures and other content are left out."""
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _tools(result: Mapping[str, Any]) -> list[Tool]:
    """Return the tools of a page; an entry without a usable name is left out."""
    entries = result.get("tools")
    found = (_tool(entry) for entry in entries) if isinstance(entries, list) else ()
    return [tool for tool in found if tool]


def _tool(entry: object) -> Tool | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(name, str):
        return None
    if not 0 < len(name) <= _NAME_CHARACTERS:
        return None
    description = entry.get("description")
    schema = entry.get("inputSchema")
    return Tool(
        name=name,
        description=description[:_DESCRIPTION_CHARACTERS] if isinstance(description, str) else "",
        input_schema=schema if isinstance(schema, dict) else {},
    )
