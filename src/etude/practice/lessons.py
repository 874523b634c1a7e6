"""A task's lessons: the server's own folders, or what a device lists of its card.

`first`, `named` and `on_card` look at the disk: a few system calls a clip, and once for each new
clip a look at its headers. They belong to the start of a task. `encoded` is for the hot path and
only ever looks into memory. `prepare`, between the two, works in threads of its own.
"""

import asyncio
import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

import structlog

from etude.errors import EtudeError
from etude.practice.lesson_folders import (
    LESSONS,
    MOST_CLIPS,
    byte_order,
    clip_files,
    is_plain,
    lesson_folder,
    lesson_ids,
    read_text,
)
from etude.practice.records import Clip, Lesson
from etude.practice.tasks import Task
from etude.speech.audio import duration_ms
from etude.speech.clip_cache import ClipCache
from etude.speech.clips import EncodedClip

_log = structlog.get_logger(__name__)

# Enough to be ready soon; more would take the processor from the clock of those who practise.
_THREADS: Final = 2

_Identity = tuple[int, int, int]
_Clip = TypeVar("_Clip")


class Lessons:
    """The lessons of one gateway. Lives as long as its process."""

    def __init__(self, root: Path, clips: ClipCache, fetched: Path | None = None) -> None:
        """Nothing is read yet.

        Args:
            root: the folder with the apps' folders; it may be missing, and then has no lessons.
            clips: where encoded clips come from.
            fetched: the folder of lesson packs, for lessons by name that the root has not.
        """
        self._root = root
        self._fetched = fetched
        self._clips = clips
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="clips")
        self._measured: dict[Path, tuple[_Identity, int | None]] = {}
        self._prepared: dict[int, tuple[EncodedClip, ...]] = {}

    def close(self) -> None:
        """Let what is being prepared end; nothing more is."""
        self._threads.shutdown(cancel_futures=True)

    def first(self, task: Task) -> Lesson | None:
        """Return the task's first lesson in byte order of names that has a clip to play."""
        for lesson_id in lesson_ids(self._root, task.app_id, task.task_id):
            lesson = self.named(task, lesson_id)
            if lesson is not None:
                return lesson
        return None

    def named(self, task: Task, lesson_id: str) -> Lesson | None:
        """Return a lesson by its id, None if there is none, or none with a clip to play."""
        folder = self._folder(task, lesson_id)
        if folder is None:
            return None
        return _lesson(task, lesson_id, self._clips_in(task, lesson_id, folder))

    def on_card(self, task: Task, paths: Sequence[str]) -> Lesson | None:
        """Return the first lesson of the task on a card.

        Texts, and durations where the server has the clip too, come from the server's own folder
        of the same lesson: nothing is read from the card.

        Args:
            task: whose lesson is wanted.
            paths: of all audio files on the card (`card_list.card_paths`), wherever it is mounted.
        """
        lessons: dict[str, set[str]] = {}
        for path in paths:
            place = _on_card(task, path)
            if place is not None:
                lessons.setdefault(place[0], set()).add(place[1])
        if not lessons:
            return None
        lesson_id = min(lessons, key=byte_order)
        return _lesson(task, lesson_id, self._card_clips(task, lesson_id, lessons[lesson_id]))

    def encoded(self, clip: Clip) -> EncodedClip | None:
        """Return a clip ready to be sent, None if it was not prepared. Memory only."""
        return None if clip.file is None else self._clips.ready(clip.file)

    async def prepare(self, lesson: Lesson) -> None:
        """Load or encode every clip of a lesson, off the event loop.

        They stay in memory for as long as the caller holds this very `Lesson`. A clip that cannot
        be encoded is logged and has no `encoded` afterwards; its neighbours have.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self.load, lesson)

    def load(self, lesson: Lesson) -> None:
        """Do what `prepare` does, in this thread: for programs without an event loop."""
        held = tuple(self._encode_all(lesson))
        if id(lesson) not in self._prepared:
            forget = weakref.finalize(lesson, self._prepared.pop, id(lesson), None)
            forget.atexit = False
        self._prepared[id(lesson)] = held

    def _encode_all(self, lesson: Lesson) -> Iterator[EncodedClip]:
        for clip in lesson.clips:
            if clip.file is None:
                continue
            try:
                yield self._clips.encode(clip.file)
            except EtudeError as error:
                _report(clip.path, error)

    def _folder(self, task: Task, lesson_id: str) -> Path | None:
        """Return where the server's copy of a lesson is, or would be."""
        folder = lesson_folder(self._root, task.app_id, task.task_id, lesson_id)
        if folder is None or self._fetched is None or clip_files(folder):
            return folder
        fetched = lesson_folder(self._fetched, task.app_id, task.task_id, lesson_id)
        return fetched if fetched is not None and clip_files(fetched) else folder

    def _clips_in(self, task: Task, lesson_id: str, folder: Path) -> Iterator[Clip]:
        for index, found in enumerate(_bounded(lesson_id, clip_files(folder))):
            measured_ms = self._duration_ms(found.path)
            if measured_ms is None:
                continue
            yield Clip(
                name=found.name,
                path=_card_path(task, lesson_id, found.name),
                expected_text=resolve_expected_text(task, found.name, index, read_text(found.text)),
                duration_ms=measured_ms,
                file=found.path,
            )

    def _card_clips(self, task: Task, lesson_id: str, names: Iterable[str]) -> Iterator[Clip]:
        folder = self._folder(task, lesson_id)
        own = {found.name: found for found in clip_files(folder)} if folder else {}
        for index, name in enumerate(_bounded(lesson_id, sorted(names, key=byte_order))):
            file = own[name].path if name in own else None
            beside = read_text((folder / name).with_suffix(".txt")) if folder else None
            yield Clip(
                name=name,
                path=_card_path(task, lesson_id, name),
                expected_text=resolve_expected_text(task, name, index, beside),
                duration_ms=self._duration_ms(file) if file else None,
                file=file,
            )

    def _duration_ms(self, path: Path) -> int | None:
        """Measure a clip, once while it does not change; None (and a log line) if unreadable."""
        try:
            found = path.stat()
        except OSError:
            return None
        identity = (found.st_ino, found.st_size, found.st_mtime_ns)
        known = self._measured.get(path)
        if known is None or known[0] != identity:
            known = self._measured[path] = (identity, _measure(path))
        return known[1]


