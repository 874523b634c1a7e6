"""Web and gateways linked in one process: real sockets, no device wire.

For tests of the link and of actions. `serving` is what `etude web` runs, on a free port; `Station`
is what a gateway has of the link, with toys that are only known by what is asked of them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self, cast

import msgspec
import uvicorn

from etude.cli.listening import listen
from etude.cli.stopping import end
from etude.clock import SystemClock
from etude.gateway.command_ledger import CommandLedger
from etude.gateway.commands import CommandRunner
from etude.gateway.connection import DeviceConnection
from etude.gateway.control import Broker, Control
from etude.gateway.link import ChangeHandler, GatewayLink
from etude.gateway.link_messages import Hello
from etude.gateway.ports import CloseReason, Tool, ToolResult
from etude.web.app import create_app
from etude.web.main import configure
from etude.web.services import Services

PATIENCE_S: Final = 60.0


@asynccontextmanager
async def serving(services: Services, port: int = 0) -> AsyncIterator[int]:
    """Serve the application in this loop while the block runs; give the port."""
    server = uvicorn.Server(configure(create_app(services)))
    listener = listen("127.0.0.1", port)
    task = asyncio.create_task(server._serve([listener]))  # noqa: SLF001 - `serve` takes the process' signals
    await until(lambda: server.started)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task


async def until(holds: Callable[[], bool]) -> None:
    """Return once `holds()`; `TimeoutError` after a minute, which only a failing test sees."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


class Toy:
    """A connected device as the control of actions sees it; notes what is asked of it."""

    def __init__(
        self, device_id: str, connection_id: str, *tools: str, answer: ToolResult | None = None
    ) -> None:
        """Connect it, with these tools; every call of one has `answer`."""
        self.device_id = device_id
        self.connection_id = connection_id
        self.tools: Mapping[str, Tool] | None = {name: Tool(name=name) for name in tools}
        self.answer = answer or ToolResult(text="true")
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self.started: list[tuple[str, str, Mapping[str, Any]]] = []
        self.closed: CloseReason | None = None

    def call_tool(
        self, name: str, arguments: Mapping[str, Any], _timeout_s: float = 15.0
    ) -> "asyncio.Task[ToolResult]":
        """Note a call."""
        self.called.append((name, arguments))

        async def reply() -> ToolResult:
            return self.answer

        return asyncio.create_task(reply())

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> bool:
        """Note a start."""
        self.started.append((app_id, task_id, arguments))
        return True

    def close(self, reason: CloseReason) -> None:
        """Note the end."""
        self.closed = reason


class Station:
    """A gateway's part of the link, with its toys. `async with` runs it."""

    def __init__(
        self, name: str, port: int, token: str, folder: Path, broker: Broker | None = None
    ) -> None:
        """Describe a gateway called `name` that links to web on `port`."""
        self.toys: dict[str, Toy] = {}
        self.snapshots: dict[str, list[bytes]] = {}
        self.changes: list[tuple[str, bytes]] = []
        self.standing: list[tuple[str, msgspec.Struct]] = []
        self._ledger = CommandLedger(folder / name / "commands.jsonl")
        control = Control(self._connection, broker)
        self.runner = CommandRunner(control, self._ledger, SystemClock())
        self.link = GatewayLink(
            f"http://127.0.0.1:{port}",
            token=lambda: token,
            hello=Hello(gateway_id=name, reaches_offline=broker is not None),
            runner=self.runner,
            handlers={kind: self._handler(kind) for kind in ("colour", "shape")},
            standing=lambda: list(self.standing),
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Read the ledger, and keep the link up."""
        self._ledger.open(SystemClock().now().timestamp())
        self._task = asyncio.create_task(self.link.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        await self.die()

    async def die(self) -> None:
        """End at once; what is under way is not answered any more."""
        if self._task is not None:
            await end(self._task)
            self._task = None
            self._ledger.close()

    def meet(self, toy: Toy) -> Toy:
        """Let a toy connect here."""
        self.toys[toy.device_id] = toy
        self.link.connected(toy.device_id, toy.connection_id)
        return toy

    def part(self, toy: Toy) -> None:
        """Let a toy go."""
        del self.toys[toy.device_id]
        self.link.left(toy.device_id, toy.connection_id)

    def _connection(self, device_id: str) -> DeviceConnection | None:
        return cast("DeviceConnection | None", self.toys.get(device_id))

    def _handler(self, kind: str) -> ChangeHandler:
        async def replace(items: Sequence[msgspec.Raw]) -> None:
            self.snapshots[kind] = [bytes(item) for item in items]

        async def apply(items: Sequence[msgspec.Raw]) -> None:
            self.changes += [(kind, bytes(item)) for item in items]

        return ChangeHandler(replace=replace, apply=apply)
