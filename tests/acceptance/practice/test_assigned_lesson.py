"""Assigned at the command line, practised on a toy, read back over HTTP, all by `etude serve`."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.clock import SystemClock
from etude.practice.known_assignments import FILE
from etude.speech.clip_cache import ClipCache
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.nursery import Nursery
from etude.testing.playmate import PATIENCE_S, Playmate
from etude.testing.playroom import Playroom
from etude.testing.server import ServerProcess

APP, TASK = "toy00", "reading"
LESSONS = {"unit1": ("01.mp3", "02.mp3"), "unit2": ("21.mp3", "22.mp3"), "unit3": ("31.mp3",)}
_HZ = {"unit2": 400.0, "unit3": 500.0}


class Class:
    """A running installation with one toy, held by one learner, and three lessons."""

    def __init__(self, room: Playroom, capsys: pytest.CaptureFixture[str]) -> None:
        self.room = room
        self._capsys = capsys
        cache, root = ClipCache(room.settings.clips), room.settings.lessons / APP / TASK / "lessons"
        (first,) = room.toys()
        clips = dict(first.own.clips)
        for lesson_id, lowest_hz in _HZ.items():
            parts = [Part(name=name, text=name, lasts_ms=900) for name in LESSONS[lesson_id]]
            write_lesson(root / lesson_id, parts, lowest_hz)
            clips |= {one.name: cache.encode(root / lesson_id / one.name).packets for one in parts}
        names = [name for names in LESSONS.values() for name in names]
        parts = [Part(name=name, text=name, lasts_ms=300) for name in names]
        self.own = msgspec.structs.replace(first.own, parts=tuple(parts), clips=clips)
        self.learner = ""

    def etude(self, *arguments: str) -> Any:
        """Run a command; return what it printed."""
        self._capsys.readouterr()
        code = run_command([*arguments, "--json"])
        printed = self._capsys.readouterr()
        assert code == exits.OK, printed.err
        return json.loads(printed.out)

    def assign(self, lesson_id: str, *more: str) -> str:
        """Assign a lesson to the learner."""
        path = f"{APP}/{TASK}/{lesson_id}"
        made = self.etude("assign", "lesson", path, "--learner", self.learner, *more)
        return str(made["assignment_id"])

    async def until_told(self, *assignment_ids: str) -> None:
        """Wait until the gateway has exactly these on its disk."""
        file = self.room.settings.gateway / FILE

        def told() -> bool:
            if not file.exists():
                return False
            known = json.loads(file.read_bytes())["assigned"]
            return {one["assignment_id"] for one in known} == set(assignment_ids)

        await until(told)

    def toy(self) -> Playmate:
        """The toy, switched on anew."""
        return Playmate(self.own, self.room.voices, has_card=False)

    def start_of(self, instance: dict[str, Any]) -> dict[str, Any]:
        """The `session_start` of an instance."""
        start = self.room.events(instance["id"])[0]
        assert start["event_type"] == "session_start"
        return start


@pytest.fixture
def school(
    tmp_path: Path,
    nursery: Nursery,
    sqlite_copy: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Class]:
    data = tmp_path / "data"
    data.mkdir()
    room = Playroom(tmp_path, sqlite_copy(data), nursery, toys=1, steps=2)
    for name, value in room.environment.items():
        monkeypatch.setenv(name, value)
    made = Class(room, capsys)
    made.learner = made.etude("learner", "create", "Anna")["learner_id"]
    made.etude("device", "hold", made.own.device_id, made.learner)
    server = ServerProcess(data, command="serve", environment=room.environment)
    server.port = urlsplit(room.url).port or 0
    with server:
        yield made


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


def greetings(toy: Playmate) -> int:
    return sum((one.what, one.detail) == ("clip", "greeting") for one in toy.timeline)


async def practised(toy: Playmate, *lesson_ids: str) -> None:
    """Wait until the toy has been greeted after each of these, and compare what it played."""
    await until(lambda: greetings(toy) == len(lesson_ids))
    assert list(toy.clips_begun) == [name for one in lesson_ids for name in LESSONS[one]]
    await asyncio.sleep(1.0)  # the greeting ends


def test_the_toy_plays_what_was_assigned(school: Class) -> None:
    """Assigned, assigned anew in the midst, expired: the right lesson each time, and its id."""
    now = SystemClock().now()
    over = (now - timedelta(hours=2)).isoformat(), (now - timedelta(hours=1)).isoformat()
    school.assign("unit1", "--from", over[0], "--until", over[1])
    second = school.assign("unit2", "--ratio", "1.5")
    third = ""

    async def play() -> None:
        nonlocal third
        await school.until_told(second)
        toy = school.toy()
        async with httpx2.AsyncClient(trust_env=False) as client:
            await toy.come(client, school.room.ota_url)
        await asyncio.sleep(0.5)
        toy.wake(school.own.entry)
        await until(lambda: bool(toy.clips_begun))
        third = await asyncio.to_thread(school.assign, "unit3")  # the running lesson stays
        await school.until_told(second, third)
        await practised(toy, "unit2")
        toy.wake("开始练习")
        await practised(toy, "unit2", "unit3")
        await asyncio.to_thread(school.etude, "assign", "withdraw", third)
        await asyncio.to_thread(school.etude, "assign", "withdraw", second)
        await school.until_told()
        toy.wake(school.own.entry)  # nothing counts: the task's first lesson
        await practised(toy, "unit2", "unit3", "unit1")
        await school.room.until_ended([toy], 3)
        toy.scrap()

    asyncio.run(play())
    heads = sorted(school.room.instances(school.own.device_id), key=lambda one: one["started_at"])
    starts = [school.start_of(head) for head in heads]
    assert [start["value"]["lesson_id"] for start in starts] == ["unit2", "unit3", "unit1"]
    assert [start["meta"].get("assignment_id") for start in starts] == [second, third, None]
    assert [start["value"]["listen_ratio"] for start in starts] == [1.5, 1.2, 1.2]
    assert [head["learner_id"] for head in heads] == [school.learner] * 3
    assert [head["end_reason"] for head in heads] == ["list_completed"] * 3
