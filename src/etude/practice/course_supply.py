"""Lessons of published courses are on the gateway's disk before a toy asks for them.

What is assigned is fetched in the background when the news of it arrives, again and again, later
and later, until it is there. A toy that asks before that has its lesson fetched at once, and waits
for it a few seconds: before the clock of its lesson starts, never after.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from etude.errors import EtudeError
from etude.practice.assigned import CoursewarePin
from etude.practice.course_lessons import CourseLesson, CourseLessons

FIRST_PAUSE_S: Final = 2.0
LONGEST_PAUSE_S: Final = 300.0
DEMAND_S: Final = 10.0
"""How long a toy that asks for its lesson waits for it to be fetched."""
_AT_ONCE: Final = 2

_log = structlog.get_logger(__name__)


class CourseSupply:
    """See the module. Belongs to one event loop; `close` it there."""

    def __init__(self, lessons: CourseLessons) -> None:
        """Nothing is fetched before it is wanted."""
        self._lessons = lessons
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="courses")
        self._trying: dict[CoursewarePin, asyncio.Task[None]] = {}
        self._under_way: dict[CoursewarePin, asyncio.Future[CourseLesson | None]] = {}

    def want(self, pins: Iterable[CoursewarePin]) -> None:
        """Take these for all that is assigned: fetch what is not there, give up the others."""
        wanted = set(pins)
        for pin in self._trying.keys() - wanted:
            self._trying.pop(pin).cancel()
        for pin in wanted - self._trying.keys():
            self._trying[pin] = asyncio.create_task(self._keep_trying(pin))

    async def get(self, pin: CoursewarePin) -> CourseLesson | None:
        """Return a lesson, fetched now if need be; None if it cannot be had in `DEMAND_S`."""
        try:
            async with asyncio.timeout(DEMAND_S):
                return await self._had(pin)
        except TimeoutError:
            _log.warning("a lesson is not there yet", action="course_lesson.late")
            return None

    async def until_settled(self) -> None:
        """Return once everything that is wanted is there."""
        await asyncio.gather(*self._trying.values())

    async def close(self) -> None:
        """Fetch nothing more; what is under way in a thread is waited for in the background."""
        for task in self._trying.values():
            task.cancel()
        await asyncio.gather(*self._trying.values(), return_exceptions=True)
        self._trying.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _keep_trying(self, pin: CoursewarePin) -> None:
        pause_s = FIRST_PAUSE_S
        while await self._had(pin) is None:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _had(self, pin: CoursewarePin) -> CourseLesson | None:
        """Make a lesson in a thread; whoever asks meanwhile shares the attempt."""
        running = self._under_way.get(pin)
        if running is None:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._threads, self._attempt, pin)
            self._under_way[pin] = running
            running.add_done_callback(lambda _: self._under_way.pop(pin, None))
        return await asyncio.shield(running)

    def _attempt(self, pin: CoursewarePin) -> CourseLesson | None:
        try:
            return self._lessons.made(pin)
        except (EtudeError, OSError) as error:
            code = error.code if isinstance(error, EtudeError) else type(error).__name__
            _log.warning("no lesson of a course", action="course_lesson.refused", error_code=code)
        except Exception:  # noqa: BLE001 - what is in a bundle comes from outside
            _log.exception("no lesson of a course", action="course_lesson.failed")
        return None
