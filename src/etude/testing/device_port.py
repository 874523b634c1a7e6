"""The device port on a free port, what its practices were told, and raw clients.

async def body(port: DevicePort) -> None:
    async with port.device("aa:bb") as toy:
        await toy.send(b"voice")

run_port(body)
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect

from etude.gateway.bounds import ConnectionRules
from etude.gateway.handshake import Handshake, Refusal
from etude.gateway.ports import Device
from etude.gateway.websocket import DeviceServer
from etude.testing.clocks import CountingIds
from etude.testing.memory_wire import NotingPractice

PATIENCE_S: Final = 30.0


class DevicePort:
    """A running server and the practices it has made."""

    def __init__(self, rules: ConnectionRules | None = None) -> None:
        """Let everybody in, until `refusal` is set."""
        self.practices: list[NotingPractice] = []
        self.refusal: Refusal | None = None
        self.seen: list[Handshake] = []
        self.server = DeviceServer(
            "127.0.0.1", 0, admit=self.admit, make_practice=self.make, ids=CountingIds("c"),
            rules=rules, max_connections=60,
        )  # fmt: skip

    def admit(self, handshake: Handshake) -> Refusal | None:
        """See `handshake.Admit`."""
        self.seen.append(handshake)
        return self.refusal

    def make(self, device: Device) -> NotingPractice:
        """See `ports.PracticeFactory`."""
        self.practices.append(NotingPractice(device))
        return self.practices[-1]

    def practice(self, device_id: str) -> NotingPractice:
        """Return the newest practice of a device."""
        return next(p for p in reversed(self.practices) if p.device.device_id == device_id)

    @contextlib.asynccontextmanager
    async def device(
        self, device_id: str = "aa:bb", *, hello: bool = True, **headers: str
    ) -> AsyncIterator[ClientConnection]:
        """Connect as a device, and exchange the hellos."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        address = f"ws://127.0.0.1:{self.server.port}/xiaozhi/v1/?token=secret"
        async with connect(
            address,
            additional_headers={"Device-Id": device_id, **names},
            compression=None,
            close_timeout=1,
            proxy=None,
            ping_interval=None,
        ) as socket:
            if hello:
                await socket.send(json.dumps({"type": "hello", "version": 1, "features": {}}))
                await said(socket, "hello")
            yield socket


async def said(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """Return the next JSON message of a kind."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            message = await socket.recv()
            if isinstance(message, str):
                fields: dict[str, Any] = json.loads(message)
                if fields["type"] == kind:
                    return fields


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def run_port(
    body: Callable[[DevicePort], Awaitable[None]],
    rules: ConnectionRules | None = None,
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Run `body` with a server that is stopped at its end."""

    async def whole() -> None:
        port = DevicePort(rules)
        await port.server.start()
        try:
            await body(port)
        finally:
            await port.server.stop()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(whole())
