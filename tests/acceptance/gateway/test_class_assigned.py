"""A class of 45 and their toys: what it is assigned, on each toy's gateway, by one link to web."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from etude.cli.gateway import open_gateway
from etude.cli.installation import make_folder, make_keys
from etude.clock import Clock, SystemClock, to_us
from etude.files import Files, replace_file
from etude.gateway.command_ledger import CommandLedger
from etude.gateway.commands import CommandRunner
from etude.gateway.control import Control
from etude.gateway.known_devices import FILE as KNOWN_DEVICES
from etude.gateway.known_devices import KnownDevices
from etude.gateway.link import ChangeHandler, GatewayLink
from etude.gateway.link_messages import Hello
from etude.people.bind_codes import note_code
from etude.people.binding_records import BINDINGS, Binding, Held, PendingBinding
from etude.people.bindings import BindRequest, bind_device
from etude.people.gateway_token import path_of
from etude.people.records import HOST
from etude.people.roster_records import InClass, LearnerClasses
from etude.people.scopes import Scope
from etude.practice.assigned import Assigned, AssignmentNews, LessonAddress
from etude.practice.known_assignments import FILE as KNOWN_ASSIGNMENTS
from etude.practice.known_assignments import KnownAssignments
from etude.settings import Settings, load
from etude.store import Database
from etude.testing import device_ota
from etude.testing.clocks import ManualClock
from etude.testing.fake_device import FakeDevice
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.linked import serving, until
from etude.testing.ports import free_port
from etude.testing.simulation import read_sessions
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop
from etude.testing.web import service_token, services_for

Run = Callable[[Coroutine[Any, Any, Any]], Any]
APP, TASK = "english_learning", "shadowing"
TOYS = [f"02:00:00:00:02:{number:02x}" for number in range(45)]
LATE = "02:00:00:00:02:ff"
DAY = timedelta(days=1)


class GatewayMemory:
    """What a gateway knows of toys, classes and assignments, from its files and its link."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.devices = KnownDevices(folder / KNOWN_DEVICES, clock)
        self.assignments = KnownAssignments(
            folder / KNOWN_ASSIGNMENTS, clock, self.devices.learner_of
        )

    def current(self, device_id: str) -> str | None:
        found = self.assignments.current(device_id)
        return None if found is None else found.assignment_id

    def all_have(self, assignment_id: str | None, devices: list[str] = TOYS) -> bool:
        return {self.current(each) for each in devices} == {assignment_id}

    @asynccontextmanager
    async def linked(self, port: int, token: str) -> AsyncIterator[None]:
        ledger = CommandLedger(self.folder / "commands.jsonl")
        ledger.open(SystemClock().now().timestamp())
        bindings = ChangeHandler(
            replace=self.devices.replace_bindings, apply=self.devices.apply_bindings
        )
        link = GatewayLink(
            f"http://127.0.0.1:{port}",
            token=lambda: token,
            hello=Hello(gateway_id="school"),
            runner=CommandRunner(Control(lambda _: None, None), ledger, SystemClock()),
            handlers={BINDINGS: bindings, **self.assignments.handlers()},
        )
        task = asyncio.create_task(link.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            ledger.close()


class Office:
    """An operator who asks web over HTTP."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, path: str, **named: Any) -> Any:
        answer = await self._client.request(method, f"/api/v1{path}", **named)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def assign(self, lesson_id: str, **whom: str) -> str:
        body = {"app_id": APP, "task_id": TASK, "lesson_id": lesson_id} | whom
        return str((await self.ask("POST", "/assignments", json=body))["assignment_id"])

    async def load(self, class_id: str, lines: list[str]) -> Any:
        await self.ask("POST", "/classes", json={"name": class_id, "class_id": class_id})
        headers = {"Content-Type": "text/csv"}
        return await self.ask(
            "POST", f"/classes/{class_id}/roster", content="\n".join(lines), headers=headers
        )


async def bind(database: Database) -> None:
    """Bind every toy, as an operator does who types the codes that they show."""
    now = SystemClock().now()
    async with database.transaction() as work:
        for number, device_id in enumerate([*TOYS, LATE]):
            shown = PendingBinding(
                code=f"{number:06}",
                device_id=device_id,
                client_id=FakeDevice(device_id).client_id,
                board="toy",
                version="1",
                expires_us=to_us(now + DAY),
            )
            await note_code(work, shown, now)
            await bind_device(work, BindRequest(code=shown.code), actor=HOST, now=now)


@pytest.fixture
def lessons(tmp_path: Path) -> None:
    for lesson_id in "abc":
        part = Part(name="01.mp3", text=lesson_id, lasts_ms=300)
        write_lesson(tmp_path / "lessons" / APP / TASK / "lessons" / lesson_id, [part])


@pytest.mark.usefixtures("lessons")
def test_one_assignment_reaches_a_class_of_45(database: Database, run: Run, tmp_path: Path) -> None:
    """On each toy; also of who joins, not of who leaves; own and later ones first; withdrawn: gone.

    And all of it is known to a gateway that starts with web dead, dated leaving too.
    """
    folder = tmp_path / "gateway"
    folder.mkdir()

    async def main() -> None:
        await bind(database)
        operator = await service_token(database, Scope.OPERATE)
        gateway_token = await service_token(database, Scope.GATEWAY_LINK, name="gateway")
        memory = GatewayMemory(folder, SystemClock())
        async with serving(services_for(database, tmp_path)) as port:
            headers = {"Authorization": f"Bearer {operator}"}
            url = f"http://127.0.0.1:{port}"
            async with (
                memory.linked(port, gateway_token),
                httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False) as client,
            ):
                await live(Office(client), memory)
        dead(folder)

    run(main())


async def live(office: Office, memory: GatewayMemory) -> None:
    """What changes while web is there."""
    lines = [f"Learner {number},,{device_id}" for number, device_id in enumerate(TOYS)]
    done = await office.load("3b", lines)
    assert done == {"lines": 45, "added": 45, "joined": 45, "devices": 45, "empty_lines": []}
    first = await office.assign("a", class_id="3b")
    await until(lambda: memory.all_have(first))
    assert memory.current(LATE) is None

    late = (await office.ask("POST", "/learners", json={"display_name": "Late"}))["learner_id"]
    since = {"learner_id": late, "starts_at": SystemClock().now().isoformat()}
    await office.ask("POST", f"/devices/{LATE}/holders", json=since)
    await office.ask("PUT", f"/classes/3b/roster/{late}", json={})
    await until(lambda: memory.current(LATE) == first)

    roster = (await office.ask("GET", "/classes/3b/roster"))["items"]
    gone = next(one["learner_id"] for one in roster if one["display_name"] == "Learner 0")
    await office.ask("DELETE", f"/classes/3b/roster/{gone}")
    await until(lambda: memory.current(TOYS[0]) is None)
    assert memory.all_have(first, [*TOYS[1:], LATE])

    own = await office.assign("b", learner_id=late)
    await until(lambda: memory.current(LATE) == own)
    await office.load("choir", [f"Late,{late}", "Learner 0," + gone])
    choir = await office.assign("c", class_id="choir")
    await until(lambda: memory.current(TOYS[0]) == choir)
    await office.ask("DELETE", f"/assignments/{own}")
    await until(lambda: memory.current(LATE) == choir)  # of two classes, what starts last
    await office.ask("PATCH", "/classes/choir", json={"archived": True})
    await until(lambda: (memory.current(LATE), memory.current(TOYS[0])) == (first, None))

    await office.ask("DELETE", f"/assignments/{first}")
    await until(lambda: memory.all_have(None, [*TOYS, LATE]))
    second = await office.assign("a", class_id="3b")
    tomorrow = (SystemClock().now() + DAY).isoformat()
    await office.ask("DELETE", f"/classes/3b/roster/{late}", params={"at": tomorrow})
    await until(lambda: memory.all_have(second, [*TOYS[1:], LATE]))
    # Memory knows before the file does: all that `dead` looks for has to be there.
    await until(lambda: {memory_file(memory, each, 2) for each in TOYS[1:]} == {second})
    await until(lambda: [memory_file(memory, LATE, days) for days in (0, 2)] == [second, None])
    await until(lambda: memory.current(TOYS[0]) is None)


def memory_file(memory: GatewayMemory, device_id: str, days: int) -> str | None:
    """What a gateway that starts from the same files in some days says of a device."""
    clock = ManualClock(SystemClock().now() + days * DAY)
    return GatewayMemory(memory.folder, clock).current(device_id)


def dead(folder: Path) -> None:
    """What a gateway says that has its files and nobody to ask, today and in two days."""
    today = GatewayMemory(folder, SystemClock())
    standing = today.current(LATE)
    assert standing is not None
    assert today.all_have(standing, TOYS[1:])
    assert today.current(TOYS[0]) is None
    later = GatewayMemory(folder, ManualClock(SystemClock().now() + 2 * DAY))
    assert later.all_have(standing, TOYS[1:])
    assert later.current(LATE) is None


# With a toy, in a gateway that starts with web dead: its loop's time jumps

ANNA, CLASS = 1, 1
TOY = TOYS[0]
SECOND_US = 1_000_000


def set_up(tmp_path: Path) -> Settings:
    """A gateway's folder; web is where nobody listens."""
    settings = load(
        data=tmp_path / "data",
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=f"http://127.0.0.1:{free_port()}",
    )
    for folder in (settings.data, settings.gateway):
        make_folder(Files(), folder)
    make_keys(Files(), settings.data)
    replace_file(Files(), path_of(settings.data), b"nobody-asks-for-it\n")
    parts = [Part(name=f"0{number}.mp3", text="x", lasts_ms=900) for number in range(1, 4)]
    write_lesson(settings.lessons / APP / TASK / "lessons" / "b", parts)
    return settings


def raw(item: msgspec.Struct) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(item))


