"""Writing one lesson with a model: outline, then scene after scene, each from its own question."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from etude.authoring.model import prompts
from etude.authoring.model.answers import by_contract, fenced
from etude.authoring.model.asking import Asking
from etude.authoring.model.briefs import TYPES, Brief
from etude.authoring.model.errors import ModelAnswerRefusedError
from etude.authoring.model.layout import Laid, lay_out
from etude.authoring.model.project import content_of
from etude.authoring.model.reading_answers import (
    MOST_HAN,
    MOST_WORDS,
    read_outlines,
    read_page,
    read_project,
    read_quiz,
    read_sentences,
    read_slide,
)
from etude.authoring.model.script import Stage, answers_of, read_actions, usual_actions
from etude.authoring.model.shapes import (
    OutlinedScene,
    OutlinedType,
    Outlines,
    PictureBlock,
    QuizPlan,
    SlideText,
)
from etude.authoring.outline import slides
from etude.authoring.outline.lesson import Drawn
from etude.authoring.outline.module import agents_of
from etude.classroom.actions import Action, Speech
from etude.classroom.learner_text import element_text
from etude.classroom.library import Draft
from etude.classroom.model import Content, SlideContent
from etude.llm.errors import LlmError
from etude.llm.pictures import draw
from etude.store import Blobs, UnitOfWork

OUTLINE_TOKENS: Final = 6_000
TOKENS: Final[Mapping[OutlinedType, int]] = {
    "slide": 3_000,
    "quiz": 4_000,
    "interactive": 16_000,
    "pbl": 4_000,
    "practice": 1_500,
}
ACTION_TOKENS: Final = 2_500
_OUTLINE_MATERIAL: Final = 30_000
_SCENE_MATERIAL: Final = 10_000
_PICTURE_TRIES: Final = 2
_SENTENCES: Final = 6
_TITLE: Final = """
  "title": 1 to 120 characters: what the lesson is called,
  "languageDirective": at most 2000 characters: its language, and how its terms are used,
""".rstrip()

log: Final = structlog.get_logger("etude.authoring")


def _unheard(made: int, of: int) -> None:
    del made, of  # nobody follows


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A scene without its sounds.

    Attributes:
        sentences: what is to be practised, instead of a content: its clips come with the sounds.
    """

    title: str
    content: Content | None
    points: tuple[str, ...]
    actions: tuple[Action, ...] = ()
    sentences: tuple[str, ...] = ()


class Outliner:
    """Plans one lesson."""

    def __init__(self, asking: Asking, brief: Brief) -> None:
        """Ask through `asking`."""
        self._asking = asking
        self._brief = brief

    async def outlines(self) -> Outlines:
        """Return the outline of the lesson, without the scenes that come by themselves."""
        brief = self._brief
        messages = prompts.messages(
            "outlines",
            brief.language,
            TITLE=_TITLE if brief.lesson.alone else "",
            WISH=brief.wish,
            TYPES=prompts.listed([f"{one}: {TYPES[one]}" for one in brief.types]),
            REQUIREMENT=fenced("LESSON", brief.requirement),
            MATERIAL=prompts.material_of(brief.materials, _OUTLINE_MATERIAL),
            SOURCES=prompts.sources_of(brief.sources),
        )
        read = partial(
            read_outlines, language=brief.language, types=brief.types, titled=brief.lesson.alone
        )
        return await by_contract(self._asking, "outlines", messages, OUTLINE_TOKENS, read)


