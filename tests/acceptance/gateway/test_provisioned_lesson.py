"""The whole gateway as `etude gateway` puts it together, with no web and no database anywhere.

Its loop's time jumps: who comes back after ten minutes comes back after ten minutes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from etude.cli.gateway import Gateway, open_gateway
from etude.cli.installation import make_folder, make_keys
from etude.files import Files, replace_file
from etude.gateway.known_devices import FILE, KnownDevices
from etude.people.binding_records import Binding
from etude.people.gateway_token import path_of
from etude.practice.apps import shipped_apps
from etude.practice.lesson_build import CheckedLesson, check_lesson
from etude.practice.lesson_install import install_lesson
from etude.practice.records import Mode
from etude.settings import Settings, load
from etude.speech.clip_cache import ClipCache
from etude.testing import device_ota
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice
from etude.testing.learner_voice import Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part
from etude.testing.ports import free_port
from etude.testing.scenario_checks import verdicts
from etude.testing.simulation import Watched, read_sessions
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop

SAMPLES = (
    ("english_learning", "shadowing", "greetings"),
    ("chinese_reading", "follow_read", "spring_dawn"),
    ("story_time", "retelling", "crow"),
)
Lessons = dict[str, CheckedLesson]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A gateway's folder: keys, a token, the sample lessons; web is where nobody listens."""
    made = load(
        data=tmp_path / "data",
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=f"http://127.0.0.1:{free_port()}",
    )
    make_folder(Files(), made.data)
    make_keys(Files(), made.data)
    replace_file(Files(), path_of(made.data), b"nobody-asks-for-it\n")
    return made


@pytest.fixture
def lessons(settings: Settings) -> Lessons:
    with as_file(files("etude.practice") / "sample_lessons") as shipped:
        for app_id, task_id, lesson_id in SAMPLES:
            folder = shipped / app_id / task_id / "lessons" / lesson_id
            install_lesson(check_lesson(folder), settings.lessons, app_id, task_id)
    return {
        app_id: check_lesson(settings.lessons / app_id / task_id / "lessons" / lesson_id)
        for app_id, task_id, lesson_id in SAMPLES
    }


def device_id(number: int) -> str:
    return f"02:00:00:00:01:{number:02x}"


@asynccontextmanager
async def serving(settings: Settings, toys: int) -> AsyncIterator[Gateway]:
    """A gateway that has been told of so many toys once, and is alone since."""
    clock = LoopClock(asyncio.get_running_loop())
    make_folder(Files(), settings.gateway)
    known = KnownDevices(settings.gateway / FILE, clock)
    bindings = [
        Binding(
            device_id=device_id(number),
            device_key=number + 1,
            client_id=FakeDevice(device_id(number)).client_id,
        )
        for number in range(toys)
    ]
    await known.replace_bindings([msgspec.Raw(msgspec.json.encode(one)) for one in bindings])
    async with open_gateway(settings, clock) as gateway:
        yield gateway


def parts_of(lesson: CheckedLesson | None) -> list[Part]:
    clips = lesson.manifest.clips if lesson else ()
    return [Part(name=c.clip, text=c.text or "", lasts_ms=c.duration_ms) for c in clips]


def toy(
    settings: Settings,
    number: int,
    place: tuple[str, str, str],
    lesson: CheckedLesson | None,
    learner: str = "perfect",
    *,
    has_card: bool = False,
) -> Watched:
    app_id, task_id, lesson_id = place
    folder = f"{app_id}/{task_id}/lessons/{lesson_id}"
    parts, cache = parts_of(lesson), ClipCache(settings.clips)
    book = {p.name: cache.encode(settings.lessons / folder / p.name).packets for p in parts}
    card = FakeCard({f"/{folder}/{p.name}": p.lasts_ms for p in parts}) if has_card else None
    made = Watched(device_id(number), card=card, book=ClipBook(book))
    ActingLearner(made, SCRIPTS[learner], parts, Voices())
    return made


async def come(gateway: Gateway, device: FakeDevice) -> None:
    url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
    async with httpx2.AsyncClient(trust_env=False) as client:
        told = await device_ota.ask(client, url, device)
    device.token = told.token
    await device.connect(told.host, told.port, told.path)
    await asyncio.sleep(0.5)


