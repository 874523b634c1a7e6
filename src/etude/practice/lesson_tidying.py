"""A gateway removes the lessons it fetched once nobody has been assigned them for long.

A fetched lesson's folder was last named at its modification time: every round sets that of the
lessons that are assigned, now or later, and of those that a session or a journal here speaks of.
What has not been named for `UNNAMED` goes. It can be fetched again, so a time that a power cut took
back, or a clock that was wrong, costs a download and no lesson. Nothing is removed before web has
told this process what is assigned, nor from an installation's own lessons.

A round works in a thread, and has each lesson removed by the supply that would fetch it: whoever
asks for the lesson at that moment waits, and has it fetched.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.edge.reader import journal_folders
from etude.errors import EtudeError
from etude.files import Files, crash_point
from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.course_lessons import LaidScene
from etude.practice.course_scenes import lesson_id_of
from etude.practice.known_assignments import KnownAssignments
from etude.practice.lesson_findings import MANIFEST
from etude.practice.lesson_folders import LESSONS, is_plain
from etude.practice.records import SessionStart
from etude.practice.session_events import start_of
from etude.practice.supplies import Supplies

UNNAMED: Final = timedelta(days=60)
"""Longer than a school's longest holidays, after which the same lessons are often assigned again
and the network is slow because everybody is back."""
FIRST_S: Final = 600.0
"""After a start: toys come back and web tells what is assigned, and nothing competes with that."""
EVERY_S: Final = 6 * 3600.0
_LEAVING: Final = ".gone"

_log = structlog.get_logger(__name__)
Key = TypeVar("Key")


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """Lessons that somebody speaks of."""

    pins: frozenset[CoursewarePin]
    addresses: frozenset[LessonAddress]

    def __or__(self, other: "Named") -> "Named":
        """Both together."""
        return Named(pins=self.pins | other.pins, addresses=self.addresses | other.addresses)


def course_folders(root: Path) -> Iterator[tuple[CoursewarePin, Path]]:
    """Yield the scenes below `root` whose `lesson.json` says which they are."""
    for folder in _folders(root):
        try:
            pin = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=LaidScene).pin
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if lesson_id_of(pin) == folder.name:
            yield pin, folder


def pack_folders(root: Path) -> Iterator[tuple[LessonAddress, Path]]:
    """Yield the lesson packs below `root`, by their place."""
    for app in _folders(root):
        for task in _folders(app):
            for folder in _folders(task / LESSONS):
                yield (
                    LessonAddress(app_id=app.name, task_id=task.name, lesson_id=folder.name),
                    folder,
                )


def name(folder: Path, at: datetime) -> None:
    """Note that a lesson was named then."""
    us = to_us(at)
    with contextlib.suppress(OSError):  # it may be replaced just now, and is new then
        os.utime(folder, ns=(us * 1000, us * 1000))


def unnamed_since(folder: Path, before: datetime) -> bool:
    """Whether nobody has named a lesson since then."""
    try:
        return folder.stat().st_mtime_ns < to_us(before) * 1000
    except OSError:
        return False


def remove(folder: Path, files: Files) -> None:
    """Remove a lesson: out of its place in one step, then from the disk."""
    leaving = folder.with_name(f".{folder.name}{_LEAVING}")
    files.remove_tree(leaving)
    files.rename(folder, leaving)
    files.sync_folder(folder.parent)
    crash_point("practice.fetched_lesson.unplaced")
    files.remove_tree(leaving)
    crash_point("practice.fetched_lesson.removed")


def remove_left_over(root: Path, files: Files) -> None:
    """Remove what a process that died in `remove` left on the disk."""
    for leaving in [*root.glob(f".*{_LEAVING}"), *root.glob(f"*/*/{LESSONS}/.*{_LEAVING}")]:
        if not leaving.is_symlink():
            files.remove_tree(leaving)


def assigned_lessons(standing: Iterable[Assigned], at: datetime) -> Named:
    """Return the lessons of assignments that count at that time or later."""
    at_us = to_us(at)
    found = [one for one in standing if one.ends_us is None or at_us < one.ends_us]
    return Named(
        pins=frozenset(one.courseware for one in found if one.courseware is not None),
        addresses=frozenset(one.lesson for one in found if one.courseware is None),
    )


def practised_lessons(starts: Iterable[SessionStart]) -> Named:
    """Return the lessons of sessions."""
    pins, addresses = set(), set()
    for start in starts:
        if start.courseware is not None:
            with contextlib.suppress(msgspec.ValidationError):
                pins.add(msgspec.convert(start.courseware, CoursewarePin))
        elif start.lesson_id is not None:
            addresses.add(
                LessonAddress(app_id=start.app_id, task_id=start.task_id, lesson_id=start.lesson_id)
            )
    return Named(pins=frozenset(pins), addresses=frozenset(addresses))


def journal_starts(root: Path) -> Iterator[SessionStart]:
    """Yield how each session began whose journal is below `root`, uploaded or not.

    One that cannot be read is passed over: nobody goes on with it (`unfinished`).
    """
    for folder in journal_folders(root):
        with contextlib.suppress(EtudeError):
            first = next(folder.events(), None)
            start = start_of(first) if first is not None else None
            if start is not None:
                yield start


class LessonTidying:
    """See the module. Belongs to one event loop.

    Args:
        courses: the folder of courses' lessons.
        packs: the folder of lesson packs.
        journals: the folder of the journals.
        supplies: fetches both, and has them removed.
        assignments: what this gateway knows of assignments.
        practising: how the sessions began that have not ended; from memory.
        clock: wall-clock times.
        files: the disk.
    """

    def __init__(  # noqa: PLR0913 - what a round looks at
        self,
        *,
        courses: Path,
        packs: Path,
        journals: Path,
        supplies: Supplies,
        assignments: KnownAssignments,
        practising: Callable[[], Iterable[SessionStart]],
        clock: Clock,
        files: Files | None = None,
    ) -> None:
        """Nothing is looked at yet."""
        self._courses = courses
        self._packs = packs
        self._journals = journals
        self._supplies = supplies
        self._assignments = assignments
        self._practising = practising
        self._clock = clock
        self._files = files or Files()

    async def run(self) -> None:
        """Tidy now and then, until the task is cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:
            try:
                await self.tidy()
            except Exception as error:  # noqa: BLE001 - what is not tidied now is tidied later
                _log.warning(
                    "fetched lessons not tidied",
                    action="fetched_lessons.failed",
                    error=type(error).__name__,
                )
            await asyncio.sleep(EVERY_S)

    async def tidy(self) -> int:
        """Remove what nobody has named for `UNNAMED`; return how many lessons that were.

        Raises:
            OSError: the disk does not take it.
        """
        if not self._assignments.told:
            return 0
        at = self._clock.now()
        named = assigned_lessons(self._assignments.standing, at) | self._in_memory()
        old_courses, old_packs = await asyncio.to_thread(self._look, named, at)
        removed = 0
        for pin, folder in old_courses:
            if pin not in self._in_memory().pins:
                removed += await self._supplies.let_go_course(pin, self._remover(folder))
        for address, folder in old_packs:
            if address not in self._in_memory().addresses:
                removed += await self._supplies.let_go_pack(address, self._remover(folder))
        if removed:
            _log.info("fetched lessons tidied", action="fetched_lessons.removed", lessons=removed)
        return removed

    def _in_memory(self) -> Named:
        return practised_lessons(self._practising())

    def _look(
        self, named: Named, at: datetime
    ) -> tuple[list[tuple[CoursewarePin, Path]], list[tuple[LessonAddress, Path]]]:
        """Name what is named; return what has not been for long. Disk."""
        for root in (self._courses, self._packs):
            remove_left_over(root, self._files)
        named = named | practised_lessons(journal_starts(self._journals))
        return (
            _old(course_folders(self._courses), named.pins, at),
            _old(pack_folders(self._packs), named.addresses, at),
        )

    def _remover(self, folder: Path) -> Callable[[], None]:
        return lambda: remove(folder, self._files)


def _old(
    found: Iterable[tuple[Key, Path]], named: AbstractSet[Key], at: datetime
) -> list[tuple[Key, Path]]:
    old = []
    for key, folder in found:
        if key in named:
            name(folder, at)
        elif unnamed_since(folder, at - UNNAMED):
            old.append((key, folder))
    return old


def _folders(root: Path) -> Iterator[Path]:
    """Yield the visible folders in a folder, by name; none if it is not there."""
    try:
        with os.scandir(root) as found:
            names = sorted(one.name for one in found if one.is_dir(follow_symlinks=False))
    except OSError:
        return
    yield from (root / one for one in names if is_plain(one))
