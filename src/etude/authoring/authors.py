"""Who makes frameworks and modules: one seam, whatever stands behind it."""

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from etude.authoring.classrooms.records import LessonOutline, LessonRequest, Tell
from etude.authoring.errors import CourseVoiceMissingError
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Fact, Language, Syllabus
from etude.authoring.outline.alone import (
    checked_outline,
    classroom_alone,
    lesson_alone,
    lesson_syllabus,
    outline_of,
)
from etude.authoring.outline.lesson import Sound
from etude.authoring.outline.module import lesson_of, make_classroom
from etude.authoring.outline.planning import plan
from etude.authoring.outline.practice import to_repeat
from etude.authoring.reading import read_material, title_of_file
from etude.authoring.records import CourseRequest, SoundFile
from etude.classroom.digest import OutputDigest
from etude.classroom.library import Draft
from etude.classroom.model import Classroom

Result = TypeVar("Result")
_NOT_OF_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_TITLE: Final = 120


class ModuleOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One module that is to be made.

    Attributes:
        requirement: everything an author is told, in words.
        earlier: digests of the modules before it, as they are on disk.
        classroom_id: the id that the classroom will have.
    """

    request: CourseRequest
    framework: CourseFramework
    index: int
    requirement: str
    earlier: tuple[OutputDigest, ...]
    classroom_id: str
    created_at: datetime


class Author(Protocol):
    """Makes frameworks and classrooms; both may be cancelled at any moment."""

    async def framework(self, request: CourseRequest) -> CourseFramework:
        """Return a framework; raises an `EtudeError` if there can be none."""

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        """Return the classroom of a module; its files go into the draft."""

    def silent(self, request: CourseRequest) -> tuple[str, ...]:
        """Return the places of sentences to repeat that will have no sound; blocks."""


class LessonOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson on its own that is to be outlined, or made by its confirmed outline.

    Attributes:
        job_key: what a ledger of calls may stand on (`classroom:<job_key>`).
        job_id: of the job, the same after a kill.
        owner: who pays: `staff:o-1`.
        classroom_id: the id that the classroom will have.
    """

    request: LessonRequest
    job_key: int
    job_id: str
    owner: str
    classroom_id: str
    created_at: datetime


class LessonAuthor(Protocol):
    """Makes lessons on their own, outline first; both may be cancelled at any moment.

    After a kill it is asked once more for the same order: it answers the same, and buys nothing
    twice.
    """

    def accept(self, request: LessonRequest) -> None:
        """Raise an `EtudeError` if it can be said at once that there is no lesson; blocks."""

    async def lesson_outline(self, order: LessonOrder, tell: Tell) -> LessonOutline:
        """Return an outline; raises an `EtudeError` if there can be none."""

    def edited_outline(self, made: LessonOutline, edited: LessonOutline) -> LessonOutline:
        """Return an outline as a person edited it; raises `LessonOutlineInvalidError`."""

    async def lesson(
        self, order: LessonOrder, outline: LessonOutline, draft: Draft, tell: Tell
    ) -> Classroom:
        """Return the classroom of a confirmed outline; its files go into the draft."""

    def silent_sentences(self, request: LessonRequest) -> tuple[str, ...]:
        """Return the places of sentences to repeat that will have no sound; blocks."""


class Voice(Protocol):
    """Speaks; `authors` asks it from a thread of its own."""

    def knows(self, language: Language) -> bool:
        """Whether it can speak a language."""

    def speak(self, text: str, language: Language) -> tuple[bytes, int]:
        """Return a text as the bytes of an MP3 file and its length in milliseconds."""


SoundSource = Callable[[str], Path]
"""Returns the file of a recording by the SHA-256 of its bytes."""


