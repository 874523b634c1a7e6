"""The gateway process: device sockets, provisioning, practice and its journals, put together.

It opens no database. What it must know when web is dead (who is bound, what it was asked to do,
what was practised) is in files of its own below `<data>/gateway`; the rest comes down the link.
"""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
import uvicorn

from etude.cli import gateway_speech, listening, terminal
from etude.cli.installation import keys_folder
from etude.cli.stopping import end, stop_signal
from etude.clock import Clock, Ids, RandomIds, SystemClock
from etude.edge.locks import FolderLock
from etude.files import Files
from etude.gateway.activation import Activations
from etude.gateway.collector import collecting_calmly
from etude.gateway.command_ledger import CommandLedger
from etude.gateway.commands import CommandRunner
from etude.gateway.connection import DeviceConnection
from etude.gateway.control import Control
from etude.gateway.errors import GatewayFolderError, GatewayRunningError
from etude.gateway.known_devices import FILE as KNOWN_DEVICES
from etude.gateway.known_devices import KnownDevices
from etude.gateway.link import GatewayLink
from etude.gateway.link_messages import Hello
from etude.gateway.model_room import ModelRoom
from etude.gateway.mqtt import MqttBroker, read_address, read_fields, read_topics
from etude.gateway.ota import OtaApp
from etude.gateway.ports import CloseReason, PracticeFactory
from etude.gateway.provisioning import Provisioning
from etude.gateway.websocket import DeviceServer
from etude.people.device_credentials import read_keys
from etude.people.gateway_token import read_gateway_token
from etude.people.serial_keys import SerialKeys
from etude.practice.apps import installed_apps
from etude.practice.course_lessons import CourseLessons
from etude.practice.courseware_source import CoursewareSource
from etude.practice.known_assignments import FILE as KNOWN_ASSIGNMENTS
from etude.practice.known_assignments import KnownAssignments
from etude.practice.lesson_packs import LessonPacks
from etude.practice.lesson_tidying import LessonTidying
from etude.practice.lessons import Lessons
from etude.practice.pack_source import PackSource
from etude.practice.prompts import load_prompts
from etude.practice.recorder import Recorder
from etude.practice.runtime import practice_factory
from etude.practice.supplies import Supplies
from etude.practice.uploads import Uploads
from etude.settings import Settings
from etude.speech.clip_cache import ClipCache

LOOK_EVERY_S: Final = 2.0
EXPIRE_EVERY: Final = 15
"""Of these rounds, every how many sessions without their device are looked for."""
STOP_S: Final = 5.0

log = structlog.get_logger("etude.gateway")


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A running gateway."""

    devices: DeviceServer
    http_port: int
    link: GatewayLink
    known: KnownDevices
    recorder: Recorder
    uploads: Uploads


async def run(settings: Settings) -> None:
    """Serve devices until SIGTERM or SIGINT.

    Raises:
        GatewayRunningError: another gateway works with this data folder.
        GatewayFolderError: it cannot be used.
        DevicePortError, AddressUnusableError: a port cannot be listened on.
        KeyUnreadableError: a key is missing; `etude init` makes it.
    """
    stopping = stop_signal()
    _allow_many_files()
    async with open_gateway(settings) as gateway:
        log.info(
            "listening",
            action="gateway.listening",
            port=gateway.devices.port,
            http_port=gateway.http_port,
        )
        with collecting_calmly(gateway.devices.connections.in_use):
            await stopping.wait()
    log.info("stopped", action="gateway.stopped")


@contextlib.asynccontextmanager
async def open_gateway(
    settings: Settings,
    clock: Clock | None = None,
    ids: Ids | None = None,
    *,
    stepped: Callable[[float], None] = lambda _: None,
) -> AsyncIterator[Gateway]:
    """Start every part of a gateway, and stop them in reverse.

    Args:
        settings: ports, folders, where web is.
        clock: wall-clock and monotonic time; the latter must be the event loop's.
        ids: of sessions, connections and credentials.
        stepped: see `practice_factory`.
    """
    clock, ids = clock or SystemClock(), ids or RandomIds()
    async with contextlib.AsyncExitStack() as stack:
        journals = settings.gateway / "journals"
        token = read_gateway_token(settings.data)
        stack.enter_context(_only_one(settings.gateway))
        uploads = Uploads(journals, settings.own_url, token, clock=clock)
        recorder = Recorder(journals, clock=clock, ids=ids, on_ended=uploads.ended)
        recorder.start()
        stack.callback(recorder.close)
        uploads.start()
        stack.callback(uploads.stop)
        provisioning, known = _provisioning(settings, clock, ids)
        assignments = KnownAssignments(
            settings.gateway / KNOWN_ASSIGNMENTS, clock, known.learner_of
        )
        supplies = _supplies(settings, stack, assignments)
        room = ModelRoom(ids)
        practice = await _practice(
            settings, stack, known, assignments, recorder, supplies, room, stepped=stepped
        )
        devices = await _devices(settings, stack, provisioning, practice, ids)
        link = await _link(settings, stack, provisioning, devices, assignments, room, clock)
        http_port = await _serve_http(settings, stack, provisioning, clock, devices.port)
        await _in_background(stack, _look_after(recorder, uploads, link))
        tidying = _tidying(settings, supplies, assignments, recorder, clock)
        await _in_background(stack, tidying.run())
        yield Gateway(
            devices=devices,
            http_port=http_port,
            link=link,
            known=known,
            recorder=recorder,
            uploads=uploads,
        )


def _only_one(folder: Path) -> FolderLock:
    """Keep other gateways out: two would resume each other's sessions and forget commands."""
    with _usable(folder):
        Files().make_folder(folder)
        return FolderLock(folder, lambda: GatewayRunningError(path=str(folder)))


