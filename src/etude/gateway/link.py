"""The gateway's side of the link to web: one WebSocket, kept up for ever (`docs/rules.md 44`).

Nothing of a device waits for it: what devices do is noted in memory and sent by a task of its own.
While web is away the gateway tries again, later and later and never all gateways at once, and does
its work meanwhile with what it knows.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

from etude.gateway import link_messages as wire
from etude.gateway.commands import CommandRunner
from etude.gateway.link_messages import (
    Answer,
    Changed,
    Connected,
    Deliver,
    Devices,
    Gone,
    Snapshot,
    Welcome,
)

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
REFUSED_PAUSE_S: Final = 30.0
OPEN_S: Final = 10.0
MAX_SNAPSHOT_BYTES: Final = 64 * 1024 * 1024
MAX_REPORTS: Final = 1000

log = structlog.get_logger("etude.gateway")


class ChangeHandler(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with one kind of thing that comes down the link; items are JSON objects.

    Attributes:
        replace: take these items for all there are (a snapshot).
        apply: take them as they are now; the same may come again.
    """

    replace: Callable[[Sequence[msgspec.Raw]], Awaitable[None]]
    apply: Callable[[Sequence[msgspec.Raw]], Awaitable[None]]


Report = tuple[str, msgspec.Struct]
"""A kind, and an item of it."""


