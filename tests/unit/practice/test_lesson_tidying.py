"""Fetched lessons go once nobody has named them for long, and never while somebody does."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest

from etude.clock import RandomIds, to_us
from etude.files import armed
from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.course_lessons import CourseLessons
from etude.practice.known_assignments import KnownAssignments
from etude.practice.lesson_packs import LessonPacks, Pack, PackClip, read_pack
from etude.practice.lesson_supply import HELD_S, LessonSupply
from etude.practice.lesson_tidying import UNNAMED, LessonTidying, course_folders, pack_folders
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason, Mode, SessionStart
from etude.practice.supplies import Supplies
from etude.testing.clocks import ManualClock
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.scene_registry import SceneRegistry, scene

UNIT1 = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="unit1")
PLACE = "english_learning/shadowing/lessons/unit1"
DAY = timedelta(days=1)
Play = Callable[["Gateway"], Awaitable[None]]


class Crash(BaseException):
    """The process ends here."""


class Gateway:
    """A gateway's lessons, journals and what it knows; web is a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock()
        self.web, self.packs = root / "web", root / "packs"
        write_lesson(self.web / PLACE, [Part(name="01.mp3", text="Hello.", lasts_ms=300)])
        self.registry = SceneRegistry(root / "classrooms")
        self.pin: CoursewarePin = self.registry.publish(1, scene("Good morning."))
        self.recorder = Recorder(root / "journals", clock=self.clock, ids=RandomIds())
        self.known = KnownAssignments(root / "known.json", self.clock, lambda _: None)
        self.fetches = 0
        self.supplies = Supplies(
            CourseLessons(root / "courses", self.registry.ask, self.registry.download),
            LessonPacks(self.packs, root / "own", self.ask, self.fetch),
        )
        self.tidying = LessonTidying(
            courses=root / "courses",
            packs=self.packs,
            journals=root / "journals",
            supplies=self.supplies,
            assignments=self.known,
            practising=lambda: self.recorder.practising,
            clock=self.clock,
        )

    def ask(self, address: LessonAddress) -> Pack:
        pack = read_pack(self.web, address)
        assert pack is not None
        return pack

    def fetch(self, _address: LessonAddress, clip: PackClip, into: BinaryIO) -> None:
        self.fetches += 1
        into.write((self.web / PLACE / clip.clip).read_bytes())

    async def assign(self, *assigned: Assigned) -> None:
        """Web tells what is assigned, and only that."""
        news = [{"assignment_key": one.assignment_key, "assigned": one} for one in assigned]
        await self.known.replace([msgspec.Raw(msgspec.json.encode(one)) for one in news])
        self.supplies.want(self.known.standing)

    async def have_both(self) -> None:
        """Have both kinds of lesson fetched, last named now."""
        now_s = self.clock.now().timestamp()
        assert await self.supplies.pack(UNIT1)
        assert await self.supplies.course(self.pin)
        for folder in self.folders():
            os.utime(folder, (now_s, now_s))
        # Who asked has begun, or has gone away, long ago.
        for supply in (self.supplies._packs, self.supplies._courses):
            supply._asked_at_s = dict.fromkeys(supply._asked_at_s, -2 * HELD_S)

    def folders(self) -> list[Path]:
        found = [*course_folders(self.root / "courses"), *pack_folders(self.packs)]
        return [folder for _, folder in found]

    def assigned(self, *, course: bool = False, ends_in: timedelta | None = None) -> Assigned:
        ends = None if ends_in is None else to_us(self.clock.now() + ends_in)
        return Assigned(
            assignment_key=2 if course else 1,
            assignment_id="a",
            lesson=UNIT1,
            starts_us=0,
            ends_us=ends,
            device_id="toy-1",
            courseware=self.pin if course else None,
        )


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Play], None]:
    def played(what: Play) -> None:
        async def main() -> None:
            gateway = Gateway(tmp_path)
            try:
                async with asyncio.timeout(120):
                    await what(gateway)
            finally:
                await gateway.supplies.close()

        asyncio.run(main())

    return played


