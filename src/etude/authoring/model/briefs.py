"""What one lesson is written by: a module of a course, or a lesson on its own."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from etude.authoring.authors import LessonOrder, ModuleOrder
from etude.authoring.classrooms.records import LessonOutline, LessonRequest
from etude.authoring.framework import Contract, CourseFramework, ModuleSpec
from etude.authoring.material import Fact, Language, Material, Ref, Syllabus, Unit
from etude.authoring.model.searching import Source
from etude.authoring.model.shapes import OutlinedType
from etude.authoring.outline.lesson import Lesson
from etude.authoring.records import SoundFile
from etude.i18n import text

TYPES: Final[Mapping[OutlinedType, str]] = {
    "slide": "text, tables, steps, definitions or one picture on a slide",
    "quiz": "questions with answers that are checked at once",
    "interactive": "a small page on which learners do something and see what it does",
    "pbl": "a project with milestones; at most one",
    "practice": "sentences to listen to and read aloud, one after the other; at most one",
}
_INTERACTIVE: Final = "Most scenes are interactive: learners find out by doing."
_TASK: Final = (
    "The lesson is a task: learners carry it out step by step on interactive scenes, each of which"
    " shows one step and lets them do it."
)
_MINUTES_A_SCENE: Final = 3
_LONGEST_ABOUT: Final = 150


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What a lesson is written by.

    Attributes:
        lesson: framework, module, colours, phrases.
        requirement: everything that is asked for, in words.
        earlier: titles of the lessons before it.
        wish: what kind of lesson it is to be; empty = the usual one.
        speaks: whether a voice says what the teacher says.
        recorded: sentences of the material that have a recording, by their letters.
        pictures: whether pictures may be made.
    """

    lesson: Lesson
    language: Language
    requirement: str
    materials: tuple[Material, ...]
    sounds: tuple[SoundFile, ...]
    classroom_id: str
    created_at: datetime
    speaks: bool
    recorded: Mapping[str, Fact]
    sources: Sequence[Source] = ()
    earlier: tuple[str, ...] = ()
    wish: str = ""
    pictures: bool = False
    task_engine_mode: bool = False

    @property
    def types(self) -> tuple[OutlinedType, ...]:
        """The types of scene that the lesson can have: nothing is practised without sound."""
        sounds = self.speaks or bool(self.recorded)
        return tuple(one for one in TYPES if one != "practice" or sounds)


def brief_of_module(
    order: ModuleOrder,
    language: Language,
    sources: Sequence[Source],
    recorded: Mapping[str, Fact],
    *,
    speaks: bool,
) -> Brief:
    """Return what a module is written by."""
    framework = order.framework
    return Brief(
        lesson=_lesson(framework, order.index, language),
        language=language,
        requirement=order.requirement,
        materials=order.request.materials,
        sounds=order.request.sounds,
        classroom_id=order.classroom_id,
        created_at=order.created_at,
        speaks=speaks,
        recorded=recorded,
        sources=sources,
        earlier=tuple(one.stage.title for one in order.earlier),
        pictures=order.request.image_generation,
    )


def brief_of_lesson(
    order: LessonOrder,
    outline: LessonOutline | None,
    language: Language,
    recorded: Mapping[str, Fact],
    *,
    speaks: bool,
) -> Brief:
    """Return what a lesson on its own is written by; `outline` None: it has none yet."""
    request = order.request
    return Brief(
        lesson=_lesson(_alone(request, outline, language), 0, language),
        language=language,
        requirement=request.requirement,
        materials=request.materials,
        sounds=request.sounds,
        classroom_id=order.classroom_id,
        created_at=order.created_at,
        speaks=speaks,
        recorded=recorded,
        wish=_TASK if request.task_engine_mode else _INTERACTIVE * request.interactive_mode,
        task_engine_mode=request.task_engine_mode,
    )


def _lesson(framework: CourseFramework, index: int, language: Language) -> Lesson:
    spec = framework.modules[index]
    unit = Unit(title=spec.title, ref=Ref(0, 1))
    syllabus = Syllabus(
        title=framework.course_title, language=language, units=(unit,), files=("framework",)
    )
    return Lesson(syllabus=syllabus, at=0, spec=spec, framework=framework, index=index)


def _alone(request: LessonRequest, outline: LessonOutline | None, say: Language) -> CourseFramework:
    """Return the framework of a course that is one lesson."""
    title = outline.title if outline else "-"
    first = request.requirement.strip().partition("\n")[0]
    about = first if 0 < len(first) <= _LONGEST_ABOUT else title
    scenes = len(outline.scenes) if outline else 1
    directive = outline.language_directive if outline else ""
    spec = ModuleSpec(
        module_id="m-01",
        title=title,
        description=about,
        generation_prompt=request.requirement or title,
        learning_objectives=(title,),
        prerequisites=(),
        incoming_knowledge=(),
        outgoing_knowledge=(title,),
        excluded_topics=(),
        estimated_minutes=5 + _MINUTES_A_SCENE * scenes,
    )
    return CourseFramework(
        course_title=title,
        summary=about,
        language_directive=directive or text("authoring.language", say),
        target_audience=text("authoring.audience", say),
        course_goals=(title,),
        continuity_contract=Contract(
            terminology=(),
            teaching_style=text("authoring.style", say),
            difficulty_progression=text("authoring.progression", say),
            assessment_strategy=text("authoring.assessment", say),
        ),
        modules=(spec,),
    )