class GatewayLink:
    """Lives as long as the process; `run` in a task of its own. Belongs to one event loop.

    Args:
        server: web's base address, `http://127.0.0.1:8080`.
        token: reads the service token (scope `gateway:link`), anew for each attempt.
        hello: who this gateway is.
        runner: does what web sends.
        handlers: by kind, what to do with what comes down; other kinds are passed over.
        standing: what is to be told at the beginning of each link, beside the devices.
    """

    def __init__(
        self,
        server: str,
        *,
        token: Callable[[], str],
        hello: wire.Hello,
        runner: CommandRunner,
        handlers: Mapping[str, ChangeHandler] | None = None,
        standing: Callable[[], Sequence[Report]] = tuple,
    ) -> None:
        """Describe the link; nothing is opened before `run`."""
        self._url = server.rstrip("/").replace("http", "ws", 1) + wire.PATH
        self._token = token
        self._hello = hello
        self._runner = runner
        self._handlers = handlers or {}
        self._standing = standing
        self._up = False
        self._connected: dict[str, tuple[str, float]] = {}
        self._news: dict[str, None] = {}
        self._gone: deque[Gone] = deque(maxlen=wire.MAX_DEVICES * 50)
        self._reports: deque[Report] = deque(maxlen=MAX_REPORTS)
        self._answers: deque[Answer] = deque(maxlen=wire.MAX_IN_FLIGHT * 2)
        self._something = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()

    @property
    def up(self) -> bool:
        """Whether web has welcomed this gateway and the connection stands."""
        return self._up

    def connected(self, device_id: str, connection_id: str) -> None:
        """Note that a device is connected from now on; returns at once."""
        self._connected[device_id] = (connection_id, asyncio.get_running_loop().time())
        self._news[device_id] = None
        self._something.set()

    def left(self, device_id: str, connection_id: str) -> None:
        """Note that a connection is over; a newer one of the device stays. Returns at once."""
        if self._connected.get(device_id, ("",))[0] != connection_id:
            return
        del self._connected[device_id]
        self._news.pop(device_id, None)
        if self._up:
            self._gone.append(Gone(device_id=device_id, connection_id=connection_id))
            self._something.set()

    def report(self, kind: str, item: msgspec.Struct) -> None:
        """Tell web something; returns at once. What must arrive belongs into `standing` too."""
        if self._up:
            self._reports.append((kind, item))
            self._something.set()

    async def run(self) -> None:
        """Keep the link up until the task is cancelled."""
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                welcomed, refused = await self._attempt()
                pause_s = FIRST_PAUSE_S if welcomed else min(pause_s * 2, LONGEST_PAUSE_S)
                longest_s = REFUSED_PAUSE_S if refused else pause_s
                jitter = random.uniform(0.5, 1.0)  # noqa: S311 - spreads, hides nothing
                await asyncio.sleep(longest_s * jitter)
        finally:
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    async def _attempt(self) -> tuple[bool, bool]:
        """Hold one link to its end; return whether web welcomed it, and whether it was refused."""
        welcomed = refused = False
        try:
            async with asyncio.timeout(OPEN_S):
                socket = await self._open()
            try:
                await self._serve(socket)
            finally:
                welcomed = self._up
                self._down()
                await _hang_up(socket)
        except InvalidStatus as error:
            refused = error.response.status_code in {401, 403, 404}
            log.warning("link refused", action="link.refused", status=error.response.status_code)
        except (OSError, TimeoutError, WebSocketException) as error:
            log.info("link down", action="link.down", reason=type(error).__name__)
        except wire.LinkFrameError as error:
            log.warning("link cut", action="link.cut", code=error.code)
        except Exception as error:  # noqa: BLE001 - a handler's fault must not end the link for ever
            log.error("link failed", action="link.failed", error=type(error).__qualname__)  # noqa: TRY400 - may quote what came down
        return welcomed, refused

    async def _open(self) -> ClientConnection:
        return await connect(
            self._url,
            additional_headers={"Authorization": f"Bearer {self._token()}"},
            compression=None,
            proxy=None,
            open_timeout=None,
            ping_interval=wire.PING_S,
            ping_timeout=wire.PING_S,
            close_timeout=1,
            max_size=wire.MAX_FRAME_BYTES,
            max_queue=16,
        )

    async def _serve(self, socket: ClientConnection) -> None:
        await self._send(socket, self._hello)
        async with asyncio.timeout(wire.SLOW_S):
            first = wire.decode_from_web(await socket.recv())
        if not isinstance(first, Welcome):
            raise wire.LinkFrameError(reason="no welcome")
        self._up = True
        self._tell_everything()
        log.info("link up", action="link.up", link_id=first.link_id)
        sending = asyncio.create_task(self._send_news(socket))
        reading = asyncio.create_task(self._read(socket))
        try:
            await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            reading.cancel()
            ends = await asyncio.gather(sending, reading, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def _tell_everything(self) -> None:
        self._gone.clear()
        self._answers.clear()
        self._news = dict.fromkeys(self._connected)
        self._reports = deque(self._standing(), maxlen=MAX_REPORTS)
        self._something.set()

    def _down(self) -> None:
        self._up = False
        self._gone.clear()
        self._answers.clear()
        self._reports.clear()

    # Up

    async def _send(self, socket: ClientConnection, message: wire.FromGateway) -> None:
        async with asyncio.timeout(wire.SLOW_S):
            await socket.send(wire.encode(message))

    async def _send_news(self, socket: ClientConnection) -> None:
        told = False
        while True:
            self._something.clear()
            while self._answers:
                await self._send(socket, self._answers[0])
                self._answers.popleft()
            while self._gone or self._news:
                await self._send(socket, self._next_devices())
            if not told:
                await self._send(socket, Devices(all_told=True))
                told = True
            await self._send_reports(socket)
            await self._something.wait()

    def _next_devices(self) -> Devices:
        """Take what happened to devices, oldest first, as much as one message holds."""
        now_s = asyncio.get_running_loop().time()
        gone = [self._gone.popleft() for _ in range(min(len(self._gone), wire.MAX_DEVICES))]
        names = list(self._news)[: wire.MAX_DEVICES]
        for name in names:
            del self._news[name]
        connected = tuple(
            Connected(
                device_id=name, connection_id=held[0], age_ms=max(0, int((now_s - held[1]) * 1000))
            )
            for name in names
            if (held := self._connected.get(name)) is not None
        )
        return Devices(connected=connected, gone=tuple(gone))

    async def _send_reports(self, socket: ClientConnection) -> None:
        by_kind: dict[str, list[msgspec.Struct]] = {}
        while self._reports:
            kind, item = self._reports.popleft()
            by_kind.setdefault(kind, []).append(item)
        for kind, items in by_kind.items():
            for message in wire.report(kind, items):
                await self._send(socket, message)

    # Down

    async def _read(self, socket: ClientConnection) -> None:
        gathered = _Gathered()
        while True:
            message = wire.decode_from_web(await socket.recv())
            match message:
                case Deliver():
                    self._begin(message)
                case Snapshot():
                    await self._gather(gathered, message)
                case Changed():
                    handler = self._handlers.get(message.kind)
                    if handler is not None:
                        await handler.apply(message.items)
                case Welcome():
                    raise wire.LinkFrameError(reason="a second welcome")

    def _begin(self, command: Deliver) -> None:
        if len(self._work) >= wire.MAX_IN_FLIGHT * 2:
            raise wire.LinkFrameError(reason="more commands than may be under way")
        task = asyncio.create_task(self._do(command))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _do(self, command: Deliver) -> None:
        answer = await self._runner.run(command)
        if self._up:  # else web asks again
            self._answers.append(answer)
            self._something.set()

    async def _gather(self, gathered: "_Gathered", part: Snapshot) -> None:
        handler = self._handlers.get(part.kind)
        if handler is None:
            return
        items = gathered.add(part)
        if items is not None:
            await handler.replace(items)


class _Gathered:
    """The snapshot that is coming down, one kind after the other."""

    def __init__(self) -> None:
        self._kind = ""
        self._items: list[msgspec.Raw] = []
        self._bytes = 0

    def add(self, part: Snapshot) -> list[msgspec.Raw] | None:
        """Add a part; return all items with the last one."""
        if part.first:
            self._kind, self._items, self._bytes = part.kind, [], 0
        self._items.extend(part.items)
        self._bytes += sum(len(bytes(item)) for item in part.items)
        if part.kind != self._kind or self._bytes > MAX_SNAPSHOT_BYTES:
            raise wire.LinkFrameError(reason="a snapshot out of order, or without end")
        return self._items if part.last else None


async def _hang_up(socket: ClientConnection) -> None:
    with contextlib.suppress(WebSocketException, OSError, InvalidHandshake):
        await socket.close()