def test_what_nobody_names_for_long_goes(play: Any) -> None:
    """A day less than the time it stays; then both kinds go, and can be fetched again."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        await gateway.assign()
        gateway.clock.advance((UNNAMED - DAY).total_seconds())
        assert await gateway.tidying.tidy() == 0
        assert len(gateway.folders()) == 2
        gateway.clock.advance(2 * DAY.total_seconds())
        assert await gateway.tidying.tidy() == 2
        assert gateway.folders() == []
        await gateway.have_both()
        assert (len(gateway.folders()), gateway.fetches) == (2, 2)

    play(what)


def test_what_is_assigned_stays_and_its_time_begins_anew(play: Any) -> None:
    """However old; after its assignment is over it stays as long as any other."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        await gateway.assign(gateway.assigned(), gateway.assigned(course=True))
        gateway.clock.advance(400 * DAY.total_seconds())
        assert await gateway.tidying.tidy() == 0
        await gateway.assign()
        gateway.clock.advance((UNNAMED - DAY).total_seconds())
        assert await gateway.tidying.tidy() == 0
        assert len(gateway.folders()) == 2
        gateway.clock.advance(2 * DAY.total_seconds())
        assert await gateway.tidying.tidy() == 2

    play(what)


def test_nothing_goes_before_web_has_told_what_is_assigned(play: Any) -> None:
    """A gateway that knows of no assignment, because its cache is gone, removes nothing."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        gateway.clock.advance(400 * DAY.total_seconds())
        assert await gateway.tidying.tidy() == 0
        assert len(gateway.folders()) == 2

    play(what)


def start(gateway: Gateway, *, course: bool) -> SessionStart:
    return SessionStart(
        device_id="toy-1",
        app_id=UNIT1.app_id,
        task_id=UNIT1.task_id,
        mode=Mode.SHADOWING,
        lesson_id="cw" if course else UNIT1.lesson_id,
        courseware=msgspec.structs.asdict(gateway.pin) | {"title": "x"} if course else None,
    )


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_session_or_journal_speaks_of_stays(play: Any, *, ended: bool) -> None:
    """While a session goes on, written or not, and as long as its journal is on the disk."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        await gateway.assign()
        gateway.clock.advance(2 * UNNAMED.total_seconds())
        for course in (False, True):
            recording = gateway.recorder.begin(start(gateway, course=course))
            if ended:
                recording.end(EndReason.LIST_COMPLETED)
        if ended:
            gateway.recorder.start()
            gateway.recorder.close()
        assert len(list(gateway.recorder.practising)) == (0 if ended else 2)
        assert await gateway.tidying.tidy() == 0
        assert len(gateway.folders()) == 2

    play(what)


def test_whoever_asked_just_now_keeps_it(play: Any) -> None:
    """Between a toy's question and the beginning of its session nothing is taken away."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        await gateway.assign()
        gateway.clock.advance(2 * UNNAMED.total_seconds())
        assert await gateway.supplies.pack(UNIT1)
        assert await gateway.supplies.course(gateway.pin)
        assert await gateway.tidying.tidy() == 0
        assert len(gateway.folders()) == 2

    play(what)


def test_whoever_asks_while_it_goes_has_it_fetched(tmp_path: Path) -> None:
    """The removal is waited for, then the lesson is made: nobody plays one that is going."""
    folder = tmp_path / "lesson"
    folder.mkdir()

    def make(_: str) -> Path:
        folder.mkdir(exist_ok=True)
        return folder

    async def main() -> None:
        supply: LessonSupply[str, Path] = LessonSupply(make, lambda _: folder)
        removing = asyncio.Event()
        loop = asyncio.get_running_loop()
        goes_on = asyncio.Event()

        def remove() -> None:
            loop.call_soon_threadsafe(removing.set)
            asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result(60)
            folder.rmdir()

        leaving = asyncio.create_task(supply.let_go("unit1", remove))
        await removing.wait()
        supply.want(["unit1"])
        asked = asyncio.create_task(supply._had("unit1"))
        await asyncio.sleep(0.05)
        assert not asked.done()
        goes_on.set()
        assert await leaving
        assert await asked == folder
        assert folder.is_dir()
        assert not await supply.let_go("unit1", remove)
        await supply.close()

    asyncio.run(main())


@pytest.mark.parametrize("point", ["unplaced", "removed"])
@pytest.mark.parametrize("hit", [1, 2])
def test_a_kill_while_it_goes(play: Any, point: str, hit: int) -> None:
    """It is whole or not there; the next round removes the rest, and it can be fetched again."""

    async def what(gateway: Gateway) -> None:
        await gateway.have_both()
        await gateway.assign()
        gateway.clock.advance(2 * UNNAMED.total_seconds())
        hits = 0

        def crash(name: str) -> None:
            nonlocal hits
            if name == f"practice.fetched_lesson.{point}":
                hits += 1
                if hits == hit:
                    raise Crash

        with armed(crash), pytest.raises(Crash):
            await gateway.tidying.tidy()
        assert len(gateway.folders()) == 2 - hit
        await gateway.tidying.tidy()
        assert gateway.folders() == []
        assert list(gateway.root.rglob("*.gone")) == []
        await gateway.have_both()
        assert len(gateway.folders()) == 2

    play(what)
