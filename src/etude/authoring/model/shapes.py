"""The forms of a model's answers, as its prompts describe them. Bounds are those of what is made.

A slide has content and no geometry: `layout` draws it.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(min_length=1, max_length=120)]
Line = Annotated[str, Meta(min_length=1, max_length=300)]
Prose = Annotated[str, Meta(min_length=1, max_length=1000)]
OutlinedType = Literal["slide", "quiz", "interactive", "pbl", "practice"]
QuestionType = Literal["single", "multiple", "short_answer"]


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class QuizPlan(_Shape, frozen=True, kw_only=True):
    """How many questions, of which types."""

    count: Annotated[int, Meta(ge=1, le=8)] = 3
    types: Annotated[tuple[QuestionType, ...], Meta(min_length=1, max_length=3)] = ("single",)


class OutlinedScene(_Shape, frozen=True, kw_only=True):
    """A scene before it is written."""

    type: OutlinedType
    title: Name
    description: Prose
    key_points: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=8)]
    quiz: QuizPlan | None = None
    activity: Annotated[str, Meta(max_length=1000)] | None = None


class Outlines(_Shape, frozen=True, kw_only=True):
    """The scenes of a lesson, without those that come by themselves; its title if it is alone."""

    title: Name | None = None
    language_directive: Annotated[str, Meta(max_length=2000)] | None = None
    scenes: Annotated[tuple[OutlinedScene, ...], Meta(min_length=4, max_length=14)]


class TextBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """A paragraph."""

    text: Annotated[str, Meta(min_length=1, max_length=600)]


class BulletsBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="bullets"):
    """Points."""

    items: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=8)]


class StepsBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="steps"):
    """Points whose order matters."""

    items: Annotated[tuple[Line, ...], Meta(min_length=2, max_length=8)]


class DefinitionBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="definition"):
    """A word and what it means."""

    term: Name
    meaning: Annotated[str, Meta(min_length=1, max_length=400)]
    example: Annotated[str, Meta(max_length=400)] | None = None


_Cell = Annotated[str, Meta(max_length=120)]
_Row = Annotated[tuple[_Cell, ...], Meta(min_length=1, max_length=6)]


class TableBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="table"):
    """A table."""

    header: _Row
    rows: Annotated[tuple[_Row, ...], Meta(min_length=1, max_length=8)]


class PictureBlock(_Shape, frozen=True, kw_only=True, tag_field="kind", tag="picture"):
    """A picture: made by a model from `idea`, or drawn by rule from shape and labels."""

    idea: Annotated[str, Meta(min_length=1, max_length=600)]
    caption: Annotated[str, Meta(max_length=200)] = ""
    shape: Literal["chain", "cycle", "parts"] = "parts"
    labels: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=60)], ...],
        Meta(min_length=2, max_length=6),
    ]


Block = TextBlock | BulletsBlock | StepsBlock | DefinitionBlock | TableBlock | PictureBlock


class SlideText(_Shape, frozen=True, kw_only=True):
    """What is on a slide."""

    title: Name
    blocks: Annotated[tuple[Block, ...], Meta(min_length=1, max_length=4)]
    notes: Annotated[str, Meta(max_length=4000)] = ""


class TaskText(_Shape, frozen=True, kw_only=True):
    """A task of a project."""

    title: Name
    description: Annotated[str, Meta(max_length=1000)] = ""
    hints: Annotated[tuple[Line, ...], Meta(max_length=5)] = ()
    completion_criteria: Annotated[str, Meta(max_length=1000)] = ""


class MilestoneText(_Shape, frozen=True, kw_only=True):
    """A part of a project."""

    title: Name
    briefing: Annotated[str, Meta(min_length=1, max_length=2000)]
    completion_criteria: Prose
    debrief: Annotated[str, Meta(max_length=1000)] = ""
    core_concept: Line
    tasks: Annotated[tuple[TaskText, ...], Meta(min_length=1, max_length=6)]


class ProjectText(_Shape, frozen=True, kw_only=True):
    """A project."""

    title: Name
    description: Prose
    learning_objective: Line
    gains: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=8)]
    coach: Annotated[str, Meta(min_length=1, max_length=2000)]
    milestones: Annotated[tuple[MilestoneText, ...], Meta(min_length=1, max_length=5)]


class Sentences(_Shape, frozen=True, kw_only=True):
    """Sentences to listen to and read aloud."""

    sentences: Annotated[
        tuple[Annotated[str, Meta(min_length=2, max_length=300)], ...],
        Meta(min_length=2, max_length=20),
    ]