def resolve_expected_text(task: Task, clip_name: str, index: int, beside: str | None) -> str | None:
    """Return what is read in a clip (`docs/practice.md §Declaring an app`), None = unknown.

    Args:
        task: its `transcripts` come first, its `sentences` last.
        clip_name: `01.mp3`.
        index: of the clip among all of its folder in byte order, from 0; a clip that cannot be
            played counts too, so that the others keep their sentences.
        beside: the text that lies beside the clip on the server.
    """
    by_name = task.transcripts.get(clip_name) or task.transcripts.get(PurePosixPath(clip_name).stem)
    by_order = task.sentences[index] if index < len(task.sentences) else None
    return by_name or beside or by_order or None


def _lesson(task: Task, lesson_id: str, clips: Iterable[Clip]) -> Lesson | None:
    found = tuple(clips)
    if not found:
        return None
    return Lesson(app_id=task.app_id, task_id=task.task_id, lesson_id=lesson_id, clips=found)


def _bounded(lesson_id: str, clips: list[_Clip]) -> list[_Clip]:
    """Return at most `MOST_CLIPS`: a folder that nobody has checked may hold anything."""
    if len(clips) > MOST_CLIPS:
        _log.warning(
            "a lesson is cut short", action="lesson.cut", lesson_id=lesson_id, clips=len(clips)
        )
    return clips[:MOST_CLIPS]


def _card_path(task: Task, lesson_id: str, name: str) -> str:
    return f"/{task.app_id}/{task.task_id}/{LESSONS}/{lesson_id}/{name}"


def _on_card(task: Task, path: str) -> tuple[str, str] | None:
    """Return lesson and file name of a path on the card, None if it is not of this task.

    What comes before the app's folder is where the board mounts its card.
    """
    _, within, rest = f"/{path.lstrip('/')}".partition(f"/{task.app_id}/{task.task_id}/{LESSONS}/")
    lesson_id, _, name = rest.partition("/")
    return (lesson_id, name) if within and is_plain(lesson_id) and is_plain(name) else None


def _measure(path: Path) -> int | None:
    try:
        return duration_ms(path)
    except EtudeError as error:
        _report(str(path), error)
        return None


def _report(clip: str, error: EtudeError) -> None:
    _log.warning("a clip is left out", action="lesson.clip_unusable", clip=clip, code=error.code)
