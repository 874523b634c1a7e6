"""Who makes frameworks and modules: one seam, whatever stands behind it."""

import asyncio
import threading
import traceback
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
import structlog

from etude.authoring.classrooms.records import LessonOutline, LessonRequest, Tell
from etude.authoring.draft_sounds import DraftSounds
from etude.authoring.errors import AuthorFailedError, CourseVoiceMissingError
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Language, Syllabus
from etude.authoring.model.errors import CourseOptionUnavailableError
from etude.authoring.outline.alone import (
    checked_outline,
    classroom_alone,
    lesson_alone,
    lesson_syllabus,
    outline_of,
)
from etude.authoring.outline.module import lesson_of, make_classroom
from etude.authoring.outline.planning import plan
from etude.authoring.outline.practice import to_repeat
from etude.authoring.reading import read_material, title_of_file
from etude.authoring.records import CourseRequest
from etude.authoring.seats import Seat
from etude.authoring.stopping import stoppable
from etude.authoring.wording import key
from etude.classroom.digest import OutputDigest
from etude.classroom.library import Draft
from etude.classroom.model import Classroom
from etude.errors import EtudeError

Result = TypeVar("Result")
log: Final = structlog.get_logger("etude.authoring")
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

    async def admit(self, request: CourseRequest, owner: str) -> None:
        """Raise an `EtudeError` if it can be said at once that there will be no course."""

    def seated(self, seat: Seat) -> "Author":
        """Return the author as it works in one run: what it asks for is written down there."""

    async def framework(self, request: CourseRequest) -> CourseFramework:
        """Return a framework; raises an `EtudeError` if there can be none."""

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        """Return the classroom of a module; its files go into the draft."""

    def silent(self, request: CourseRequest) -> tuple[str, ...]:
        """Return the places of sentences to repeat that will have no sound; blocks."""


class LessonOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson on its own that is to be outlined, or made by its confirmed outline.

    Attributes:
        seat: for whom it is made and where calls are written down (`classroom:<job key>`).
        classroom_id: the id that the classroom will have.
    """

    request: LessonRequest
    seat: Seat
    classroom_id: str
    created_at: datetime


class LessonAuthor(Protocol):
    """Makes lessons on their own, outline first; both may be cancelled at any moment.

    After a kill it is asked once more for the same order: it answers the same, and buys nothing
    twice.
    """

    async def accept(self, request: LessonRequest, owner: str) -> None:
        """Raise an `EtudeError` if it can be said at once that there will be no lesson."""

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

    async def admit(self, request: CourseRequest, owner: str) -> None:
        """Refuse material that gives no course; see `Author`."""
        del owner  # nothing is spent
        refuse_options(request)
        await asyncio.to_thread(syllabus_of, request)

    def seated(self, seat: Seat) -> Author:
        """Return itself: it asks nobody; see `Author`."""
        del seat
        return self

    async def framework(self, request: CourseRequest) -> CourseFramework:
        """Return the framework of the material; see `Author`."""
        return await stoppable(lambda _stop: plan(syllabus_of(request), _title(request)))

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        """Return the classroom of a module; see `Author`."""
        return await stoppable(lambda stop: self._module(order, draft, stop))

    def silent(self, request: CourseRequest) -> tuple[str, ...]:
        """Return the places of sentences without sound; see `Author`."""
        syllabus = syllabus_of(request)
        if self._speaks(request, syllabus.language):
            return ()
        return _without_sound(syllabus)

    async def accept(self, request: LessonRequest, owner: str) -> None:
        """Refuse material that gives no lesson; see `LessonAuthor`."""
        del owner  # nothing is spent
        await asyncio.to_thread(lesson_alone, request)

    async def lesson_outline(self, order: LessonOrder, tell: Tell) -> LessonOutline:
        """Return the outline of a lesson on its own; see `LessonAuthor`."""
        del tell  # there is nothing to wait for

        def outline(_stop: threading.Event) -> LessonOutline:
            language = lesson_syllabus(order.request).language
            return outline_of(order.request, speaks=self._voice_for(order.request, language))

        return await stoppable(outline)

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
            sounds = self._draft_sounds(request, draft, language, stop)
            return classroom_alone(
                request, outline, order.classroom_id, sounds, order.created_at, tell
            )

        return await stoppable(make)

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
        sounds = self._draft_sounds(order.request, draft, syllabus.language, stop)
        return make_classroom(lesson, order.classroom_id, sounds, order.created_at)

    def _draft_sounds(
        self,
        request: CourseRequest | LessonRequest,
        draft: Draft,
        language: Language,
        stop: threading.Event,
    ) -> DraftSounds:
        voice = self._voice if self._voice_for(request, language) else None
        speak = None if voice is None else partial(voice.speak, language=language)
        return DraftSounds(self.recording, request.sounds, draft, speak, stop)

    def recording(self, sha256: str) -> tuple[Path, int]:
        """Return a recording of the material and its length in milliseconds."""
        path = self._sounds(sha256)
        return path, self._length_ms(path)


def refuse_options(request: CourseRequest, *, search: bool = False, pictures: bool = False) -> None:
    """Raise `CourseOptionUnavailableError` for what a course is asked for and is not to be had."""
    missing = (
        ("webSearch", request.web_search and not search),
        ("imageGeneration", request.image_generation and not pictures),
    )
    for option, refused in missing:
        if refused:
            raise CourseOptionUnavailableError(option=option)


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
    if key(first) and len(first) <= _LONGEST_TITLE:
        return first
    names = [one.name for one in request.materials]
    syllabus = syllabus_of(request)
    return syllabus.title or (title_of_file(names[0]) if len(names) == 1 else "")


async def by_author(made: Awaitable[Result]) -> Result:
    """Await what an author makes; anything untyped that it raises is its defect, named as such."""
    try:
        return await made
    except EtudeError:
        raise
    except Exception as error:
        # The place and no traceback: its variables may hold what a learner wrote.
        place = traceback.extract_tb(error.__traceback__)[-1]
        log.error(  # noqa: TRY400 - as above
            "an author failed",
            action="authoring.defect",
            reason=type(error).__name__,
            place=f"{Path(place.filename).name}:{place.lineno}",
        )
        raise AuthorFailedError(reason=type(error).__name__) from error


async def to_the_end(work: Callable[..., None], *args: object) -> None:
    """Do something in a thread and wait for its end, cancelled or not."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
