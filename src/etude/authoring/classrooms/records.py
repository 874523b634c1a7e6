"""A single classroom as it is asked for, outlined and made."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from etude.authoring.material import Language, Material
from etude.authoring.records import AuthorName, SoundFile
from etude.classroom.model import SceneType

MAKE: Final = "authoring.classroom"
"""The kind of job that makes a classroom."""
REMOVE: Final = "authoring.classroom_removal"
"""The kind of job that removes what nobody wants any more."""
OwnerKind = Literal["device", "learner", "staff", "service", "host"]
Origin = Literal["generated", "imported"]


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose something is, by surrogate key."""

    kind: OwnerKind
    key: int
    sees_all: bool = False
    """Whether everybody's classrooms are theirs to see and change."""

    @property
    def name(self) -> str:
        """The owner in a ledger: `staff:7`."""
        return f"{self.kind}:{self.key}"

    @property
    def learner_key(self) -> int | None:
        """The learner, if it is one."""
        return self.key if self.kind == "learner" else None


HOST: Final = Owner(kind="host", key=0, sees_all=True)
"""Whoever has a shell on the machine."""


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def done(self) -> bool:
        """Whether nothing more happens."""
        return self in {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED}


class Step(StrEnum):
    """What is being done."""

    QUEUED = "queued"
    INITIALIZING = "initializing"
    RESEARCHING = "researching"
    OUTLINES = "generating_outlines"
    AWAITING = "awaiting_outline_confirmation"
    SCENES = "generating_scenes"
    MEDIA = "generating_media"
    TTS = "generating_tts"
    PERSISTING = "persisting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_SPANS: Final = {
    Step.QUEUED: (0, 0), Step.INITIALIZING: (5, 5), Step.RESEARCHING: (10, 10),
    Step.OUTLINES: (15, 30), Step.AWAITING: (30, 30), Step.SCENES: (30, 90),
    Step.MEDIA: (90, 90), Step.TTS: (94, 94), Step.PERSISTING: (98, 98),
    Step.COMPLETED: (100, 100),
}  # fmt: skip


Tell = Callable[[Step, int, int], None]
"""How an author tells how far it is: at a step, so many of so many parts are done.

It may be called from any thread and returns at once.
"""


def progress_of(step: Step, made: int = 0, of: int = 0) -> int:
    """Return how far a job is, of 100: at a step of which `made` of `of` parts are done."""
    low, high = _SPANS[step]
    return low + (high - low) * min(made, of) // of if of else low


class LessonRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asked for; it never changes.

    Attributes:
        requirement: the text that the lesson is made of; beside material, what it shall be called
            (outline author) or be like.
        narrated: whether a voice speaks.
    """

    requirement: Annotated[str, Meta(max_length=50_000)] = ""
    materials: Annotated[tuple[Material, ...], Meta(max_length=100)] = ()
    sounds: tuple[SoundFile, ...] = ()
    language: Language | None = None
    narrated: bool = False
    interactive_mode: bool = False
    task_engine_mode: bool = False

    @property
    def preview(self) -> bool:
        """Whether a person reads and confirms the outline first (`docs/rules.md 35`)."""
        return bool(self.materials) or self.interactive_mode or self.task_engine_mode


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class SceneOutline(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A scene that is to be made.

    Attributes:
        id: stays the same through edits.
        key_points: what it is to teach.
        source: the lines of the material that it stands on.
    """

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)")]
    type: SceneType
    title: Annotated[str, Meta(min_length=1, max_length=300)]
    description: Annotated[str, Meta(max_length=1000)] = ""
    key_points: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=2000)], ...], Meta(max_length=20)
    ] = ()
    source: Annotated[str, Meta(max_length=2000)] = ""


class LessonOutline(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a person reads and confirms before the scenes are made."""

    title: Annotated[str, Meta(min_length=1, max_length=120)]
    language_directive: Annotated[str, Meta(max_length=2000)] = ""
    scenes: Annotated[tuple[SceneOutline, ...], Meta(min_length=1, max_length=100)]


class ClassroomRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a classroom is."""

    classroom_key: int
    classroom_id: str
    owner: Owner
    origin: str
    title: str
    created_at: datetime
    placed: bool
    removed: bool


class ClassroomJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it stands."""

    job_key: int
    job_id: str
    classroom_key: int
    classroom_id: str
    owner: Owner
    author: AuthorName
    request: LessonRequest
    preview: bool
    status: JobStatus
    step: Step
    progress: int
    run: int
    outline: LessonOutline | None
    outline_revision: int
    scenes_made: int
    error_code: str | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
