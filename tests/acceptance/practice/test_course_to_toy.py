"""From material to a toy with real processes: pinned, republished, withdrawn, damaged, killed."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from etude.classroom.loading import read_classroom, write_classroom
from etude.cli import exits
from etude.cli.app import run as run_command
from etude.practice.known_assignments import FILE
from etude.speech.clip_cache import ClipCache
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.nursery import ForkedProcess, Nursery
from etude.testing.playmate import PATIENCE_S, Own, Playmate
from etude.testing.playroom import Playroom

SENTENCES = [
    "The sun comes up at six.",
    "I wash my face with water.",
    "Our teacher opens the window.",
    "The bell rings and we run.",
    "Grandma buys fresh fish.",
    "The basket is too heavy.",
    "Father cooks rice and beans.",
    "The moon is round tonight.",
]
LAST = SENTENCES[6:]
MODULE = 3
MODULES = 4  # what eight sentences are cut into


class Town:
    """An installation with one toy, its learner, and a published course of four modules."""

    def __init__(
        self, room: Playroom, folder: Path, nursery: Nursery, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.room = room
        self._capsys = capsys
        self._nursery = nursery
        self.worker: ForkedProcess | None = None
        self.learner = self.etude("learner", "create", "Anna")["learner_id"]
        self.own = self._furnished(folder)
        self.etude("device", "hold", self.own.device_id, self.learner)
        made = self.etude("course", "create", str(folder))
        self.course = str(made["course_id"])
        self.etude("course", "start", self.course)
        self.publish()

    def _furnished(self, folder: Path) -> Own:
        """Write the material; return the toy with the sounds of its lesson."""
        parts = [
            Part(name=f"{number:02}.mp3", text=text, lasts_ms=300)
            for number, text in enumerate(SENTENCES, 1)
        ]
        write_lesson(folder, parts)
        cache = ClipCache(self.room.settings.clips)
        (first,) = self.room.toys()
        sounds = [cache.encode(folder / f"{number:02}.mp3").packets for number in (7, 8)]
        names = ("01.mp3", "02.mp3")
        prompts = {name: packets for name, packets in first.own.clips.items() if "." not in name}
        return msgspec.structs.replace(
            first.own,
            parts=tuple(Part(name=name, text=name, lasts_ms=300) for name in names),
            clips=prompts | dict(zip(names, sounds, strict=True)),
            entry="start practice",
        )

    def etude(self, *arguments: str) -> Any:
        """Run a command; return what it printed."""
        self._capsys.readouterr()
        code = run_command([*arguments, "--json"])
        printed = self._capsys.readouterr()
        assert code == exits.OK, printed.err
        return json.loads(printed.out)

    def publish(self) -> int:
        return int(self.etude("course", "publish", self.course)["version"])

    def republish(self, text: str) -> int:
        """Change what the last module's first sentence says, accept that, publish it."""
        modules = self.etude("course", "status", self.course)["modules"]
        file = self.room.settings.classrooms / f"{modules[MODULE]['classroom_id']}.json"
        plain = msgspec.json.decode(file.read_bytes())
        (scene,) = (one for one in plain["scenes"] if one["type"] == "practice")
        scene["content"]["clips"][0]["text"] = text
        file.write_bytes(write_classroom(read_classroom(msgspec.json.encode(plain))))
        self.etude("course", "accept-source", self.course, str(MODULE))
        return self.publish()

    def assign(self) -> dict[str, Any]:
        """Assign the last module to the learner."""
        made = self.etude(
            "assign", "course", self.course, "--module", str(MODULE), "--learner", self.learner
        )
        return dict(made)

    def withdraw(self, version: int) -> None:
        """Take a version of the course away from everybody."""
        self.etude("course", "withdraw", self.course, str(version), "--reason", "A mistake.")

    def start(self, crash_at: str = "") -> None:
        self.room.start_gateway(crash_at)

    def work(self) -> None:
        """Start the worker, which makes reports."""
        self.worker = self._nursery.start(
            "etude.cli.app",
            "worker",
            environment={**self.room.environment, "ETUDE_SPEECH_PROCESSES": "0"},
        )

    def bundles(self) -> list[Path]:
        """The bundles on web's disk."""
        files = [path for path in self.room.settings.blobs.rglob("*") if path.is_file()]
        return [path for path in files if path.read_bytes().startswith(b"PK\x03\x04")]

    async def told(self, *assignment_ids: str) -> None:
        """Wait until the gateway has exactly these on its disk."""
        file = self.room.settings.gateway / FILE

        def known() -> bool:
            if not file.exists():
                return False
            assigned = json.loads(file.read_bytes())["assigned"]
            return {one["assignment_id"] for one in assigned} == set(assignment_ids)

        await until(known)

    async def come(self) -> Playmate:
        """Switch the toy on."""
        toy = Playmate(self.own, self.room.voices, has_card=False)
        async with httpx2.AsyncClient(trust_env=False) as client:
            await toy.come(client, self.room.ota_url)
        await asyncio.sleep(0.5)
        return toy

    def sessions(self) -> list[dict[str, Any]]:
        """What the toy has practised, oldest first: instances with their turns."""
        heads = sorted(
            self.room.instances(self.own.device_id), key=lambda one: int(one["started_at"])
        )
        return [self.room.instance(head["id"]) for head in heads]

    def start_of(self, session_id: str) -> dict[str, Any]:
        event = self.room.events(session_id)[0]
        assert event["event_type"] == "session_start"
        return event


