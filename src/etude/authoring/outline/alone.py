"""A lesson on its own: its outline, which may be edited, and its classroom, by the course's code.

What is taught comes from the material. Of an edited outline the titles, the order and what was left
out count; nothing can be added that the material does not say.
"""

import html
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from etude.authoring.classrooms.records import (
    LessonOutline,
    LessonRequest,
    SceneOutline,
    Step,
    Tell,
)
from etude.authoring.errors import (
    LessonOutlineInvalidError,
    LessonOutlineMistakeError,
    LessonStepsMissingError,
)
from etude.authoring.material import Fact, Material, Syllabus
from etude.authoring.outline.activities import fitting_kinds
from etude.authoring.outline.lesson import Drawn, Lesson, Sound, Sounds, scene_of
from etude.authoring.outline.module import classroom_of, drawn_scenes
from etude.authoring.outline.planning import plan_lesson
from etude.authoring.reading import read_lesson, title_of_file
from etude.authoring.wording import key
from etude.classroom.model import Classroom, InteractiveContent, Scene, SceneType, SlideContent
from etude.classroom.slides import Element, TextElement

OWN_TEXT: Final = "text.txt"
"""What the material is called that is the requirement itself."""
_LONGEST_TITLE: Final = 120
_ACTIVITIES: Final = 4


def lesson_alone(request: LessonRequest, title: str = "") -> Lesson:
    """Return what a lesson on its own is made from; `title` is what its outline says.

    Raises:
        LessonMaterialTooLittleError, LessonMaterialTooMuchError, MaterialTwiceError,
        MaterialUnreadableError, MaterialLineTooLongError: no lesson can be made of it.
        LessonStepsMissingError: a task is wanted, and the material has nothing to do in order.
    """
    syllabus = lesson_syllabus(request)
    framework = plan_lesson(syllabus, title or _title(request, syllabus))
    lesson = Lesson(
        syllabus=syllabus, at=0, spec=framework.modules[0], framework=framework, index=0
    )
    if request.task_engine_mode and "steps" not in fitting_kinds(lesson):
        raise LessonStepsMissingError
    return lesson


def lesson_syllabus(request: LessonRequest) -> Syllabus:
    """Return the syllabus of a request: of its material, else of its text. Raises as above."""
    own = (Material(name=OWN_TEXT, text=request.requirement),)
    return read_lesson(
        request.materials or own,
        language=request.language,
        sounds=[one.name for one in request.sounds],
    )


def outline_of(request: LessonRequest, *, speaks: bool) -> LessonOutline:
    """Return the outline of a lesson; `speaks`: whether sentences without recording get a voice."""
    lesson = lesson_alone(request)
    scenes = [
        SceneOutline(
            id=f"s{number:02d}",
            type=_type(drawn),
            title=drawn.title[:300],
            key_points=tuple(point[:2000] for point in drawn.points if point)[:20],
            source=lesson.syllabus.place(drawn.refs)[:2000],
        )
        for number, drawn in enumerate(_scenes(lesson, request, _Promised(speaks=speaks)), 1)
    ]
    return LessonOutline(
        title=lesson.spec.title,
        language_directive=lesson.framework.language_directive,
        scenes=tuple(scenes),
    )


def checked_outline(made: LessonOutline, edited: LessonOutline) -> LessonOutline:
    """Return an outline as a person edited it, if there is material for all of it.

    Raises:
        LessonOutlineInvalidError: its parts are the mistakes.
    """
    found = list(_mistakes(made, edited))
    if found:
        raise LessonOutlineInvalidError(*found, mistakes=len(found))
    return edited


def classroom_alone(
    request: LessonRequest,
    outline: LessonOutline,
    classroom_id: str,
    sounds: Sounds,
    created_at: datetime,
    tell: Tell,
) -> Classroom:
    """Return the classroom of a confirmed outline.

    Raises:
        LessonOutlineInvalidError: it is of other material.
    """
    lesson = lesson_alone(request, outline.title)
    drawn = _chosen(request, outline, lesson, sounds, tell)
    scenes: list[Scene] = []
    for number, one in enumerate(drawn, 1):
        tell(Step.TTS, number, len(drawn))
        scenes.append(scene_of(one, number, classroom_id, sounds))
    return classroom_of(
        lesson, scenes, classroom_id, created_at, task_engine_mode=request.task_engine_mode
    )


