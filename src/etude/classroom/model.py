"""The classroom as a whole: stage, agents, scenes of five types.

Everything is frozen and typed. `etude.classroom.loading` reads, checks and writes it;
`etude.classroom.rules` says what types alone cannot.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from etude.classroom.actions import Actions
from etude.classroom.fields import (
    ClassroomId,
    Colour,
    Config,
    EpochMs,
    Html,
    Id,
    Label,
    LongText,
    Order,
    Part,
    Reference,
    Text,
    Title,
)
from etude.classroom.projects import Project
from etude.classroom.slides import Slide, Whiteboard

DSL_VERSION: Final = "0.3.0"
"""The version that is written: OpenMAIC's 0.2.0, and the practice scene."""

SceneType = Literal["slide", "quiz", "interactive", "pbl", "practice"]
SCENE_TYPES: Final[tuple[SceneType, ...]] = ("slide", "quiz", "interactive", "pbl", "practice")
Role = Literal["teacher", "assistant", "student"]
Boards = Annotated[tuple[Whiteboard, ...], Meta(max_length=50)]


class VoiceConfig(Part, frozen=True, kw_only=True):
    """The voice that a provider speaks with."""

    provider_id: Label
    voice_id: Label
    model_id: Label | None = None


class VoiceDesign(Part, frozen=True, kw_only=True):
    """A voice in words."""

    identity: Text
    texture: Text
    delivery: Text


class Agent(Part, frozen=True, kw_only=True):
    """Somebody in the classroom: one teacher, and at least one more."""

    id: Id
    name: Title
    role: Role
    persona: LongText
    avatar: Reference
    color: Colour
    priority: Annotated[int, Meta(ge=1, le=10)]
    voice_config: VoiceConfig | None = None
    voice_design: VoiceDesign | None = None


class VideoPrompt(Part, frozen=True, kw_only=True, tag_field="type", tag="video"):
    """What a film that was made by a model was asked to show."""

    prompt: LongText
    aspect_ratio: Label | None = None


class Stage(Part, frozen=True, kw_only=True):
    """The header of a classroom, and who is in it."""

    id: ClassroomId
    name: Title
    description: Text = ""
    created_at: EpochMs
    updated_at: EpochMs
    language_directive: Text | None = None
    style: Label | None = None
    whiteboard: Boards = ()
    video_manifest: Annotated[dict[Reference, VideoPrompt], Meta(max_length=500)] = field(
        default_factory=dict
    )
    agent_ids: Annotated[tuple[Id, ...], Meta(max_length=20)] = ()
    """Those who are there at the start; all of the roster if none is named."""
    generated_agent_configs: Annotated[tuple[Agent, ...], Meta(min_length=2, max_length=20)]
    """The roster, whole: an id alone means nothing on another machine."""
    interactive_mode: bool = False
    task_engine_mode: bool = False


class SlideContent(Part, frozen=True, kw_only=True, tag_field="type", tag="slide"):
    """A slide."""

    schema_version: int | None = None
    canvas: Slide


class QuizOption(Part, frozen=True, kw_only=True):
    """`value` is the key (A, B, …), `label` the text."""

    label: Annotated[str, Meta(min_length=1, max_length=2000)]
    value: Annotated[str, Meta(min_length=1, max_length=100)]


class QuizQuestion(Part, frozen=True, kw_only=True):
    """A question; the answers to a choice are values of its options."""

    id: Id
    type: Literal["single", "multiple", "short_answer"]
    question: Annotated[str, Meta(min_length=1, max_length=4000)]
    options: Annotated[tuple[QuizOption, ...], Meta(max_length=20)] = ()
    answer: Annotated[tuple[Text, ...], Meta(max_length=20)] = ()
    analysis: Text | None = None
    comment_prompt: Text | None = None
    """By what a short answer is judged."""
    has_answer: bool | None = None
    points: Annotated[float, Meta(gt=0, le=1000)] = 1


class QuizContent(Part, frozen=True, kw_only=True, tag_field="type", tag="quiz"):
    """Questions."""

    questions: Annotated[tuple[QuizQuestion, ...], Meta(min_length=1, max_length=100)]


WidgetType = Literal["simulation", "diagram", "code", "game", "visualization3d", "procedural-skill"]


class InteractiveContent(Part, frozen=True, kw_only=True, tag_field="type", tag="interactive"):
    """An activity: a page that runs in a sandbox. It has `html` or, before publishing, a `url`."""

    url: Reference = ""
    html: Html | None = None
    widget_type: WidgetType | None = None
    widget_config: Config | None = None


class PblContent(Part, frozen=True, kw_only=True, tag_field="type", tag="pbl"):
    """A project."""

    project_v2: Project


class Clip(Part, frozen=True, kw_only=True):
    """A sentence to listen to and repeat."""

    text: Annotated[str, Meta(min_length=1, max_length=1000)]
    audio_ref: Reference | None = None
    """Its sound, a file of the classroom; without one it cannot be published."""
    duration_ms: Annotated[int, Meta(ge=1, le=600_000)] | None = None


class PracticeContent(Part, frozen=True, kw_only=True, tag_field="type", tag="practice"):
    """A lesson to practise on a toy, a phone or the page (`docs/rules.md 34`)."""

    app: Literal["follow_read"]
    clips: Annotated[tuple[Clip, ...], Meta(min_length=1, max_length=500)]
    listen_ratio: Annotated[float, Meta(ge=1.2, le=1.5)] = field(name="listen_ratio")
    rubric: Config | None = None
    """The rubric by which it is read, embedded; whoever embeds it checks it."""


Content = SlideContent | QuizContent | InteractiveContent | PblContent | PracticeContent


class MultiAgent(Part, frozen=True, kw_only=True):
    """Agents who talk with the learner live."""

    enabled: bool
    agent_ids: Annotated[tuple[Id, ...], Meta(max_length=20)] = ()
    director_prompt: LongText | None = None


class Scene(Part, frozen=True, kw_only=True):
    """A scene; `type` is that of its content."""

    id: Id
    stage_id: ClassroomId
    type: SceneType
    title: Title
    order: Order
    content: Content
    actions: Actions = ()
    whiteboards: Boards = ()
    multi_agent: MultiAgent | None = None
    outline_id: Id | None = None
    key_points: Annotated[tuple[Text, ...], Meta(max_length=20)] = ()
    """What it was to teach, from its outline: kept for the digest."""
    created_at: EpochMs | None = None
    updated_at: EpochMs | None = None


class Classroom(Part, frozen=True, kw_only=True):
    """A classroom; its id is its stage's."""

    id: ClassroomId
    dsl_version: Literal["0.3.0"]
    created_at: Annotated[datetime, Meta(tz=True)]
    stage: Stage
    scenes: Annotated[tuple[Scene, ...], Meta(min_length=1, max_length=200)]

    @property
    def in_order(self) -> tuple[Scene, ...]:
        """The scenes as they are shown: by `order`, then as they stand."""
        return tuple(sorted(self.scenes, key=lambda scene: scene.order))