@pytest.fixture
def town(
    tmp_path: Path,
    nursery: Nursery,
    sqlite_copy: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Town]:
    data = tmp_path / "data"
    data.mkdir()
    room = Playroom(tmp_path, sqlite_copy(data), nursery, toys=1, steps=1)
    for name, value in room.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ETUDE_COURSEWARE_PUBLISH_TOKEN", "t" * 40)
    monkeypatch.setenv("ETUDE_SPEECH_PROCESSES", "0")
    with room:
        made = Town(room, tmp_path / "material", nursery, capsys)
        room.start_web()
        yield made
        if made.worker is not None:
            made.worker.kill()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


def heard(toy: Playmate, what: str) -> int:
    """How often the toy has begun to say or play something."""
    return sum((one.what, one.detail) == ("clip", what) for one in toy.timeline)


async def practise(toy: Playmate, times: int) -> None:
    """Ask for what is assigned; return when it has been practised `times` times in all."""
    toy.wake(toy.own.entry)
    await until(lambda: heard(toy, "greeting") == times)
    await asyncio.sleep(1.0)


async def is_told_of_none(toy: Playmate, times: int) -> None:
    """Ask for what is assigned; return when the toy has said so often that there is none."""
    toy.wake(toy.own.entry)
    await until(lambda: heard(toy, "no_lesson") == times)
    await asyncio.sleep(1.0)


def test_an_assignment_keeps_its_version_and_the_report_says_which(town: Town) -> None:
    """Assigned v1, republished as v2: the toy plays v1, a second assignment v2; then withdrawn."""
    first = town.assign()
    town.start()
    town.work()
    other = "Mother cooks rice and beans."
    second: dict[str, Any] = {}

    async def play() -> None:
        nonlocal second
        await town.told(first["assignment_id"])
        assert await asyncio.to_thread(town.republish, other) == 2
        toy = await town.come()
        await practise(toy, 1)
        second = await asyncio.to_thread(town.assign)
        await town.told(first["assignment_id"], second["assignment_id"])
        await practise(toy, 2)
        await asyncio.to_thread(town.withdraw, 2)
        await town.told(first["assignment_id"])
        await practise(toy, 3)
        await asyncio.to_thread(town.withdraw, 1)
        await town.told()
        await is_told_of_none(toy, 1)
        await town.room.until_ended([toy], 3)
        toy.scrap()

    asyncio.run(play())
    played = town.sessions()
    texts = [[turn["expected_text"] for turn in one["turns"]] for one in played]
    assert texts == [LAST, [other, LAST[1]], LAST]
    wanted = [first, second, first]
    starts = [town.start_of(one["id"]) for one in played]
    for start, one in zip(starts, wanted, strict=True):
        courseware = start["meta"]["courseware"]
        assert start["meta"]["assignment_id"] == one["assignment_id"]
        assert {name: courseware[name] for name in one["courseware"]} == one["courseware"]
        assert start["value"]["lesson_id"] == one["lesson_id"]
        assert start["value"]["lesson_title"] == courseware["scene_title"]
        assert start["meta"]["rubric"]["id"] == "follow-read-en"
    assert [one["courseware"]["version"] for one in wanted] == [1, 2, 1]
    report = _report(town, played[1]["id"])
    assert report["courseware"] == {
        **starts[1]["meta"]["courseware"],
        "assignment_id": second["assignment_id"],
    }
    assert report["inputs"]["rubric"]["digest"] == starts[1]["meta"]["rubric"]["digest"]


