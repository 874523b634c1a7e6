"""The author that asks a model: framework, then each module scene by scene.

One question after the other, every answer recorded before it is used, so that a kill loses none and
repeats at most one. Whatever comes back passes its contract, the classroom's rules and the gates of
publishing before a module is there; nothing half-written stays.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.authoring.authors import LessonOrder, ModuleOrder, Voice, refuse_options
from etude.authoring.classrooms.records import LessonOutline, LessonRequest, Step, Tell
from etude.authoring.errors import CourseVoiceMissingError
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Language
from etude.authoring.model import prompts
from etude.authoring.model.accounts import SEARCH
from etude.authoring.model.answers import by_contract, fenced
from etude.authoring.model.asking import Asking, Desk, require_quota
from etude.authoring.model.briefs import TYPES, Brief, brief_of_lesson, brief_of_module
from etude.authoring.model.errors import CourseRequestEmptyError, SearchFailedError
from etude.authoring.model.finishing import finish
from etude.authoring.model.lessons import checked_edit, outline_from, planned_from
from etude.authoring.model.material_sounds import recorded_sentences
from etude.authoring.model.reading_framework import read_framework_answer
from etude.authoring.model.searching import Source, search
from etude.authoring.model.writing import Outliner, Writer, Written
from etude.authoring.records import CourseRequest
from etude.authoring.seats import Seat
from etude.authoring.stopping import stoppable
from etude.authoring.wording import language_of
from etude.classroom.library import Draft
from etude.classroom.model import Classroom
from etude.llm.chat import Chat
from etude.people.spending import ledger
from etude.store import Blobs

FRAMEWORK_TOKENS: Final = 16_000
_MATERIAL: Final = 50_000
_QUERY: Final = 200
_SEARCHES: Final = 1

log: Final = structlog.get_logger("etude.authoring")


class ModelAuthor:
    """Asks a model; `seated` gives it the run in which it does."""

    def __init__(
        self,
        desk: Desk,
        blobs: Blobs,
        length_ms: Callable[[Path], int],
        voice: Voice | None = None,
        seat: Seat | None = None,
    ) -> None:
        """`length_ms` measures recordings; `voice` may speak."""
        self._desk = desk
        self._blobs = blobs
        self._length_ms = length_ms
        self._voice = voice
        self._seat = seat

    async def admit(self, request: CourseRequest, owner: str) -> None:
        """Refuse what no model is asked for; see `Author`.

        Raises:
            CourseRequestEmptyError, CourseOptionUnavailableError: of the request.
            QuotaSpentError, PriceMissingError: nothing may be spent.
            LlmAddressError, LlmNotInstalledError: the model cannot be asked.
            CourseVoiceMissingError: it is to be spoken, and nobody speaks its language.
        """
        terms = self._desk.terms
        refuse_options(
            request, search=terms.search_url is not None, pictures=terms.pictures is not None
        )
        await self._require(request, owner)

    async def _require(self, request: CourseRequest | LessonRequest, owner: str) -> None:
        terms = self._desk.terms
        if not request.requirement.strip() and not request.materials:
            raise CourseRequestEmptyError
        self._speaks(request)
        await Chat(terms.endpoint).close()
        terms.price_of(terms.model_for("course-framework"))
        async with self._desk.database.transaction() as work:
            await require_quota(work, self._desk, owner)

    def seated(self, seat: Seat) -> "ModelAuthor":
        """Return the author as it works in one run; see `Author`."""
        return ModelAuthor(self._desk, self._blobs, self._length_ms, self._voice, seat)

    def silent(self, request: CourseRequest) -> tuple[str, ...]:
        """Return what is practised without sound: sentences are chosen later; see `Author`."""
        return self._silent(request)

    def _silent(self, request: CourseRequest | LessonRequest) -> tuple[str, ...]:
        if self._speaks(request) or recorded_sentences(request):
            return ()
        return ("practice",)

    async def framework(self, request: CourseRequest) -> CourseFramework:
        """Return the framework that a model plans; see `Author`."""
        language = language_for(request)
        async with Chat(self._desk.terms.endpoint) as chat:
            asking = self._asking(chat)
            sources = await self._searched(asking, request, language)
            messages = prompts.messages(
                "framework",
                language,
                REQUEST=fenced("REQUEST", request.requirement) if request.requirement else "-",
                MATERIAL=prompts.material_of(request.materials, _MATERIAL),
                SOURCES=prompts.sources_of(sources),
            )
            return await by_contract(
                asking,
                "course-framework",
                messages,
                FRAMEWORK_TOKENS,
                partial(read_framework_answer, language=language),
            )

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        """Return the classroom of a module; see `Author`."""
        brief = brief_of_module(
            order,
            language_for(order.request),
            await self._sources(),
            recorded_sentences(order.request),
            speaks=self._speaks(order.request),
        )
        async with Chat(self._desk.terms.endpoint) as chat:
            asking = self._asking(chat)
            planned = await Outliner(asking, brief).outlines()
            written = await Writer(asking, self._blobs, draft, brief).lesson(planned.scenes)
        return await self._finished(brief, written, draft)

    async def accept(self, request: LessonRequest, owner: str) -> None:
        """Refuse what no model is asked for; see `LessonAuthor`. Raises as `admit`."""
        await self._require(request, owner)

    async def lesson_outline(self, order: LessonOrder, tell: Tell) -> LessonOutline:
        """Return the outline that a model plans; see `LessonAuthor`."""
        tell(Step.OUTLINES, 0, 1)
        brief = self._brief_of(order, None)
        async with Chat(self._desk.terms.endpoint) as chat:
            asking = Asking(self._desk, order.seat, chat)
            return outline_from(await Outliner(asking, brief).outlines())

    def edited_outline(self, made: LessonOutline, edited: LessonOutline) -> LessonOutline:
        """Return an edited outline; see `LessonAuthor`."""
        known = {one.type for one in made.scenes}
        return checked_edit(edited, [one for one in TYPES if one != "practice" or one in known])

    async def lesson(
        self, order: LessonOrder, outline: LessonOutline, draft: Draft, tell: Tell
    ) -> Classroom:
        """Return the classroom of a confirmed outline; see `LessonAuthor`."""
        brief = self._brief_of(order, outline)
        async with Chat(self._desk.terms.endpoint) as chat:
            writer = Writer(Asking(self._desk, order.seat, chat), self._blobs, draft, brief)
            written = await writer.lesson(planned_from(outline), partial(tell, Step.SCENES))
        tell(Step.TTS, 0, 1)
        return await self._finished(brief, written, draft)

    def silent_sentences(self, request: LessonRequest) -> tuple[str, ...]:
        """Return what is practised without sound; see `silent`."""
        return self._silent(request)

    def _brief_of(self, order: LessonOrder, outline: LessonOutline | None) -> Brief:
        request = order.request
        return brief_of_lesson(
            order,
            outline,
            language_for(request),
            recorded_sentences(request),
            speaks=self._speaks(request),
        )

    async def _finished(self, brief: Brief, written: Sequence[Written], draft: Draft) -> Classroom:
        voice = self._voice if brief.speaks else None
        return await stoppable(
            lambda stop: finish(brief, written, draft, self._recording, voice, stop)
        )

    def _recording(self, sha256: str) -> tuple[Path, int]:
        path = self._blobs.file_of(sha256)
        return path, self._length_ms(path)

    def _asking(self, chat: Chat) -> Asking:
        if self._seat is None:
            message = "an author asks only where it is seated"
            raise RuntimeError(message)
        return Asking(self._desk, self._seat, chat)

    def _speaks(self, request: CourseRequest | LessonRequest) -> bool:
        if not request.narrated:
            return False
        language = language_for(request)
        if self._voice is None or not self._voice.knows(language):
            raise CourseVoiceMissingError(language=language)
        return True

    async def _searched(
        self, asking: Asking, request: CourseRequest, language: Language
    ) -> Sequence[Source]:
        """Return what the web says, if that is wanted; a dead search is told, and left out."""
        server = self._desk.terms.search_url
        if not request.web_search or server is None:
            return ()
        query = _query(request)

        async def get() -> bytes:
            return msgspec.json.encode(await search(server, query, language))

        try:
            found = await asking.fetch(SEARCH, "searxng", (query, language), get, retries=_SEARCHES)
        except SearchFailedError as error:
            log.warning("no search", action="authoring.search", reason=error.params["reason"])
            return ()
        return msgspec.json.decode(found, type=tuple[Source, ...])

    async def _sources(self) -> Sequence[Source]:
        """Return what was found for the framework: the lessons stand on the same pages."""
        if self._seat is None:
            return ()
        async with self._desk.database.read() as connection:
            found = await ledger.found_by(connection, self._seat.subject, SEARCH)
        return msgspec.json.decode(found[0], type=tuple[Source, ...]) if found else ()


def language_for(request: CourseRequest | LessonRequest) -> Language:
    """Return the language to write in: the one asked for, else that of the request's words."""
    if request.language is not None:
        return request.language
    words = (request.requirement, *(one.text for one in request.materials))
    return language_of("\n".join(words))


def _query(request: CourseRequest) -> str:
    asked = request.requirement or " ".join(one.text for one in request.materials)
    return " ".join(asked.replace("#", " ").split())[:_QUERY]
