"""One module of a course as an ordinary classroom, by rule."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from etude.authoring.errors import ModuleMaterialMissingError
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Syllabus
from etude.authoring.outline import slides
from etude.authoring.outline.activities import activity, chosen_kinds
from etude.authoring.outline.lesson import Drawn, Lesson, Sounds, scene_of
from etude.authoring.outline.planning import key_words, module_id
from etude.authoring.outline.practice import practice
from etude.authoring.outline.projects import project
from etude.authoring.outline.quizzes import quizzes
from etude.authoring.wording import key
from etude.classroom.digest import OutputDigest
from etude.classroom.model import DSL_VERSION, Agent, Classroom, Scene, Stage

_RECALLED: Final = 6


def lesson_of(
    syllabus: Syllabus,
    framework: CourseFramework,
    index: int,
    earlier: Sequence[OutputDigest] = (),
) -> Lesson:
    """Return what module `index` of a framework is made from.

    Raises:
        ModuleMaterialMissingError: the framework's module is of no unit of the material.
    """
    spec = framework.modules[index]
    ids = [module_id(syllabus, at) for at in range(len(syllabus.units))]
    if spec.module_id not in ids:
        raise ModuleMaterialMissingError(module=index)
    at = ids.index(spec.module_id)
    known = tuple(_recalled(syllabus, framework, index, earlier))
    return Lesson(
        syllabus=syllabus, at=at, spec=spec, framework=framework, index=index, known=known
    )


def make_classroom(
    lesson: Lesson, classroom_id: str, sounds: Sounds, created_at: datetime
) -> Classroom:
    """Return the classroom of a module; equal input means an equal semantic hash."""
    scenes = [
        scene_of(drawn, number, classroom_id, sounds)
        for number, drawn in enumerate(drawn_scenes(lesson, sounds, [_kind(lesson)]), 1)
    ]
    return classroom_of(lesson, scenes, classroom_id, created_at)


def classroom_of(
    lesson: Lesson,
    scenes: Sequence[Scene],
    classroom_id: str,
    created_at: datetime,
    *,
    task_engine_mode: bool = False,
) -> Classroom:
    """Return scenes of a lesson as a classroom."""
    moment_ms = int(created_at.timestamp() * 1000)
    stage = Stage(
        id=classroom_id,
        name=lesson.spec.title,
        description=lesson.spec.description,
        created_at=moment_ms,
        updated_at=moment_ms,
        language_directive=lesson.framework.language_directive,
        style="etude",
        agent_ids=("teacher", "student"),
        generated_agent_configs=agents_of(lesson),
        interactive_mode=True,
        task_engine_mode=task_engine_mode,
    )
    return Classroom(
        id=classroom_id,
        dsl_version=DSL_VERSION,
        created_at=created_at,
        stage=stage,
        scenes=tuple(scenes),
    )


def drawn_scenes(lesson: Lesson, sounds: Sounds, kinds: Sequence[str]) -> Iterator[Drawn]:
    """Yield the scenes of a lesson in their order; `kinds` are those of its activities."""
    checks = quizzes(lesson)
    yield slides.cover(lesson)
    yield slides.goals(lesson)
    if before := slides.recall(lesson):
        yield before
    yield from slides.words(lesson)
    yield from slides.topics(lesson)
    yield from slides.steps(lesson)
    yield from slides.sentences(lesson)
    yield from checks[:1]
    yield from (activity(lesson, kind) for kind in kinds)
    if spoken := practice(lesson, sounds):
        yield spoken
    yield from checks[1:]
    if talk := slides.talk(lesson):
        yield talk
    yield project(lesson)
    yield slides.summary(lesson)


def _kind(lesson: Lesson) -> str:
    """Return the kind of activity of a module, as all modules up to it share them out."""
    known = {module_id(lesson.syllabus, at): at for at in range(len(lesson.syllabus.units))}
    modules = lesson.framework.modules[: lesson.index + 1]
    order = [known[one.module_id] for one in modules if one.module_id in known]

    def of(at: int) -> Lesson:
        spec = next(one for one in modules if known.get(one.module_id) == at)
        return Lesson(
            syllabus=lesson.syllabus,
            at=at,
            spec=spec,
            framework=lesson.framework,
            index=lesson.index,
        )

    return chosen_kinds(order, of)[-1]


def _recalled(
    syllabus: Syllabus,
    framework: CourseFramework,
    index: int,
    earlier: Sequence[OutputDigest],
) -> Iterator[str]:
    """Yield words of the module before that its classroom really taught, by its digest."""
    if not index or not earlier:
        return
    ids = [module_id(syllabus, at) for at in range(len(syllabus.units))]
    before = framework.modules[index - 1].module_id
    if before not in ids:
        return
    digest = earlier[-1]
    said = {key(one) for one in digest.covered_concepts}
    said |= {key(word) for scene in digest.scenes for word in (scene.title, scene.key_content)}
    whole = "\n".join(said)
    words = [word for word in key_words(syllabus.units[ids.index(before)]) if key(word) in whole]
    yield from words[:_RECALLED]


def agents_of(lesson: Lesson) -> tuple[Agent, ...]:
    """Return who is in the classroom: a teacher and a student, named in the course's language."""
    teacher = Agent(
        id="teacher",
        name=lesson.phrase("agent.teacher"),
        role="teacher",
        persona=lesson.phrase("agent.teacher_persona"),
        avatar="/avatars/teacher.png",
        color="#2b6cb0",
        priority=10,
    )
    student = Agent(
        id="student",
        name=lesson.phrase("agent.student"),
        role="student",
        persona=lesson.phrase("agent.student_persona"),
        avatar="/avatars/student.png",
        color="#c05621",
        priority=5,
    )
    return (teacher, student)
