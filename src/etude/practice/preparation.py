"""What a task needs before it can begin: the lesson, and the backend that plays it.

This may wait (for the list of tools, for the card, for clips being encoded), so it comes before
the clock starts, and never after.
"""

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec
import structlog

from etude.gateway.ports import Device
from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.card_list import card_paths
from etude.practice.lessons import Lessons
from etude.practice.players import plays_card
from etude.practice.records import Clip, Lesson, SessionStart
from etude.practice.supplies import Supplies
from etude.practice.tasks import IDENTIFIER, Task

TOOLS_WAIT_S: Final = 3.0
"""How long a task waits for the device to list its tools; then it is stock firmware."""
LIST_TIMEOUT_S: Final = 5.0
"""How long the list of the card is waited for."""

_log = structlog.get_logger(__name__)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody who starts a task says beside its name."""

    lesson_id: str | None = None
    """A lesson; for the repeater also the name of a file."""
    repeat: int | None = None
    assignment_id: str | None = None
    listen_ratio: float | None = None
    courseware: CoursewarePin | None = None
    """The scene of a published course that the lesson is; then no other will do."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "Wish":
        """Read the arguments of a command; what cannot be used is not wished for.

        `name` and `loop` are what `START_APP_TASK` calls the file and how often it is played. An
        assignment without its lesson says nothing that could be played, so it is passed over.
        """
        lesson_id = arguments.get("lesson_id", arguments.get("name"))
        repeat = arguments.get("repeat", arguments.get("loop"))
        assignment_id = arguments.get("assignment_id")
        usable = isinstance(repeat, int) and 1 <= repeat <= 100  # noqa: PLR2004 - as in app files
        named = lesson_id if isinstance(lesson_id, str) and lesson_id else None
        return cls(
            lesson_id=named,
            repeat=repeat if usable else None,
            assignment_id=assignment_id if named and isinstance(assignment_id, str) else None,
        )

    @classmethod
    def assigned(cls, found: Assigned) -> "Wish":
        """Wish for what was assigned."""
        return cls(
            lesson_id=found.lesson.lesson_id,
            assignment_id=found.assignment_id,
            listen_ratio=found.listen_ratio,
            courseware=found.courseware,
        )

    @classmethod
    def resumed(cls, start: SessionStart) -> "Wish":
        """Wish for what a session began with, whatever was assigned since."""
        pin = None
        if start.courseware is not None:
            pin = msgspec.convert(start.courseware, CoursewarePin)
        return cls(
            lesson_id=start.lesson_id,
            assignment_id=start.assignment_id,
            listen_ratio=start.listen_ratio,
            courseware=pin,
        )

    def paced(self, lesson: Lesson) -> Lesson:
        """Return the lesson with the ratio that is wished for, if one is."""
        if self.listen_ratio is None:
            return lesson
        return msgspec.structs.replace(lesson, listen_ratio=self.listen_ratio)


class Prepared(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A lesson that can be played, and from where. Keep it: the clips stay in memory with it."""

    on_card: bool
    lesson: Lesson


class Preparation:
    """Finds what a task plays on one device."""

    def __init__(
        self,
        device: Device,
        lessons: Lessons,
        listed: asyncio.Event,
        supplies: Supplies | None = None,
    ) -> None:
        """`listed` is set once the tools are known; without `supplies` nothing is fetched."""
        self._device = device
        self._lessons = lessons
        self._listed = listed
        self._supplies = supplies

    async def find(self, task: Task, wish: Wish, last: Clip | None = None) -> Prepared | None:
        """Return the lesson: on the card, else the server's own; None if nothing can be played.

        `last` is what the repeater plays when the task has no lesson of its own.
        """
        if wish.courseware is not None:
            return await self._published(task, wish, wish.courseware)
        await self._tools()
        if wish.assignment_id is not None:
            await self._fetched(task, wish)
        if plays_card(task, self._device.tools):
            paths = await self._paths()
            lesson = await asyncio.to_thread(self._on_card, task, wish, paths, last)
            if lesson is not None:
                return Prepared(on_card=True, lesson=wish.paced(lesson))
        lesson = await asyncio.to_thread(self._own, task, wish)
        if lesson is None:
            return None
        lesson = wish.paced(lesson)
        await self._lessons.prepare(lesson)
        if all(self._lessons.encoded(clip) is None for clip in lesson.clips):
            return None
        return Prepared(on_card=False, lesson=lesson)

    async def _published(self, task: Task, wish: Wish, pin: CoursewarePin) -> Prepared | None:
        """Return a course's lesson, whole. Streamed even to a card: nobody has checked that one."""
        found = None if self._supplies is None else await self._supplies.course(pin)
        if found is None:
            return None
        lesson = wish.paced(found.lesson(task))
        await self._lessons.prepare(lesson)
        if any(self._lessons.encoded(clip) is None for clip in lesson.clips):
            return None
        return Prepared(on_card=False, lesson=lesson)

    async def _fetched(self, task: Task, wish: Wish) -> None:
        """Have an assigned lesson that is not installed here fetched from web, if it can be had."""
        named = wish.lesson_id or ""
        if self._supplies is not None and IDENTIFIER.fullmatch(named):
            await self._supplies.pack(
                LessonAddress(app_id=task.app_id, task_id=task.task_id, lesson_id=named)
            )

    async def _tools(self) -> None:
        try:
            async with asyncio.timeout(TOOLS_WAIT_S):
                await self._listed.wait()
        except TimeoutError:
            _log.info("the tools are not known yet", action="tools.unknown")

    async def _paths(self) -> tuple[str, ...]:
        result = await self._device.call_tool("self.mp3.get_list", {}, LIST_TIMEOUT_S)
        if result.failure is not None:
            _log.warning("no list", action="card.list_failed", failure=result.failure.value)
        return card_paths(result.text or "")

    def _on_card(
        self, task: Task, wish: Wish, paths: tuple[str, ...], last: Clip | None
    ) -> Lesson | None:
        if wish.lesson_id is None:
            lesson = self._lessons.on_card(task, paths)
            return lesson or _file(task, paths, None, last)
        within = f"/lessons/{wish.lesson_id}/"
        lesson = self._lessons.on_card(task, [path for path in paths if within in path])
        return lesson or _file(task, paths, wish.lesson_id, None)

    def _own(self, task: Task, wish: Wish) -> Lesson | None:
        if wish.lesson_id is None:
            return self._lessons.first(task)
        if IDENTIFIER.fullmatch(wish.lesson_id):
            lesson = self._lessons.named(task, wish.lesson_id)
            if lesson is not None or not task.repeats_files:
                return lesson
        first = self._lessons.first(task) if task.repeats_files else None
        clip = clip_named(first.clips, wish.lesson_id) if first else None
        return first if clip else None


def clip_named(clips: tuple[Clip, ...], name: str | None) -> Clip | None:
    """Return the clip with a file name, with or without its suffix."""
    return next(
        (clip for clip in clips if name in {clip.name, PurePosixPath(clip.name).stem}), None
    )


def _file(task: Task, paths: tuple[str, ...], name: str | None, last: Clip | None) -> Lesson | None:
    """Return what the repeater plays beside lessons: a named file, the last one, the first."""
    if task.repeats_files and name is not None:
        paths = tuple(path for path in paths if path.rpartition("/")[2].startswith(name))
    elif task.repeats_files and last is not None and last.path in paths:
        paths = (last.path,)
    if not task.repeats_files or not paths:
        return None
    clip = Clip(name=paths[0].rpartition("/")[2], path=paths[0])
    return Lesson(app_id=task.app_id, task_id=task.task_id, lesson_id="", clips=(clip,))
