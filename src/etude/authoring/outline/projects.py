"""The project of a module: the material's own task, or one that its words make."""

from collections.abc import Iterator
from typing import Final

from etude.authoring.material import Ref
from etude.authoring.outline.lesson import Drawn, Lesson
from etude.authoring.outline.planning import key_words
from etude.classroom.model import PblContent
from etude.classroom.projects import Microtask, Milestone, Project, Role, SynthesisCheck

_SHOWN: Final = 8
_MOST_TASKS: Final = 100
"""The bound of a milestone."""


def project(lesson: Lesson) -> Drawn:
    """Return the project: get ready, make it, show it."""
    title = lesson.phrase(
        "project.title_of" if lesson.unit.tasks else "project.title", title=lesson.spec.title
    )
    words = key_words(lesson.unit, _SHOWN)
    made = Project(
        title=title[:300],
        description=lesson.phrase("project.description"),
        learning_objective=lesson.spec.learning_objectives[0],
        gains=lesson.spec.learning_objectives,
        tags=tuple(word[:200] for word in words),
        language=lesson.syllabus.language,
        language_directive=lesson.framework.language_directive,
        roles=tuple(_roles(lesson, title)),
        milestones=tuple(_milestones(lesson, words)),
    )
    refs: tuple[Ref, ...] = tuple(task.ref for task in lesson.unit.tasks)
    return Drawn(
        title=title,
        content=PblContent(project_v2=made),
        refs=refs or (lesson.unit.ref,),
        says=(lesson.phrase("say.project"),),
        points=(title,),
    )


def _roles(lesson: Lesson, title: str) -> Iterator[Role]:
    yield Role(
        id="learner",
        type="user",
        name=lesson.phrase("project.learner"),
        description=lesson.phrase("project.learner_does"),
    )
    yield Role(
        id="coach",
        type="instructor",
        name=lesson.phrase("project.coach"),
        description=lesson.phrase("project.coach_does"),
        system_prompt=lesson.phrase("project.coach_prompt", title=title),
    )


def _milestones(lesson: Lesson, words: tuple[str, ...]) -> Iterator[Milestone]:
    shown = lesson.list_of(words) or lesson.spec.title
    for order, (name, tasks) in enumerate(_tasks(lesson, shown)):
        yield Milestone(
            id=f"m{order + 1}",
            title=lesson.phrase(f"project.{name}"),
            status="locked" if order else "active",
            order=order,
            briefing=lesson.phrase(f"project.briefing_{name}", words=shown),
            completion_criteria=lesson.phrase("project.done_step"),
            debrief=lesson.phrase("project.debrief"),
            synthesis_check=SynthesisCheck(core_concept=lesson.spec.learning_objectives[0]),
            microtasks=tuple(
                Microtask(
                    id=f"m{order + 1}-t{at}",
                    title=task[:300],
                    order=at - 1,
                    hints=(
                        lesson.phrase("project.hint_lesson"),
                        lesson.phrase("project.hint_small"),
                    ),
                    completion_criteria=lesson.phrase("project.done_step"),
                    skill_focus=lesson.spec.title,
                )
                for at, task in enumerate(tasks, 1)
            ),
        )


def _tasks(lesson: Lesson, shown: str) -> Iterator[tuple[str, list[str]]]:
    own = [task.text for task in lesson.unit.tasks]
    yield "plan", [lesson.phrase("project.task_choose", words=shown)]
    if own:
        yield "make", own[:_MOST_TASKS]
    elif lesson.unit.sentences:
        names = (("task_write", "task_draw"), ("task_story", "task_read"))[lesson.index % 2]
        yield "make", [lesson.phrase(f"project.{name}") for name in names]
    else:
        topics = [one.title for one in (*lesson.unit.steps, *lesson.unit.sections) if one.title]
        about = topics[0] if topics else lesson.spec.title
        yield (
            "make",
            [
                lesson.phrase("project.task_explain", title=about),
                lesson.phrase("project.task_write"),
            ],
        )
    yield "show", [lesson.phrase("project.task_tell"), lesson.phrase("project.task_ask")]