def entry_of(app_id: str, task_id: str) -> str:
    return shipped_apps().task(app_id, task_id).entry_phrases[0]


def in_virtual_time(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(body())


def ends(settings: Settings) -> list[tuple[str | None, list[int]]]:
    """The end of every session, and the steps that have a turn, in order."""
    found = []
    for events in read_sessions(settings.gateway / "journals"):
        over = [e["value"]["end_reason"] for e in events if e["event_type"] == "session_end"]
        assert len(over) <= 1
        seen = [e for e in events if e["event_type"] == "signal_observation"]
        found.append((over[0] if over else None, [e["value"]["step_index"] for e in seen]))
    return found


def test_who_comes_back_too_late_finds_the_session_cancelled_once(
    settings: Settings, lessons: Lessons
) -> None:
    """Eleven minutes, a gateway that starts anew, a second return: one end, and a new session."""
    place = SAMPLES[0]

    async def leave() -> None:
        async with serving(settings, 1) as gateway:
            device = toy(settings, 0, place, lessons[place[0]])
            await come(gateway, device)
            device.wake(entry_of(*place[:2]))
            await asyncio.sleep(4.0)  # in the second step
            device.leave()
            await asyncio.sleep(660.0)
            await come(gateway, device)
            await asyncio.sleep(30.0)
            device.scrap()

    async def start_again() -> None:
        async with serving(settings, 1) as gateway:
            device = toy(settings, 0, place, lessons[place[0]])
            await come(gateway, device)
            await asyncio.sleep(5.0)
            assert not [one for one in device.timeline if one.what == "clip"]
            device.wake(entry_of(*place[:2]))
            await asyncio.sleep(30.0)
            device.scrap()

    in_virtual_time(leave)
    assert ends(settings) == [("disconnected", [0])]
    in_virtual_time(start_again)
    assert sorted(ends(settings)) == [("disconnected", [0]), ("list_completed", [0, 1, 2, 3])]


def test_who_comes_back_in_time_goes_on(settings: Settings, lessons: Lessons) -> None:
    """Nine minutes later the lesson goes on with the clip that was on, in the same session."""
    place = SAMPLES[0]

    async def body() -> None:
        async with serving(settings, 1) as gateway:
            device = toy(settings, 0, place, lessons[place[0]])
            await come(gateway, device)
            device.wake(entry_of(*place[:2]))
            await asyncio.sleep(4.0)
            device.leave()
            await asyncio.sleep(540.0)
            seen = len(device.timeline)
            await come(gateway, device)
            await asyncio.sleep(30.0)
            clips = [one.detail for one in device.timeline[seen:] if one.what == "clip"]
            assert clips[:3] == ["02.mp3", "03.mp3", "04.mp3"]
            device.scrap()

    in_virtual_time(body)
    assert ends(settings) == [("list_completed", [0, 1, 2, 3])]


def test_no_toy_is_told_a_score(settings: Settings, lessons: Lessons) -> None:
    """Right, wrong and silent, streamed and from a card, reading and retelling: not one word."""
    english, chinese, story = SAMPLES
    check_in = ("story_time", "check_in", "none")
    cases: Sequence[tuple[tuple[str, str, str], str, bool]] = (
        (english, "perfect", False),
        (english, "wrong", False),
        (english, "silent", True),
        (chinese, "wrong", True),
        (story, "wrong", False),
        (check_in, "silent", False),
    )

    async def body() -> None:
        async with serving(settings, len(cases)) as gateway:
            devices = []
            for number, (place, learner, has_card) in enumerate(cases):
                lesson = None if place is check_in else lessons[place[0]]
                assert shipped_apps().task(*place[:2]).mode is Mode.SHADOWING
                device = toy(settings, number, place, lesson, learner, has_card=has_card)
                devices.append((device, parts_of(lesson)))
                await come(gateway, device)
                device.wake(entry_of(*place[:2]))
            await asyncio.sleep(75.0)
            for device, parts in devices:
                assert len(device.texts) > 3
                assert list(verdicts(device.texts, {part.text for part in parts})) == []
                device.scrap()

    assert list(verdicts(['{"type":"stt","text":"Well done!"}'], ()))  # it would be found
    in_virtual_time(body)
    assert sorted(end or "" for end, _ in ends(settings)) == ["list_completed"] * len(cases)
