"""Run the HTTP server in this process until it is told to stop. `etude web` starts it by name."""

import asyncio
import contextlib
import importlib
import importlib.util
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final, Literal

import structlog
import uvicorn

from etude.gateway.link_messages import MAX_FRAME_BYTES, PING_S
from etude.settings import Settings
from etude.store import migrations
from etude.web.app import create_app
from etude.web.front import Front
from etude.web.services import open_services

GRACE_S: Final = 10
KEEP_ALIVE_S: Final = 75  # longer than a proxy's in front (usually 60 s): that must close first

log = structlog.get_logger("etude.web")


def run(
    settings: Settings,
    listener: socket.socket,
    announce: Callable[[], None],
    on_stop: Callable[[], None],
) -> None:
    """Serve on `listener` until SIGTERM or SIGINT; requests in flight then have `GRACE_S` to end.

    Args:
        settings: role, database and data folder.
        listener: a bound TCP socket; closed at the end.
        announce: called once requests are accepted.
        on_stop: called once when the order to stop has come.

    Raises:
        SchemaBehind, SchemaAhead, StoreUnavailable: nothing was served; the message helps.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, listener, announce, on_stop))


async def _serve(
    settings: Settings,
    listener: socket.socket,
    announce: Callable[[], None],
    on_stop: Callable[[], None],
) -> None:
    await migrations.check(settings.database_url)
    async with open_services(settings) as services:
        server = _Server(configure(create_app(services)), announce, on_stop)
        await server.serve(sockets=[listener])
    log.info("stopped", action="web.stopped")


def configure(app: Front) -> uvicorn.Config:
    """Return how uvicorn is to serve `app`: bounds, protocols, no logs of its own."""
    return uvicorn.Config(
        app,
        http=_protocol(),
        ws="websockets-sansio",
        ws_max_size=MAX_FRAME_BYTES,
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_per_message_deflate=False,
        lifespan="off",  # `open_services` is the lifetime
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


class _Server(uvicorn.Server):
    """Announces its start, and returns after a signal where uvicorn would raise it once more."""

    def __init__(
        self, config: uvicorn.Config, announce: Callable[[], None], on_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            self._on_stop()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _protocol() -> type[asyncio.Protocol] | Literal["h11"]:
    if not _installed("httptools"):
        return "h11"
    protocol: type[asyncio.Protocol] = importlib.import_module("etude.web.protocol").Protocol
    return protocol


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if not _installed("uvloop"):  # an interpreter or system that it does not support
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module(
        "uvloop"
    ).new_event_loop
    return factory
