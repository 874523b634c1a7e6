"""What a gateway knows of assignments, and of who is in which class, while it cannot ask.

Like `etude.gateway.known_devices`: the link fills it, every question is answered from memory at
once, and the file is for a start while web is away. It is written whole, off the loop; of a damaged
one nothing is used, and toys play their task's first lesson until the link has told it again.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.files import Files, crash_point, replace_file
from etude.gateway.link import ChangeHandler
from etude.gateway.link_messages import LinkFrameError
from etude.people.roster_records import ROSTERS, LearnerClasses
from etude.practice.assigned import (
    ASSIGNMENTS,
    Assigned,
    AssignmentNews,
    current,
)

FILE: Final = "known-assignments.json"
FORMAT: Final = 1

_log = structlog.get_logger(__name__)

_Holder = tuple[Literal["learner", "class"], int] | tuple[Literal["device"], str | None]
"""A learner's or a class's key, or a device's id."""


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    assigned: tuple[Assigned, ...]
    rosters: tuple[LearnerClasses, ...] = ()


_NOTHING: Final = _Cached(format=FORMAT, assigned=())


class KnownAssignments:
    """Assignments and times in classes that count now or later, cached. Belongs to one event loop.

    Args:
        path: the cache file; its folder is made.
        clock: decides which assignment counts.
        learner_of: the key of whoever has a device now, by its id; from memory.
        files: the disk.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        learner_of: Callable[[str], int | None],
        files: Files | None = None,
    ) -> None:
        """Read the file; nothing of a damaged one is used."""
        self._path = path
        self._clock = clock
        self._learner_of = learner_of
        self._files = files or Files()
        self._assigned: dict[int, Assigned] = {}
        self._by_holder: dict[_Holder, dict[int, Assigned]] = {}
        self._classes: dict[int, LearnerClasses] = {}
        self._saving = asyncio.Lock()
        self.changed: Callable[[], None] = lambda: None
        """Called when other assignments are known than before."""
        self.told = False
        """Whether web has told this process everything that is assigned."""
        cached = self._read()
        self._fill(cached.assigned)
        self._enrol(cached.rosters)

    @property
    def standing(self) -> tuple[Assigned, ...]:
        """All that is assigned, now or later, to whomever."""
        return tuple(self._assigned.values())

    def __len__(self) -> int:
        """How many assignments are known."""
        return len(self._assigned)

    def current(self, device_id: str) -> Assigned | None:
        """Return what is to be practised on a device now: by who has it, or by whoever has it."""
        now = self._clock.now()
        candidates = chain.from_iterable(
            self._by_holder.get(holder, {}).values() for holder in self._holders(device_id, now)
        )
        return current(candidates, now)

    def handlers(self) -> dict[str, ChangeHandler]:
        """Return what takes the kinds `ASSIGNMENTS` and `ROSTERS` that come down the link."""
        return {
            ASSIGNMENTS: ChangeHandler(replace=self.replace, apply=self.apply),
            ROSTERS: ChangeHandler(replace=self.replace_rosters, apply=self.apply_rosters),
        }

    def _holders(self, device_id: str, now: datetime) -> Iterator[_Holder]:
        yield ("device", device_id)
        learner_key = self._learner_of(device_id)
        if learner_key is None:
            return
        yield ("learner", learner_key)
        learner = self._classes.get(learner_key)
        if learner is not None:
            yield from (("class", class_key) for class_key in set(learner.at(to_us(now))))

    # What the link tells. Memory first, so that it counts at once; the file before it returns.

    async def replace(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these for all there are; raises `LinkFrameError` and keeps what it knew."""
        news = _decoded(items, AssignmentNews)
        told = [each.assigned for each in news if each.assigned is not None]
        self._assigned.clear()
        self._by_holder.clear()
        self._fill(told)
        self.told = True
        self.changed()
        await self._save()

    async def apply(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these as they are now; raises `LinkFrameError`."""
        for news in _decoded(items, AssignmentNews):
            self._drop(news.assignment_key)
            if news.assigned is not None:
                self._put(news.assigned)
        self.changed()
        await self._save()

    async def replace_rosters(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these for all rosters there are; raises `LinkFrameError` and keeps what it knew."""
        told = _decoded(items, LearnerClasses)
        self._classes.clear()
        self._enrol(told)
        await self._save()

    async def apply_rosters(self, items: Sequence[msgspec.Raw]) -> None:
        """Take the classes of these learners as they are now; raises `LinkFrameError`."""
        self._enrol(_decoded(items, LearnerClasses))
        await self._save()

    def _enrol(self, told: Iterable[LearnerClasses]) -> None:
        for learner in told:
            if learner.classes:
                self._classes[learner.learner_key] = learner
            else:
                self._classes.pop(learner.learner_key, None)

    def _fill(self, told: Iterable[Assigned]) -> None:
        for assigned in told:
            self._put(assigned)

    def _put(self, assigned: Assigned) -> None:
        self._assigned[assigned.assignment_key] = assigned
        holder = _holder(assigned)
        self._by_holder.setdefault(holder, {})[assigned.assignment_key] = assigned

    def _drop(self, assignment_key: int) -> None:
        assigned = self._assigned.pop(assignment_key, None)
        if assigned is None:
            return
        holder = _holder(assigned)
        del self._by_holder[holder][assignment_key]
        if not self._by_holder[holder]:
            del self._by_holder[holder]

    # The file

    async def _save(self) -> None:
        """Write the file off the loop; what changes meanwhile is written after it."""
        async with self._saving:
            self._forget_over()
            cached = _Cached(
                format=FORMAT,
                assigned=tuple(self._assigned.values()),
                rosters=tuple(self._classes.values()),
            )
            await asyncio.to_thread(self._write, cached)

    def _forget_over(self) -> None:
        now_us = to_us(self._clock.now())
        for key, each in tuple(self._assigned.items()):
            if each.ends_us is not None and each.ends_us <= now_us:
                self._drop(key)
        for learner in tuple(self._classes.values()):
            left = tuple(
                each for each in learner.classes if each.ends_us is None or each.ends_us > now_us
            )
            if left != learner.classes:
                self._enrol([LearnerClasses(learner_key=learner.learner_key, classes=left)])

    def _write(self, cached: _Cached) -> None:
        try:
            self._files.make_folder(self._path.parent)
            crash_point("practice.known_assignments.before")
            replace_file(self._files, self._path, msgspec.json.encode(cached))
            crash_point("practice.known_assignments.written")
        except OSError as error:  # the next change, or the next link, writes it again
            _log.warning(
                "cache of assignments not written",
                action="known_assignments.not_written",
                reason=error.strerror or type(error).__name__,
            )

    def _read(self) -> _Cached:
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
        except FileNotFoundError:
            return _NOTHING
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            _log.warning(
                "cache of assignments unreadable: none counts until web has told them again",
                action="known_assignments.damaged",
                reason=type(error).__name__,
            )
            return _NOTHING
        if cached.format != FORMAT:
            _log.warning(
                "cache of assignments of another version", action="known_assignments.format"
            )
            return _NOTHING
        return cached


def _holder(assigned: Assigned) -> _Holder:
    if assigned.learner_key is not None:
        return ("learner", assigned.learner_key)
    if assigned.class_key is not None:
        return ("class", assigned.class_key)
    return ("device", assigned.device_id)


_Item = TypeVar("_Item", bound=msgspec.Struct)


def _decoded(items: Sequence[msgspec.Raw], kind: type[_Item]) -> list[_Item]:
    try:
        return [msgspec.json.decode(item, type=kind) for item in items]
    except msgspec.DecodeError as error:
        # Its words name members and types, never their values.
        raise LinkFrameError(reason=str(error)[:200]) from error
