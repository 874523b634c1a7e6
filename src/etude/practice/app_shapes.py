"""What an app file looks like, before its defaults are filled in. Shapes for `etude.documents`."""

from typing import Annotated, Literal

import msgspec

from etude.practice.records import LISTEN_RATIO_MIN, LONGEST_CLIP_MS, WINDOW_MIN_MS
from etude.practice.tasks import CARD_TOOLS, IDENTIFIER, Activity, Timing
from etude.rubric.model import RubricId, RubricVersion

Identifier = Annotated[str, msgspec.Meta(pattern=rf"^{IDENTIFIER.pattern}\Z")]
Text = Annotated[str, msgspec.Meta(max_length=20_000)]
Language = Literal["en", "zh-CN"]
ModeName = Literal["CHAT", "PLAY_AUDIO", "SHADOWING", "FOLLOW_READ", "TRANSLATE", "INLINE"]


class AssessmentShape(msgspec.Struct, frozen=True, kw_only=True):
    """`assessment` of a task."""

    enabled: bool = False
    methods: tuple[Text, ...] = ()
    timing: Timing | None = None
    defer: bool = False


class RubricShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`rubric` of a task; without `version` the newest at hand."""

    id: RubricId
    version: RubricVersion | None = None


class TaskShape(msgspec.Struct, frozen=True, kw_only=True):
    """A task; what its keys mean is told by `tasks.Task`."""

    task_id: Identifier
    mode: ModeName
    activity: Activity | None = None
    title: Text = ""
    language: Language | None = None
    enter_prompt: Text = ""
    entry_phrases: tuple[Text, ...] = ()
    exit_phrases: tuple[Text, ...] = ()
    tools: tuple[Text, ...] = CARD_TOOLS
    listen_ratio: float = LISTEN_RATIO_MIN
    assessment: AssessmentShape = AssessmentShape()
    rubric: RubricShape | None = None
    transcripts: dict[str, Text] = {}
    sentences: tuple[Text, ...] = ()
    repeat: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    window_ms: Annotated[int, msgspec.Meta(ge=WINDOW_MIN_MS, le=LONGEST_CLIP_MS)] | None = None
    rounds: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5


class AppShape(msgspec.Struct, frozen=True, kw_only=True):
    """An app: a YAML file."""

    app_id: Identifier
    title: Text = ""
    language: Language = "en"
    assignment_phrases: tuple[Text, ...] = ()
    tasks: Annotated[tuple[TaskShape, ...], msgspec.Meta(min_length=1)]


class AppsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Several apps: the older runtime's `apps.json`."""

    apps: tuple[AppShape, ...]