class Writer:
    """Writes one lesson."""

    def __init__(self, asking: Asking, blobs: Blobs, draft: Draft, brief: Brief) -> None:
        """Ask through `asking`; pictures are kept in `blobs`, and put into `draft`."""
        self._asking = asking
        self._blobs = blobs
        self._draft = draft
        self._brief = brief
        self._lesson = brief.lesson
        self._agents = agents_of(self._lesson)
        self._written: list[Written] = []
        self._pictures = 0

    async def lesson(
        self, planned: Sequence[OutlinedScene], told: Callable[[int, int], None] = _unheard
    ) -> tuple[Written, ...]:
        """Return every scene of the lesson; `told` is told how many of how many are there."""
        opening = [slides.cover(self._lesson)]
        if not self._lesson.alone:
            opening.append(slides.goals(self._lesson))
        self._written = [self._by_rule(one, at) for at, one in enumerate(opening, 1)]
        for at, one in enumerate(planned):
            told(at, len(planned))
            self._written.append(await self._scene(planned, at, one))
        return tuple(self._written)

    def _by_rule(self, drawn: Drawn, number: int) -> Written:
        said = drawn.says if self._brief.speaks else ()
        return Written(
            title=drawn.title,
            content=drawn.content,
            points=drawn.points,
            actions=usual_actions(said, f"a{number}"),
        )

    async def _scene(
        self, planned: Sequence[OutlinedScene], at: int, scene: OutlinedScene
    ) -> Written:
        context = self._context(planned, at)
        name = f"s{at + 1}"
        written = await self._content(scene, context, name)
        if not self._brief.speaks:
            return written
        number, count = len(self._written) + 1, len(planned) + len(self._written) - at
        position = "the last" if at == len(planned) - 1 else f"{number} of {count}"
        actions = await self._actions(scene, written, context, position)
        return msgspec.structs.replace(written, actions=actions)

    async def _content(self, scene: OutlinedScene, context: str, name: str) -> Written:
        made: dict[str, Any] = {"title": scene.title, "points": scene.key_points}
        language = self._brief.language
        if scene.type == "slide":
            read = partial(read_slide, language=language, palette=self._lesson.palette)
            said: SlideText = await self._asked(scene, read, CONTEXT=context)
            laid = await self._laid(said, name)
            return Written(content=SlideContent(canvas=laid.slide), **made)
        if scene.type == "quiz":
            plan = scene.quiz or QuizPlan()
            wanted = {"COUNT": str(plan.count), "QUESTIONS": ", ".join(plan.types)}
            quiz = partial(read_quiz, language=language, plan=plan)
            return Written(
                content=await self._asked(scene, quiz, CONTEXT=context, **wanted), **made
            )
        if scene.type == "interactive":
            page = partial(read_page, language=language)
            return Written(content=await self._asked(scene, page, CONTEXT=context), **made)
        if scene.type == "pbl":
            project = await self._asked(
                scene, partial(read_project, language=language), CONTEXT=context
            )
            return Written(content=content_of(project, self._lesson), **made)
        chinese = language == "zh-CN"
        words = f"{MOST_HAN} characters" if chinese else f"{MOST_WORDS} words"
        sentences = await self._asked(
            scene,
            read_sentences,
            CONTEXT=context,
            COUNT=str(_SENTENCES),
            WORDS=words,
            RECORDED=self._recorded(),
        )
        return Written(content=None, sentences=sentences, **made)

    def _recorded(self) -> str:
        if self._brief.speaks or not self._brief.recorded:
            return ""
        texts = [fact.text for fact in self._brief.recorded.values()]
        told = fenced("SENTENCES", "\n".join(texts)[:_SCENE_MATERIAL])
        return f"Choose them from these, letter by letter, for only these have a recording:\n{told}"

    async def _asked(self, scene: OutlinedScene, read: Any, **parts: str) -> Any:  # noqa: ANN401 - what `read` makes
        messages = prompts.messages(scene.type, self._brief.language, **parts)
        return await by_contract(
            self._asking, f"scene:{scene.type}", messages, TOKENS[scene.type], read
        )

    async def _laid(self, said: SlideText, name: str) -> Laid:
        palette = self._lesson.palette
        pictures = [one for one in said.blocks if isinstance(one, PictureBlock)]
        wanted = pictures and self._brief.pictures
        reference = await self._picture(pictures[0]) if wanted else None
        return lay_out(said, name, palette, reference)

    async def _picture(self, block: PictureBlock) -> str | None:
        """Return the reference of a picture that a model made; None: its diagram has to do."""
        endpoint, subject = self._asking.terms.pictures, self._asking.subject
        if endpoint is None:
            return None

        async def get() -> bytes:
            made = await draw(endpoint, block.idea)
            blob = await self._blobs.put_bytes(made.data)
            return msgspec.json.encode({"sha256": blob.sha256, "kind": made.kind})

        async def keep(work: UnitOfWork, answer: bytes) -> None:
            sha256 = msgspec.json.decode(answer)["sha256"]
            await self._blobs.add_reference(work, sha256, subject)

        try:
            found = await self._asking.fetch(
                "picture",
                endpoint.model,
                block.idea,
                get,
                pictures=1,
                retries=_PICTURE_TRIES,
                keep=keep,
            )
        except LlmError as error:
            log.warning("no picture", action="authoring.picture", code=error.code)
            return None
        answer = msgspec.json.decode(found)
        self._pictures += 1
        reference = f"media/picture-{self._pictures:02d}.{answer['kind']}"
        data = await self._blobs.read(answer["sha256"])
        await asyncio.to_thread(self._draft.put, reference, [data])
        return reference

    async def _actions(
        self, scene: OutlinedScene, written: Written, context: str, position: str
    ) -> tuple[Action, ...]:
        elements = _elements(written.content)
        stage = Stage(
            scene=scene.type,
            elements=tuple(name for name, _ in elements),
            agents=self._agents,
            hidden=answers_of(written.content),
        )
        messages = prompts.messages(
            "actions",
            self._brief.language,
            LIMITS=_LIMITS.get(scene.type, "No spotlight and no laser: this is no slide."),
            POSITION=position,
            BEFORE=fenced("BEFORE", self._before()),
            ELEMENTS=prompts.listed([f"{name}: {said}"[:200] for name, said in elements]),
            AGENTS=prompts.listed([f"{one.id}: {one.name}, {one.role}" for one in self._agents]),
            CONTEXT=context,
        )
        prefix = f"a{len(self._written) + 1}"
        read = partial(read_actions, stage=stage, prefix=prefix)
        try:
            return await by_contract(self._asking, "actions", messages, ACTION_TOKENS, read)
        except ModelAnswerRefusedError as error:
            log.warning("no script", action="authoring.actions", mistakes=error.params["mistakes"])
            return usual_actions((scene.title, *scene.key_points), prefix)

    def _before(self) -> str:
        said = [
            one.text for scene in self._written for one in scene.actions if isinstance(one, Speech)
        ]
        return " ".join(said)[-150:] or prompts.NOTHING

    def _context(self, planned: Sequence[OutlinedScene], at: int) -> str:
        framework, spec, scene = self._lesson.framework, self._lesson.spec, planned[at]
        contract = framework.continuity_contract
        activity = f"What learners do: {scene.activity}" if scene.activity else ""
        return prompts.render(
            "context",
            COURSE=framework.course_title,
            AUDIENCE=framework.target_audience,
            STYLE=contract.teaching_style,
            DIRECTIVE=framework.language_directive,
            LESSON=f"{spec.title}: {spec.description}",
            OBJECTIVES=prompts.listed(spec.learning_objectives),
            EARLIER=prompts.listed(self._brief.earlier),
            SCENES=prompts.listed([f"{one.type}: {one.title}" for one in planned]),
            NUMBER=str(at + 1),
            TITLE=scene.title,
            DESCRIPTION=scene.description,
            POINTS=prompts.listed(scene.key_points),
            ACTIVITY=activity,
            MATERIAL=prompts.material_of(self._brief.materials, _SCENE_MATERIAL),
        )


_LIMITS: Final[Mapping[str, str]] = {
    "slide": "",
    "quiz": "This is a quiz: only texts, and none of them gives an answer away.",
}


def _elements(content: Content | None) -> list[tuple[str, str]]:
    """Return ids of what is on a slide, and what it says, for pointing at it."""
    if not isinstance(content, SlideContent):
        return []
    told = [(one.id, element_text(one)) for one in content.canvas.elements]
    return [(name, str(said)) for name, said in told if said]