class OutlineAuthor:
    """Compiles material by rule; needs no network and no key."""

    def __init__(
        self,
        sounds: SoundSource,
        length_ms: Callable[[Path], int],
        voice: Voice | None = None,
    ) -> None:
        """`sounds` finds recordings of the material, `length_ms` measures; `voice` may speak."""
        self._sounds = sounds
        self._length_ms = length_ms
        self._voice = voice

    async def framework(self, request: CourseRequest) -> CourseFramework:
        """Return the framework of the material; see `Author`."""
        return await _stoppable(lambda _stop: plan(syllabus_of(request), _title(request)))

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        """Return the classroom of a module; see `Author`."""
        return await _stoppable(lambda stop: self._module(order, draft, stop))

    def silent(self, request: CourseRequest) -> tuple[str, ...]:
        """Return the places of sentences without sound; see `Author`."""
        syllabus = syllabus_of(request)
        if self._speaks(request, syllabus.language):
            return ()
        return _without_sound(syllabus)

    def accept(self, request: LessonRequest) -> None:
        """Refuse material that gives no lesson; see `LessonAuthor`."""
        lesson_alone(request)

    async def lesson_outline(self, order: LessonOrder, tell: Tell) -> LessonOutline:
        """Return the outline of a lesson on its own; see `LessonAuthor`."""
        del tell  # there is nothing to wait for

        def outline(_stop: threading.Event) -> LessonOutline:
            language = lesson_syllabus(order.request).language
            return outline_of(order.request, speaks=self._voice_for(order.request, language))

        return await _stoppable(outline)

    def edited_outline(self, made: LessonOutline, edited: LessonOutline) -> LessonOutline:
        """Return an edited outline; see `LessonAuthor`."""
        return checked_outline(made, edited)

    async def lesson(
        self, order: LessonOrder, outline: LessonOutline, draft: Draft, tell: Tell
    ) -> Classroom:
        """Return the classroom of a lesson on its own; see `LessonAuthor`."""
        request = order.request

        def make(stop: threading.Event) -> Classroom:
            language = lesson_syllabus(request).language
            voice = self._voice if self._voice_for(request, language) else None
            sounds = _DraftSounds(self, request.sounds, draft, language, voice, stop)
            return classroom_alone(
                request, outline, order.classroom_id, sounds, order.created_at, tell
            )

        return await _stoppable(make)

    def silent_sentences(self, request: LessonRequest) -> tuple[str, ...]:
        """Return the places of sentences without sound; see `LessonAuthor`."""
        syllabus = lesson_syllabus(request)
        if self._speaks(request, syllabus.language):
            return ()
        return _without_sound(syllabus)

    def _speaks(self, request: CourseRequest | LessonRequest, language: Language) -> bool:
        return request.narrated and self._voice is not None and self._voice.knows(language)

    def _voice_for(self, request: CourseRequest | LessonRequest, language: Language) -> bool:
        """Return whether a voice speaks; `CourseVoiceMissingError` if it is to and cannot."""
        speaks = self._speaks(request, language)
        if request.narrated and not speaks:
            raise CourseVoiceMissingError(language=language)
        return speaks

    def _module(self, order: ModuleOrder, draft: Draft, stop: threading.Event) -> Classroom:
        syllabus = syllabus_of(order.request)
        lesson = lesson_of(syllabus, order.framework, order.index, order.earlier)
        voice = self._voice if self._voice_for(order.request, syllabus.language) else None
        sounds = _DraftSounds(self, order.request.sounds, draft, syllabus.language, voice, stop)
        return make_classroom(lesson, order.classroom_id, sounds, order.created_at)

    def recording(self, sha256: str) -> tuple[Path, int]:
        """Return a recording of the material and its length in milliseconds."""
        path = self._sounds(sha256)
        return path, self._length_ms(path)


class StoppedError(Exception):
    """Nobody wants the result any more."""


class _DraftSounds:
    """Puts sounds into a draft: recordings of the material, else a voice's."""

    def __init__(
        self,
        author: OutlineAuthor,
        recordings: Sequence[SoundFile],
        draft: Draft,
        language: Language,
        voice: Voice | None,
        stop: threading.Event,
    ) -> None:
        self._author = author
        self._draft = draft
        self._voice = voice
        self._stop = stop
        self._language = language
        self._recordings = {one.name: one.sha256 for one in recordings}
        self._spoken: dict[str, Sound] = {}

    def speech(self, words: str) -> str | None:
        """Return the reference of spoken words, if there is a voice."""
        sound = self._speak(words)
        return None if sound is None else sound.reference

    def clip(self, fact: Fact) -> Sound | None:
        """Return a sentence's recording, else its spoken form, else None."""
        if fact.sound is None:
            return self._speak(fact.text)
        path, length_ms = self._author.recording(self._recordings[fact.sound])
        stem, _, suffix = fact.sound.rpartition(".")
        name = f"audio/clip-{_NOT_OF_A_NAME.sub('-', stem)[:80]}.{suffix.lower()}"
        self._put(name, path.read_bytes())
        return Sound(reference=name, duration_ms=length_ms)

    def _speak(self, words: str) -> Sound | None:
        if self._voice is None:
            return None
        if words not in self._spoken:
            self._raise_if_stopped()
            data, length_ms = self._voice.speak(words, self._language)
            name = f"audio/say-{len(self._spoken) + 1:03d}.mp3"
            self._put(name, data)
            self._spoken[words] = Sound(reference=name, duration_ms=length_ms)
        return self._spoken[words]

    def _put(self, reference: str, data: bytes) -> None:
        self._raise_if_stopped()
        self._draft.put(reference, [data])

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise StoppedError


def syllabus_of(request: CourseRequest) -> Syllabus:
    """Return the syllabus of a request's material."""
    return read_material(
        request.materials,
        language=request.language,
        sounds=[one.name for one in request.sounds],
    )


def _without_sound(syllabus: Syllabus) -> tuple[str, ...]:
    facts = [fact for unit in syllabus.units for fact in to_repeat(unit)]
    return tuple(syllabus.place([fact.ref]) for fact in facts if fact.sound is None)


def _title(request: CourseRequest) -> str:
    """Return the title that was asked for, or one by the name of the only file."""
    first = request.requirement.strip().partition("\n")[0]
    if first and len(first) <= _LONGEST_TITLE:
        return first
    names = [one.name for one in request.materials]
    syllabus = syllabus_of(request)
    return syllabus.title or (title_of_file(names[0]) if len(names) == 1 else "")


async def _stoppable(work: Callable[[threading.Event], Result]) -> Result:
    """Do work in a thread; when cancelled, tell it and wait for its end: it writes no more."""
    stop = threading.Event()
    doing = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # looked at, so that nobody complains that it was not
        raise