@contextlib.contextmanager
def _usable(path: Path) -> Generator[None, None, None]:
    """Name the place where the system refuses something."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise GatewayFolderError(path=str(path), reason=reason) from error


def _provisioning(settings: Settings, clock: Clock, ids: Ids) -> tuple[Provisioning, KnownDevices]:
    keys = keys_folder(settings.data)
    known = KnownDevices(settings.gateway / KNOWN_DEVICES, clock)
    provisioning = Provisioning(
        known, read_keys(keys), SerialKeys(keys), Activations(clock), clock=clock, ids=ids
    )
    return provisioning, known


def _supplies(
    settings: Settings, stack: contextlib.AsyncExitStack, assignments: KnownAssignments
) -> Supplies:
    """Have what is assigned fetched from web, from now on and after every change."""
    courses = CoursewareSource(settings.own_url)
    packs = PackSource(settings.own_url, lambda: read_gateway_token(settings.data))
    supplies = Supplies(
        CourseLessons(settings.course_lessons, courses.ask, courses.download),
        LessonPacks(settings.lesson_packs, settings.lessons, packs.ask, packs.fetch),
    )
    stack.push_async_callback(supplies.close)
    stack.callback(packs.stop)
    stack.callback(courses.stop)
    assignments.changed = lambda: supplies.want(assignments.standing)
    supplies.want(assignments.standing)
    return supplies


def _tidying(
    settings: Settings,
    supplies: Supplies,
    assignments: KnownAssignments,
    recorder: Recorder,
    clock: Clock,
) -> LessonTidying:
    return LessonTidying(
        courses=settings.course_lessons,
        packs=settings.lesson_packs,
        journals=settings.gateway / "journals",
        supplies=supplies,
        assignments=assignments,
        practising=lambda: recorder.practising,
        clock=clock,
    )


async def _practice(  # noqa: PLR0913 - what practice is made of
    settings: Settings,
    stack: contextlib.AsyncExitStack,
    known: KnownDevices,
    assignments: KnownAssignments,
    recorder: Recorder,
    supplies: Supplies,
    room: ModelRoom,
    *,
    stepped: Callable[[float], None],
) -> PracticeFactory:
    clips = ClipCache(settings.clips)
    lessons = Lessons(settings.lessons, clips, settings.lesson_packs)
    stack.callback(lessons.close)
    apps = installed_apps(settings.apps)
    prompts = await asyncio.to_thread(load_prompts, clips)
    return practice_factory(
        apps,
        lessons,
        recorder,
        prompts,
        locale=terminal.locale(),
        learner_of=known.learner_of,
        assignment_of=assignments.current,
        speech=gateway_speech.opened(settings, stack),
        ask=gateway_speech.asked(settings, stack, room),
        supplies=supplies,
        stepped=stepped,
    )


async def _devices(
    settings: Settings,
    stack: contextlib.AsyncExitStack,
    provisioning: Provisioning,
    make_practice: PracticeFactory,
    ids: Ids,
) -> DeviceServer:
    devices = DeviceServer(
        settings.gateway_host,
        settings.gateway_port,
        admit=provisioning.admit,
        make_practice=make_practice,
        ids=ids,
    )
    await devices.start()
    stack.push_async_callback(devices.stop)

    def let_go(device_id: str) -> None:
        connection = devices.connection(device_id)
        if connection is not None:
            connection.close(CloseReason.REVOKED)

    provisioning.on_revoked(let_go)
    return devices


async def _link(
    settings: Settings,
    stack: contextlib.AsyncExitStack,
    provisioning: Provisioning,
    devices: DeviceServer,
    assignments: KnownAssignments,
    room: ModelRoom,
    clock: Clock,
) -> GatewayLink:
    gateway_id = f"{socket.gethostname()[:40]}:{devices.port}"
    broker = None
    if settings.mqtt_url is not None:
        topics = read_topics(settings.mqtt_command_topic, settings.mqtt_ack_topic)
        broker = MqttBroker(
            read_address(settings.mqtt_url), topics, read_fields(settings.mqtt_fields)
        )
        await _in_background(stack, broker.run())
    ledger = CommandLedger(settings.gateway / "commands.jsonl")
    with _usable(settings.gateway / "commands.jsonl"):
        await asyncio.to_thread(ledger.open, clock.now().timestamp())
    stack.callback(ledger.close)
    link = GatewayLink(
        settings.own_url,
        token=lambda: read_gateway_token(settings.data),
        hello=Hello(gateway_id=gateway_id, reaches_offline=broker is not None),
        runner=CommandRunner(Control(devices.connection, broker), ledger, clock),
        handlers={**provisioning.handlers(), **assignments.handlers(), **room.handlers()},
        standing=lambda: (*provisioning.standing(), *room.standing()),
    )
    provisioning.linked = room.linked = lambda: link.up
    provisioning.report = room.report = link.report

    def joined(connection: DeviceConnection) -> None:
        link.connected(connection.device_id, connection.connection_id)

    def parted(connection: DeviceConnection) -> None:
        link.left(connection.device_id, connection.connection_id)

    devices.connections.on_joined, devices.connections.on_parted = joined, parted
    await _in_background(stack, link.run())
    return link


async def _serve_http(
    settings: Settings,
    stack: contextlib.AsyncExitStack,
    provisioning: Provisioning,
    clock: Clock,
    socket_port: int,
) -> int:
    """Serve provisioning on its own port, in this loop; return the port."""
    app = OtaApp(
        provisioning, clock, socket_url=settings.gateway_url, socket_port=socket_port
    ).starlette()
    listener = listening.listen(settings.gateway_host, settings.gateway_http_port)
    stack.callback(listener.close)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(STOP_S),
    )
    server = _HttpServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    async def stop() -> None:
        server.should_exit = True
        await asyncio.wait({serving}, timeout=2 * STOP_S)

    stack.push_async_callback(stop)
    port: int = listener.getsockname()[1]
    return port


class _HttpServer(uvicorn.Server):
    """Leaves signals to whoever runs the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _look_after(recorder: Recorder, uploads: Uploads, link: GatewayLink) -> None:
    """End sessions whose device did not come back (`docs/rules.md 18`); upload when web is back."""
    was_up, rounds = False, 0
    while True:
        if link.up and not was_up:
            uploads.trigger()
        was_up = link.up
        if rounds % EXPIRE_EVERY == 0:
            recorder.expire()
        rounds += 1
        await asyncio.sleep(LOOK_EVERY_S)


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one: a device takes a socket and two files."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _in_background(
    stack: contextlib.AsyncExitStack, work: Coroutine[None, None, None]
) -> None:
    """Run `work` until the stack is left."""
    task = asyncio.create_task(work)

    stack.push_async_callback(end, task)