def _report(town: Town, session_id: str) -> dict[str, Any]:
    async def made() -> dict[str, Any]:
        found: dict[str, Any] = {}

        def there() -> bool:
            answer = town.room.get(f"/api/v1/sessions/{session_id}/report")
            if answer.status_code == httpx2.codes.OK:
                found.update(answer.json())
            return bool(found)

        await until(there)
        return found

    return asyncio.run(made())


def test_a_damaged_bundle_is_no_lesson_until_it_is_whole_again(town: Town) -> None:
    """A byte on web's disk: refused by its code, nothing written; mended, it is practised."""
    made = town.assign()
    bundles = town.bundles()
    assert len(bundles) == MODULES
    whole = {path: path.read_bytes() for path in bundles}
    for path, content in whole.items():
        path.chmod(0o600)
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    town.start()
    lessons = town.room.settings.course_lessons

    async def play() -> None:
        await town.told(made["assignment_id"])
        toy = await town.come()
        await is_told_of_none(toy, 1)
        assert not lessons.exists()
        for path, content in whole.items():
            path.write_bytes(content)
        await practise(toy, 1)
        await town.room.until_ended([toy], 1)
        toy.scrap()

    asyncio.run(play())
    codes = {line["error_code"] for line in town.room.gateway_log("lesson_supply.refused")}
    assert codes
    assert all(code.startswith("BUNDLE_") for code in codes)
    assert [path.name for path in lessons.iterdir()] == [made["lesson_id"]]


@pytest.mark.parametrize(
    "point", ["practice.course_lesson.written", "practice.course_lesson.placed"]
)
def test_a_gateway_killed_in_the_midst_plays_after_its_restart(town: Town, point: str) -> None:
    """`kill -9` while the lesson is laid out: started again it is whole, and is practised."""
    made = town.assign()
    lessons = town.room.settings.course_lessons

    async def play() -> None:
        assert town.room.gateway is not None
        await asyncio.to_thread(town.room.gateway.wait)
        left = {path.name for path in lessons.iterdir()}
        whole = point.endswith("placed")
        assert left == {made["lesson_id"] if whole else f".{made['lesson_id']}.new"}
        await asyncio.to_thread(town.start)
        toy = await town.come()
        await practise(toy, 1)
        await town.room.until_ended([toy], 1)
        toy.scrap()

    town.start(point)
    asyncio.run(play())
    (session,) = town.sessions()
    assert [turn["expected_text"] for turn in session["turns"]] == LAST
    assert {path.name for path in lessons.iterdir()} == {made["lesson_id"]}


def test_web_may_die_once_the_lesson_is_there(town: Town) -> None:
    """Fetched, then web is killed and the gateway started anew: the toy plays all the same."""
    made = town.assign()
    town.start()

    async def play() -> None:
        await until((town.room.settings.course_lessons / made["lesson_id"]).exists)
        await town.told(made["assignment_id"])
        assert town.room.web is not None
        assert town.room.gateway is not None
        await asyncio.to_thread(town.room.web.kill)
        await asyncio.to_thread(town.room.gateway.kill)
        await asyncio.to_thread(town.start)
        toy = await town.come()
        await practise(toy, 1)
        await asyncio.to_thread(town.room.start_web)
        await town.room.until_ended([toy], 1)
        toy.scrap()

    asyncio.run(play())
    (session,) = town.sessions()
    assert town.start_of(session["id"])["meta"]["courseware"]["version"] == 1
