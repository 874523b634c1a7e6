"""Everything a gateway fetches from web to be practised: courses' lessons, and lesson packs."""

from collections.abc import Callable, Iterable
from pathlib import Path

from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.course_lessons import CourseLesson, CourseLessons
from etude.practice.lesson_packs import LessonPacks
from etude.practice.lesson_supply import LessonSupply


class Supplies:
    """Belongs to one event loop; `close` it there."""

    def __init__(self, courses: CourseLessons, packs: LessonPacks) -> None:
        """Nothing is fetched before it is wanted."""
        self._courses: LessonSupply[CoursewarePin, CourseLesson] = LessonSupply(courses.made)
        self._packs: LessonSupply[LessonAddress, Path] = LessonSupply(packs.made, packs.at_hand)

    def want(self, assigned: Iterable[Assigned]) -> None:
        """Take these for all that is assigned, now or later."""
        found = tuple(assigned)
        self._courses.want(one.courseware for one in found if one.courseware is not None)
        self._packs.want(one.lesson for one in found if one.courseware is None)

    async def course(self, pin: CoursewarePin) -> CourseLesson | None:
        """Return a published scene as a lesson; None if it cannot be had."""
        return await self._courses.get(pin)

    async def pack(self, address: LessonAddress) -> Path | None:
        """Return where an installed lesson is, here or fetched; None if it cannot be had."""
        return await self._packs.get(address)

    async def let_go_course(self, pin: CoursewarePin, remove: Callable[[], None]) -> bool:
        """Have a scene removed that nobody wants; see `LessonSupply.let_go`."""
        return await self._courses.let_go(pin, remove)

    async def let_go_pack(self, address: LessonAddress, remove: Callable[[], None]) -> bool:
        """Have a lesson pack removed that nobody wants; see `LessonSupply.let_go`."""
        return await self._packs.let_go(address, remove)

    async def close(self) -> None:
        """Fetch nothing more."""
        await self._courses.close()
        await self._packs.close()
