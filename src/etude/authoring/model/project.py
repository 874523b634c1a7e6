"""A project from what a model wrote: its roles and states are ours."""

from etude.authoring.model.shapes import MilestoneText, ProjectText
from etude.authoring.outline.lesson import Lesson
from etude.classroom.model import PblContent
from etude.classroom.projects import Microtask, Milestone, Project, Role, SynthesisCheck


def content_of(said: ProjectText, lesson: Lesson) -> PblContent:
    """Return the design of a project: nothing done, the first milestone open."""
    learner = Role(
        id="learner",
        type="user",
        name=lesson.phrase("project.learner"),
        description=lesson.phrase("project.learner_does"),
    )
    coach = Role(
        id="coach",
        type="instructor",
        name=lesson.phrase("project.coach"),
        description=lesson.phrase("project.coach_does"),
        system_prompt=said.coach,
    )
    return PblContent(
        project_v2=Project(
            title=said.title,
            description=said.description,
            learning_objective=said.learning_objective,
            gains=said.gains,
            language=lesson.syllabus.language,
            language_directive=lesson.framework.language_directive,
            roles=(learner, coach),
            milestones=tuple(_milestone(one, at) for at, one in enumerate(said.milestones)),
        )
    )


def _milestone(said: MilestoneText, at: int) -> Milestone:
    return Milestone(
        id=f"m{at + 1}",
        title=said.title,
        status="locked" if at else "active",
        order=at,
        briefing=said.briefing,
        completion_criteria=said.completion_criteria,
        debrief=said.debrief,
        synthesis_check=SynthesisCheck(core_concept=said.core_concept),
        microtasks=tuple(
            Microtask(
                id=f"m{at + 1}-t{number + 1}",
                title=task.title,
                description=task.description,
                order=number,
                hints=task.hints,
                completion_criteria=task.completion_criteria,
            )
            for number, task in enumerate(said.tasks)
        ),
    )
