"""`etude serve`, `etude web`, `etude worker`: the long-running processes of an installation.

`serve` supervises the others. It opens the listening socket itself and passes it to every `web`, so
that callers of a process that restarts are answered by its neighbour; each can also be run alone.
"""

import asyncio
import importlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Protocol, cast

import structlog
import typer

from etude.cli import lifeline, listening, logs, stopping, terminal
from etude.cli.installation import require_folder
from etude.cli.supervisor import GRACE_S, Child, Supervisor
from etude.settings import Settings, load, unknown_variables
from etude.store import migrations

HostOption = Annotated[str | None, typer.Option(help="Address to listen on (ETUDE_HOST).")]
PortOption = Annotated[
    int | None, typer.Option(help="Port to listen on; 0 takes a free one (ETUDE_PORT).")
]
RoleOption = Annotated[
    str | None, typer.Option(help="Which routes: all, ops, server or learner (ETUDE_ROLE).")
]
LifelineOption = Annotated[int | None, typer.Option("--lifeline", hidden=True)]
ListenerOption = Annotated[int | None, typer.Option("--listener", hidden=True)]

WORKER_NICENESS: Final = 5
"""Jobs can wait: in a full house the gateway's clock gets three times the worker's share."""
KILLED_S: Final = 5.0
"""What `serve` has, after the grace of its children, until those it killed are gone."""
ORPHANED_S: Final = GRACE_S + KILLED_S + 1.0
"""What it has when whoever started it is gone: a second more, or nobody knew what held it up."""

log = structlog.get_logger("etude.serve")


class _WebMain(Protocol):
    """`etude.web.main`, started by name: the command line imports no web."""

    def run(
        self,
        settings: Settings,
        listener: socket.socket,
        announce: Callable[[], None],
        on_stop: Callable[[], None],
    ) -> None: ...


def serve(
    host: HostOption = None,
    port: PortOption = None,
    role: RoleOption = None,
    parent: LifelineOption = None,
) -> None:
    """Run the whole installation: web, worker and gateway, restarted when they fail."""
    settings = _start("serve", parent, ORPHANED_S, host=host, port=port, role=role)
    asyncio.run(migrations.check(settings.database_url))
    listener = listening.listen(settings.host, settings.port)
    descriptor = listener.fileno()
    webs = (
        Child(
            name=f"web-{number}",
            arguments=("web", "--listener", str(descriptor), "--role", settings.role),
            pass_fds=(descriptor,),
        )
        for number in range(1, settings.web_processes + 1)
    )

    def stop() -> None:
        stopping.bound_the_end(GRACE_S + KILLED_S)
        listener.close()

    supervisor = Supervisor(
        children=(
            *webs,
            Child(name="worker", arguments=("worker",)),
            Child(name="gateway", arguments=("gateway", "--web", _own_url(settings, listener))),
        ),
        on_stop=stop,
    )
    _say_where(settings, listener)
    asyncio.run(supervisor.run())


def web(
    host: HostOption = None,
    port: PortOption = None,
    role: RoleOption = None,
    parent: LifelineOption = None,
    passed: ListenerOption = None,
) -> None:
    """Run the HTTP server alone."""
    settings = _start("web", parent, host=host, port=port, role=role)
    listener = (
        listening.listen(settings.host, settings.port)
        if passed is None
        else listening.inherited(passed)
    )

    def announce() -> None:
        url = listening.url_of(listener, settings.host)
        log.info("listening", action="web.listening", url=url, role=settings.role)
        if passed is None:
            _say_where(settings, listener)

    web_main = cast("_WebMain", importlib.import_module("etude.web.main"))
    with listener:
        web_main.run(settings, listener, announce, stopping.bound_the_end)


def worker(parent: LifelineOption = None) -> None:
    """Run the jobs alone, behind whoever keeps a clock or answers somebody."""
    os.nice(WORKER_NICENESS)
    settings = _start("worker", parent)
    worker_module = importlib.import_module("etude.cli.worker")
    asyncio.run(worker_module.run(settings))


def gateway(
    web_url: Annotated[
        str | None, typer.Option("--web", help="Where web is reached (ETUDE_WEB_URL).")
    ] = None,
    parent: LifelineOption = None,
) -> None:
    """Run the device gateway alone."""
    settings = _start("gateway", parent, web_url=web_url)
    gateway_module = importlib.import_module("etude.cli.gateway")
    asyncio.run(gateway_module.run(settings))


def _own_url(settings: Settings, listener: socket.socket) -> str:
    """Return where the gateway reaches web: as set, else the socket that was just opened."""
    port = listener.getsockname()[1]
    return settings.model_copy(update={"port": port}).own_url


def _start(
    process: str,
    parent: int | None = None,
    grace_s: float = lifeline.GRACE_S,
    **chosen: Any,  # noqa: ANN401 - checked by `load`
) -> Settings:
    """Do what each of these commands does first: the parent's lifeline, settings, logs."""
    stopping.end_at_ctrl_c()
    if parent is not None:
        lifeline.watch(parent, grace_s)
    settings = load(**chosen)
    logs.configure(settings.log_level, settings.log_format, process=process)
    for name in unknown_variables(os.environ):
        log.warning("unknown setting", action="settings.unknown", variable=name)
    require_folder(settings)
    return settings


def _say_where(settings: Settings, listener: socket.socket) -> None:
    """Tell a person at the terminal where to go; programs read the log line `web.listening`."""
    if sys.stderr.isatty():
        url = settings.public_url or listening.url_of(listener, settings.host)
        terminal.say("serve.at", url=url)