async def tell(settings: Settings, clock: LoopClock) -> None:
    """Leave the files of a gateway that was told this, and died.

    Anna is in the class from the 60th to the 77th second; the class is assigned b all the time.
    """
    now_us = to_us(clock.now())
    memory = GatewayMemory(settings.gateway, clock)
    binding = Binding(
        device_id=TOY,
        device_key=1,
        client_id=FakeDevice(TOY).client_id,
        holdings=(Held(learner_key=ANNA, starts_us=0),),
    )
    await memory.devices.replace_bindings([raw(binding)])
    assigned = Assigned(
        assignment_key=1,
        assignment_id="as-b",
        lesson=LessonAddress(app_id=APP, task_id=TASK, lesson_id="b"),
        starts_us=now_us,
        class_key=CLASS,
    )
    await memory.assignments.replace([raw(AssignmentNews(assignment_key=1, assigned=assigned))])
    stay = InClass(
        class_key=CLASS, starts_us=now_us + 60 * SECOND_US, ends_us=now_us + 77 * SECOND_US
    )
    roster = LearnerClasses(learner_key=ANNA, classes=(stay,))
    await memory.assignments.replace_rosters([raw(roster)])


def test_who_joins_and_leaves_while_web_is_dead_has_it_for_that_time(tmp_path: Path) -> None:
    """Asked before, within, after: only within, and the lesson that ran when she left went on."""
    settings = set_up(tmp_path)

    async def play() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        await tell(settings, clock)
        async with open_gateway(settings, clock) as gateway:
            device = FakeDevice(TOY)
            url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
            for second in (10.0, 74.0, 120.0):
                passed_s = asyncio.get_running_loop().time() - 1000.0
                await asyncio.sleep(max(0.0, second - passed_s))
                async with httpx2.AsyncClient(trust_env=False) as client:
                    told = await device_ota.ask(client, url, device)
                device.token = told.token
                await device.connect(told.host, told.port, told.path)
                await asyncio.sleep(1.0)
                device.wake("start practice")
                await asyncio.sleep(20.0)
                device.leave()
                await asyncio.sleep(1.0)
            device.scrap()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play())
    (events,) = read_sessions(settings.gateway / "journals")
    assert (events[0]["meta"]["assignment_id"], events[0]["value"]["lesson_id"]) == ("as-b", "b")
    assert events[-1]["value"]["end_reason"] == "list_completed"
    assert sum(each["event_type"] == "listen_window_closed" for each in events) == 3