def _chosen(
    request: LessonRequest, outline: LessonOutline, lesson: Lesson, sounds: Sounds, tell: Tell
) -> list[Drawn]:
    """Return the scenes that an outline names, in its order, by its titles."""
    by_id: dict[str, Drawn] = {}
    for number, one in enumerate(_scenes(lesson, request, sounds), 1):
        tell(Step.SCENES, number, len(outline.scenes))
        by_id[f"s{number:02d}"] = one
    # A title that nobody touched may hold the lesson's own, which somebody may have touched.
    untouched = {
        f"s{number:02d}": one.title
        for number, one in enumerate(_scenes(lesson_alone(request), request, sounds), 1)
    }
    unknown = [
        LessonOutlineMistakeError(path=f"scenes[{at}].id", rule="no_material", detail=scene.id)
        for at, scene in enumerate(outline.scenes)
        if scene.id not in by_id
    ]
    if unknown:
        raise LessonOutlineInvalidError(*unknown, mistakes=len(unknown))
    return [
        by_id[scene.id]
        if scene.title == untouched[scene.id]
        else _retitled(by_id[scene.id], scene.title)
        for scene in outline.scenes
    ]


def _scenes(lesson: Lesson, request: LessonRequest, sounds: Sounds) -> Iterator[Drawn]:
    for drawn in drawn_scenes(lesson, sounds, _kinds(lesson, request)):
        content = drawn.content
        steps = (
            isinstance(content, InteractiveContent)
            and request.task_engine_mode
            and (content.widget_config or {}).get("kind") == "steps"
        )
        if steps and isinstance(content, InteractiveContent):
            skill = msgspec.structs.replace(content, widget_type="procedural-skill")
            yield msgspec.structs.replace(drawn, content=skill)
        else:
            yield drawn


def _kinds(lesson: Lesson, request: LessonRequest) -> Sequence[str]:
    """Return the kinds of activities: one, or several where that is asked for."""
    fits = fitting_kinds(lesson)
    if request.task_engine_mode:
        fits = ["steps", *(kind for kind in fits if kind != "steps")]
    return fits[: _ACTIVITIES if request.interactive_mode else 1]


def _title(request: LessonRequest, syllabus: Syllabus) -> str:
    """Return the title that was asked for, the material's, or one by the name of the only file."""
    first = request.requirement.strip().partition("\n")[0]
    if request.materials and key(first) and len(first) <= _LONGEST_TITLE:
        return first
    named = [one.name for one in request.materials]
    return syllabus.title or (title_of_file(named[0])[:_LONGEST_TITLE] if len(named) == 1 else "")


def _type(drawn: Drawn) -> SceneType:
    kind: SceneType = drawn.content.__struct_config__.tag  # type: ignore[assignment]  # the tag is the type
    return kind


def _retitled(drawn: Drawn, title: str) -> Drawn:
    """Give a scene another title: also where a slide shows it."""
    content = drawn.content
    if isinstance(content, SlideContent):
        elements = tuple(_reworded(content.canvas.elements, drawn.title, title))
        canvas = msgspec.structs.replace(content.canvas, elements=elements)
        content = msgspec.structs.replace(content, canvas=canvas)
    return msgspec.structs.replace(drawn, title=title, content=content)


def _reworded(elements: Sequence[Element], old: str, new: str) -> Iterator[Element]:
    said, wanted, done = html.escape(old), html.escape(new), False
    for element in elements:
        if isinstance(element, TextElement) and not done and said in element.content:
            done = True
            changed = element.content.replace(said, wanted, 1)
            yield msgspec.structs.replace(element, content=changed)
        else:
            yield element


def _mistakes(made: LessonOutline, edited: LessonOutline) -> Iterator[LessonOutlineMistakeError]:
    known = {scene.id: scene for scene in made.scenes}
    seen: set[str] = set()
    for at, scene in enumerate(edited.scenes):
        path = f"scenes[{at}]"
        before = known.get(scene.id)
        if before is None:
            yield _mistake(f"{path}.id", "no_material", scene.id)
            continue
        if scene.id in seen:
            yield _mistake(f"{path}.id", "twice", scene.id)
        seen.add(scene.id)
        for name in ("type", "description", "key_points", "source"):
            if getattr(scene, name) != getattr(before, name):
                spelt = msgspec.structs.fields(SceneOutline)
                shown = next(one.encode_name for one in spelt if one.name == name)
                yield _mistake(f"{path}.{shown}", "from_material")
    if edited.language_directive != made.language_directive:
        yield _mistake("languageDirective", "from_material")
    if not any(scene.type == "interactive" for scene in edited.scenes):
        yield _mistake("scenes", "no_activity")


def _mistake(path: str, rule: str, detail: str = "") -> LessonOutlineMistakeError:
    return LessonOutlineMistakeError(path=path, rule=rule, detail=detail)


class _Promised:
    """Sounds that are not there yet: what will have one."""

    def __init__(self, *, speaks: bool) -> None:
        self._speaks = speaks

    def speech(self, words: str) -> str | None:
        """Return None: an outline says nothing aloud."""
        del words
        return None

    def clip(self, fact: Fact) -> Sound | None:
        """Return something for a sentence that will have a sound."""
        if fact.sound is None and not self._speaks:
            return None
        return Sound(reference="audio/promised.mp3", duration_ms=1)
