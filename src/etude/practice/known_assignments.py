"""What a gateway knows of assignments while it cannot ask: memory, and a file.

Like `etude.gateway.known_devices`: the link fills it, every question is answered from memory at
once, and the file is for a start while web is away. It is written whole, off the loop; of a damaged
one nothing is used, and toys play their task's first lesson until the link has told it again.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.files import Files, crash_point, replace_file
from etude.gateway.link import ChangeHandler
from etude.gateway.link_messages import LinkFrameError
from etude.practice.assigned import Assigned, AssignmentNews, current

FILE: Final = "known-assignments.json"
FORMAT: Final = 1

_log = structlog.get_logger(__name__)

_Holder = int | str | None
"""A learner's key or a device's id."""


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    assigned: tuple[Assigned, ...]


class KnownAssignments:
    """Assignments that count now or later, cached. Belongs to one event loop.

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
        self._saving = asyncio.Lock()
        self._fill(self._read())

    def __len__(self) -> int:
        """How many assignments are known."""
        return len(self._assigned)

    def current(self, device_id: str) -> Assigned | None:
        """Return what is to be practised on a device now: by who has it, or by whoever has it."""
        candidates = dict(self._by_holder.get(device_id, {}))
        learner_key = self._learner_of(device_id)
        if learner_key is not None:
            candidates |= self._by_holder.get(learner_key, {})
        return current(candidates.values(), self._clock.now())

    def handler(self) -> ChangeHandler:
        """Return what takes the kind `ASSIGNMENTS` that comes down the link."""
        return ChangeHandler(replace=self.replace, apply=self.apply)

    # What the link tells. Memory first, so that it counts at once; the file before it returns.

    async def replace(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these for all there are; raises `LinkFrameError` and keeps what it knew."""
        told = [news.assigned for news in _decoded(items) if news.assigned is not None]
        self._assigned.clear()
        self._by_holder.clear()
        self._fill(told)
        await self._save()

    async def apply(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these as they are now; raises `LinkFrameError`."""
        for news in _decoded(items):
            self._drop(news.assignment_key)
            if news.assigned is not None:
                self._put(news.assigned)
        await self._save()

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
            cached = _Cached(format=FORMAT, assigned=tuple(self._assigned.values()))
            await asyncio.to_thread(self._write, cached)

    def _forget_over(self) -> None:
        now_us = to_us(self._clock.now())
        for key, each in tuple(self._assigned.items()):
            if each.ends_us is not None and each.ends_us <= now_us:
                self._drop(key)

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

    def _read(self) -> tuple[Assigned, ...]:
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            _log.warning(
                "cache of assignments unreadable: none counts until web has told them again",
                action="known_assignments.damaged",
                reason=type(error).__name__,
            )
            return ()
        if cached.format != FORMAT:
            _log.warning(
                "cache of assignments of another version", action="known_assignments.format"
            )
            return ()
        return cached.assigned


def _holder(assigned: Assigned) -> _Holder:
    return assigned.device_id if assigned.learner_key is None else assigned.learner_key


def _decoded(items: Sequence[msgspec.Raw]) -> list[AssignmentNews]:
    try:
        return [msgspec.json.decode(item, type=AssignmentNews) for item in items]
    except msgspec.DecodeError as error:
        # Its words name members and types, never their values.
        raise LinkFrameError(reason=str(error)[:200]) from error
