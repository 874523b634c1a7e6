"""Run the HTTP server in this process until it is told to stop. `etude web` starts it by name."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Final

import structlog
import uvicorn

from etude.errors import UnavailableError
from etude.settings import Settings
from etude.store import migrations
from etude.web.app import create_app
from etude.web.services import open_services

GRACE_S: Final = 10
KEEP_ALIVE_S: Final = 65  # longer than the usual 60 s of a proxy in front, which must be first
BACKLOG: Final = 2048

log = structlog.get_logger("etude.web")


class AddressUnusableError(UnavailableError):
    """The address is taken, not this machine's, or not this user's to listen on."""

    code = "ADDRESS_UNUSABLE"


def run(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight then have `GRACE_S` to finish.

    Args:
        settings: where to listen, which role, which database.
        announce: called with the URL once requests are accepted.

    Raises:
        SchemaBehind, SchemaAhead, StoreUnavailable: nothing was served; the message says what to do.
        AddressUnusableError: the address cannot be listened on.
    """
    with _listening(settings) as listener:
        loop_factory = _loop_factory()
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_serve(settings, listener, announce))


async def _serve(
    settings: Settings, listener: socket.socket, announce: Callable[[str], None]
) -> None:
    await migrations.check(settings.database_url)
    async with open_services(settings) as services:
        server = _Server(_configure(create_app(services)))
        server.when_started = lambda: announce(_url(settings, listener))
        await server.serve(sockets=[listener])
    log.info("stopped", action="web.stopped")


def _configure(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type] # our ASGI types are wider than uvicorn's
        http="httptools" if _has("httptools") else "h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


class _Server(uvicorn.Server):
    """Ends with exit code 0 after a signal, where uvicorn would raise the signal once more."""

    when_started: Callable[[], None] = staticmethod(lambda: None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.when_started()


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    try:
        listener = _bind(settings.host, settings.port)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if getattr(error, "errno", None) else str(error)
        raise AddressUnusableError(
            host=settings.host, port=settings.port, reason=reason
        ) from error
    with listener:
        yield listener


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _url(settings: Settings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}"


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32" or not _has("uvloop"):
        return None
    import uvloop

    return uvloop.new_event_loop
