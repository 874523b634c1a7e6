"""Project-based learning (PBL v2): the design of a project, and how to get back to it.

A project in use collects what learners did (`submissions` … `runtime_events`). A classroom carries
the design; `template_of` returns it, and no hash looks at the rest.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from etude.classroom.fields import (
    Config,
    Id,
    Label,
    LongText,
    Order,
    Part,
    Records,
    Reference,
    Text,
    Title,
    Words,
)

RUNTIME: Final = (
    "submissions",
    "evaluations",
    "threads",
    "engagement_events",
    "internal_assessment",
    "proficiency_assessment",
    "runtime_events",
)
"""Fields that hold what learners did."""

RoleType = Literal[
    "user", "instructor", "evaluator", "mentor", "collaborator", "simulator", "system"
]


class Character(Part, frozen=True, kw_only=True):
    """Somebody in a scenario."""

    id: Id
    name: Title
    persona: Text = ""
    situation: Text = ""
    boundaries: Text = ""
    avatar: Reference = ""
    opening_line: Text = ""


class Scenario(Part, frozen=True, kw_only=True):
    """A situation that is played."""

    setting: Text = ""
    scene_visual: Text = ""
    goal: Text = ""
    rules: Text | Words = ""
    learner_role: Text = ""
    characters: Annotated[tuple[Character, ...], Meta(max_length=50)] = ()


class Role(Part, frozen=True, kw_only=True):
    """Who takes part in the project."""

    id: Id
    type: Literal[
        "user", "instructor", "evaluator", "mentor", "collaborator", "simulator", "system"
    ]
    name: Title
    description: Text = ""
    system_prompt: LongText = ""


class Microtask(Part, frozen=True, kw_only=True):
    """A step of a milestone."""

    id: Id
    title: Title
    description: Text = ""
    status: Literal["todo", "in_progress", "completed", "skipped"] = "todo"
    assignee: Label = "user"
    hints: Words = ()
    order: Order = 0
    completion_criteria: Text = ""
    success_when: Text = ""
    skill_focus: Text = ""


class SynthesisCheck(Part, frozen=True, kw_only=True):
    """What has to have been understood at the end of a milestone."""

    core_concept: Text


class Milestone(Part, frozen=True, kw_only=True):
    """A part of the project."""

    id: Id
    title: Title
    description: Text = ""
    status: Literal["locked", "active", "completed"] = "locked"
    order: Order = 0
    briefing: LongText = ""
    completion_criteria: Text = ""
    debrief: LongText = ""
    synthesis_check: SynthesisCheck | None = None
    scenario_stage: Literal["prep", "roleplay", "wrapup"] | None = None
    documents: Annotated[tuple[Config, ...], Meta(max_length=100)] = ()
    microtasks: Annotated[tuple[Microtask, ...], Meta(min_length=1, max_length=100)]


class Project(Part, frozen=True, kw_only=True):
    """A project, as its designer leaves it and its learners find it."""

    ui_phase: Literal["hero", "generating", "workspace", "completed"] = "hero"
    title: Title
    description: Text = ""
    learning_objective: Text | None = None
    gains: Words = ()
    tags: Annotated[tuple[Label, ...], Meta(max_length=50)] = ()
    language: Label = ""
    language_directive: Text | None = None
    scenario: Scenario | None = None
    proficiency: Literal["", "beginner", "intermediate", "advanced"] = ""
    status: Literal["designing", "review", "active", "completed", "archived"] = "active"
    roles: Annotated[tuple[Role, ...], Meta(min_length=1, max_length=50)]
    milestones: Annotated[tuple[Milestone, ...], Meta(min_length=1, max_length=50)]
    submissions: Records = ()
    evaluations: Records = ()
    threads: Records = ()
    engagement_events: Records = ()
    internal_assessment: Config | None = None
    proficiency_assessment: Config | None = None
    runtime_events: Records = ()
    created_at: Label | None = None
    updated_at: Label | None = None


def template_of(project: Project) -> Project:
    """Return the design alone: nothing done, the first milestone open, the others locked."""
    milestones = tuple(
        msgspec.structs.replace(
            milestone,
            status="locked" if index else "active",
            microtasks=tuple(
                msgspec.structs.replace(task, status="todo") for task in milestone.microtasks
            ),
        )
        for index, milestone in enumerate(project.milestones)
    )
    return msgspec.structs.replace(
        project,
        ui_phase="hero",
        proficiency="",
        status="active",
        milestones=milestones,
        submissions=(),
        evaluations=(),
        threads=(),
        engagement_events=(),
        internal_assessment=None,
        proficiency_assessment=None,
        runtime_events=(),
    )


def is_template(project: Project) -> bool:
    """Whether nothing that a learner did is in the project."""
    return project == template_of(project)
