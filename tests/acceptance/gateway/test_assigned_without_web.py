"""Assignments in a gateway that starts with web dead: its loop's time jumps."""

import asyncio
from pathlib import Path

import httpx2
import msgspec

from etude.cli.gateway import open_gateway
from etude.cli.installation import make_folder, make_keys
from etude.clock import to_us
from etude.files import Files, replace_file
from etude.gateway.known_devices import FILE as KNOWN_DEVICES
from etude.gateway.known_devices import KnownDevices
from etude.people.binding_records import Binding, Held
from etude.people.gateway_token import path_of
from etude.practice.assigned import Assigned, AssignmentNews, LessonAddress
from etude.practice.known_assignments import FILE as KNOWN_ASSIGNMENTS
from etude.practice.known_assignments import KnownAssignments
from etude.settings import Settings, load
from etude.testing import device_ota
from etude.testing.fake_device import FakeDevice
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.ports import free_port
from etude.testing.simulation import read_sessions
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop

TOY = "02:00:00:00:01:00"
ANNA, BEN = 1, 2
APP, TASK = "english_learning", "shadowing"
MINUTE_US = 60_000_000


def set_up(tmp_path: Path) -> Settings:
    """A gateway's folder with the lessons a, b, c, d; web is where nobody listens."""
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
    for lesson_id in "abcd":
        part = Part(name="01.mp3", text=lesson_id, lasts_ms=300)
        write_lesson(settings.lessons / APP / TASK / "lessons" / lesson_id, [part])
    return settings


def raw(item: msgspec.Struct) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(item))


async def tell(settings: Settings, clock: LoopClock) -> None:
    """Leave the files of a gateway that was told this, and died.

    Anna has the toy for four minutes, then Ben. Hers: b, and c in the second minute. His: d.
    """
    now_us = to_us(clock.now())
    known = KnownDevices(settings.gateway / KNOWN_DEVICES, clock)
    handed_on = now_us + 4 * MINUTE_US
    binding = Binding(
        device_id=TOY,
        device_key=1,
        client_id=FakeDevice(TOY).client_id,
        holdings=(
            Held(learner_key=ANNA, starts_us=0, ends_us=handed_on),
            Held(learner_key=BEN, starts_us=handed_on),
        ),
    )
    await known.replace_bindings([raw(binding)])
    plan = (
        ("b", ANNA, now_us, None),
        ("c", ANNA, now_us + MINUTE_US, now_us + 2 * MINUTE_US),
        ("d", BEN, now_us, None),
    )
    assignments = KnownAssignments(settings.gateway / KNOWN_ASSIGNMENTS, clock, lambda _: None)
    await assignments.replace(
        [
            raw(
                AssignmentNews(
                    assignment_key=key,
                    assigned=Assigned(
                        assignment_key=key,
                        assignment_id=f"as-{lesson_id}",
                        lesson=LessonAddress(app_id=APP, task_id=TASK, lesson_id=lesson_id),
                        starts_us=starts_us,
                        ends_us=ends_us,
                        learner_key=learner_key,
                    ),
                )
            )
            for key, (lesson_id, learner_key, starts_us, ends_us) in enumerate(plan)
        ]
    )


def test_dated_assignments_come_and_go_while_web_is_dead(tmp_path: Path) -> None:
    """One begins, ends, the toy is handed on: the right lesson each time, from the file alone."""
    settings = set_up(tmp_path)

    async def play() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        await tell(settings, clock)
        async with open_gateway(settings, clock) as gateway:
            device = FakeDevice(TOY)
            url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
            for minute in (0.0, 1.25, 2.5, 4.5):
                passed_s = asyncio.get_running_loop().time() - 1000.0
                await asyncio.sleep(max(0.0, minute * 60.0 - passed_s))
                async with httpx2.AsyncClient(trust_env=False) as client:
                    told = await device_ota.ask(client, url, device)
                device.token = told.token
                await device.connect(told.host, told.port, told.path)
                await asyncio.sleep(1.0)
                device.wake("start practice")
                await asyncio.sleep(10.0)
                device.leave()
                await asyncio.sleep(1.0)
            device.scrap()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play())
    starts = [events[0] for events in read_sessions(settings.gateway / "journals")]
    starts.sort(key=lambda start: str(start["meta"]["started_at"]))
    played = [(start["meta"]["assignment_id"], start["value"]["lesson_id"]) for start in starts]
    assert played == [("as-b", "b"), ("as-c", "c"), ("as-b", "b"), ("as-d", "d")]
