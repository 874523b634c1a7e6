"""Lessons from web are fetched before they are asked for, and again when they are."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from etude.courseware.errors import DownloadFailedError
from etude.courseware.loading import Registered
from etude.practice.assigned import CoursewarePin
from etude.practice.course_lessons import CourseLesson, CourseLessons
from etude.practice.lesson_supply import DEMAND_S, LessonSupply
from etude.testing.scene_registry import SceneRegistry, scene
from etude.testing.virtual_time import run

Supply = LessonSupply[CoursewarePin, CourseLesson]
Play = Callable[[Supply], Coroutine[Any, Any, None]]


class Slow(SceneRegistry):
    """Counts downloads, and lets none end while `gate` is shut."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.gate = threading.Event()
        self.gate.set()

    def download(self, registered: Registered, into: BinaryIO) -> None:
        self.gate.wait(30)
        super().download(registered, into)

    @property
    def downloads(self) -> int:
        return sum(one.startswith("download") for one in self.asked)


async def until_settled(supply: Supply) -> None:
    """Return once everything that is wanted is there."""
    await asyncio.gather(*supply._trying.values())


@pytest.fixture
def registry(tmp_path: Path) -> Slow:
    return Slow(tmp_path / "classrooms")


@pytest.fixture
def supplied(tmp_path: Path, registry: Slow) -> Callable[[Play], None]:
    def play(what: Play) -> None:
        async def main() -> None:
            lessons = CourseLessons(tmp_path / "lessons", registry.ask, registry.download)
            supply: Supply = LessonSupply(lessons.made)
            try:
                await what(supply)
            finally:
                await supply.close()

        run(main)

    return play


def test_what_is_assigned_is_there_before_anybody_asks(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """The news is enough; who asks then has it without the network."""
    pin = registry.publish(1, scene("The sea swells."))

    async def play(supply: Supply) -> None:
        supply.want([pin])
        await until_settled(supply)
        registry.fault = DownloadFailedError(reason="connect")
        found = await supply.get(pin)
        assert found is not None
        supply.want([pin])
        await until_settled(supply)

    supplied(play)
    assert registry.downloads == 1


def test_a_server_that_is_away_is_tried_again_until_it_is_back(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """Later and later, for an hour; then the lesson comes by itself."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.fault = DownloadFailedError(reason="connect")

    async def play(supply: Supply) -> None:
        supply.want([pin])
        await asyncio.sleep(3600)
        tries = len(registry.asked)
        assert 10 < tries < 30
        registry.fault = None
        await until_settled(supply)

    supplied(play)
    assert registry.downloads == 1


def test_news_are_a_reason_to_try_again_at_once(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """Web is back after hours and tells everything anew: nobody waits for the long pause."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.fault = DownloadFailedError(reason="connect")

    async def play(supply: Supply) -> None:
        supply.want([pin])
        await asyncio.sleep(7200)
        registry.fault = None
        began_s = asyncio.get_running_loop().time()
        supply.want([pin])
        await until_settled(supply)
        assert asyncio.get_running_loop().time() - began_s < 1

    supplied(play)
    assert registry.downloads == 1


def test_what_is_not_assigned_any_more_is_not_fetched(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """Withdrawn while the server is away: nobody asks for it again."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.fault = DownloadFailedError(reason="connect")

    async def play(supply: Supply) -> None:
        supply.want([pin])
        await asyncio.sleep(60)
        supply.want([])
        tries = len(registry.asked)
        await asyncio.sleep(3600)
        assert len(registry.asked) == tries

    supplied(play)


def test_who_asks_at_once_has_it_fetched_once(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """The news, and five toys in the same moment: one download, and each gets the lesson."""
    pin = registry.publish(1, scene("The sea swells."))

    async def play(supply: Supply) -> None:
        supply.want([pin])
        found = await asyncio.gather(*(supply.get(pin) for _ in range(5)))
        assert all(one is not None for one in found)

    supplied(play)
    assert registry.downloads == 1


def test_one_that_cannot_be_had_is_none_and_says_why(
    registry: Slow, supplied: Callable[[Play], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged bundle, an unknown version: no lesson, one line with the code each."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.damage(1, len(registry.bundles[1]) // 2)
    unknown = CoursewarePin(
        courseware_id="cw_other", version=9, content_hash=pin.content_hash, scene_id="p1"
    )

    async def play(supply: Supply) -> None:
        assert await supply.get(pin) is None
        assert await supply.get(unknown) is None

    supplied(play)
    told = capsys.readouterr().out
    assert "BUNDLE_" in told
    assert "REGISTRY_NOT_FOUND" in told


def test_whatever_is_in_a_bundle_ends_no_prefetch(
    registry: Slow, supplied: Callable[[Play], None]
) -> None:
    """An error that nobody thought of is logged, and the lesson tried again."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.fault = ZeroDivisionError()

    async def play(supply: Supply) -> None:
        assert await supply.get(pin) is None
        supply.want([pin])
        await asyncio.sleep(10)
        registry.fault = None
        await until_settled(supply)

    supplied(play)
    assert registry.downloads == 1


def test_a_toy_does_not_wait_for_ever(tmp_path: Path, registry: Slow) -> None:
    """The server never ends: after some seconds there is no lesson; a later question has it."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.gate.clear()
    assert DEMAND_S <= 15

    async def main() -> None:
        lessons = CourseLessons(tmp_path / "l", registry.ask, registry.download)
        supply: Supply = LessonSupply(lessons.made)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await supply.get(pin)
            registry.gate.set()
            assert await supply.get(pin) is not None
        finally:
            await supply.close()

    asyncio.run(main())
    assert registry.downloads == 1


def test_what_is_at_hand_is_played_while_the_newer_one_is_fetched() -> None:
    """The older one at once, even if web never answers; the newer one the next time."""
    made: list[int] = []
    fault: list[Exception] = [DownloadFailedError(reason="connect")]

    def make(_wanted: str) -> int:
        if fault:
            raise fault[0]
        made.append(len(made) + 1)
        return made[-1]

    def at_hand(_wanted: str) -> int | None:
        return made[-1] if made else None

    async def main() -> None:
        supply: LessonSupply[str, int] = LessonSupply(make, at_hand)
        assert await supply.get("unit1") is None
        fault.clear()
        assert await supply.get("unit1") == 1
        assert await supply.get("unit1") == 1
        await asyncio.sleep(1)
        assert await supply.get("unit1") == 2
        await supply.close()

    run(main)
