"""What the routes of single classrooms take and answer."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, field

from etude.authoring.classrooms.records import (
    ClassroomJob,
    ClassroomRecord,
    JobStatus,
    LessonOutline,
)
from etude.authoring.material import Language, Material
from etude.authoring.records import AuthorName
from etude.classroom.mending import Loss
from etude.i18n import text
from etude.web.course_views import NewRecording

POLL_MS = 1000
_PREVIEW = 200


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class NewClassroom(_View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a classroom is asked for with."""

    requirement: Annotated[str, Meta(max_length=50_000)] = ""
    materials: Annotated[tuple[Material, ...], Meta(max_length=100)] = ()
    recordings: Annotated[tuple[NewRecording, ...], Meta(max_length=100)] = ()
    language: Language | None = None
    author: AuthorName = "outline"
    interactive_mode: bool = False
    task_engine_mode: bool = False
    enable_tts: bool = field(default=False, name="enableTTS")


class InputSummary(_View, frozen=True, kw_only=True):
    """What was asked for, in short."""

    requirement_preview: str
    materials: int
    material_length: int
    recordings: int


class Made(_View, frozen=True, kw_only=True):
    """The classroom that was made."""

    classroom_id: str
    url: str
    scenes_count: int


class Why(_View, frozen=True, kw_only=True):
    """Why there is no classroom."""

    code: str
    message: str


class JobView(_View, frozen=True, kw_only=True):
    """A job as it stands; ask again at `pollUrl` until it is `done` or `waiting`."""

    job_id: str
    status: str
    step: str
    progress: int
    message: str
    done: bool
    poll_url: str
    poll_interval_ms: int
    input_summary: InputSummary
    scenes_generated: int
    total_scenes: int | None
    outline_revision: int | None
    result: Made | None
    error: Why | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one's jobs, the oldest first."""

    items: list[JobView]
    next_cursor: str | None


class OutlineView(_View, frozen=True, kw_only=True):
    """An outline that waits for confirmation, or was confirmed; its revision is the `ETag`."""

    outline: LessonOutline
    revision: int
    silent_sentences: tuple[str, ...]


class ClassroomSummary(_View, frozen=True, kw_only=True):
    """A classroom in a list."""

    classroom_id: str
    title: str
    origin: str
    owner_kind: str
    created_at: datetime
    url: str


class ClassroomPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one's classrooms, the oldest first."""

    items: list[ClassroomSummary]
    next_cursor: str | None


class LossView(_View, frozen=True, kw_only=True):
    """One thing that was left out or changed."""

    path: str
    code: str
    message: str


class LossReport(_View, frozen=True, kw_only=True):
    """What an export leaves out or changes."""

    format: str
    losses: list[LossView]


class BroughtView(_View, frozen=True, kw_only=True):
    """A classroom that was taken in, and what was left out or changed."""

    classroom_id: str
    url: str
    title: str
    scenes_count: int
    revision: str
    losses: list[LossView]


class EditedView(_View, frozen=True, kw_only=True):
    """A classroom that was edited: its new revision, which is the `ETag`."""

    classroom_id: str
    revision: str


def job_view(job: ClassroomJob, base_url: str, locale: str) -> JobView:
    """Return a job as it is shown."""
    request, outline = job.request, job.outline
    succeeded = job.status is JobStatus.SUCCEEDED
    return JobView(
        job_id=job.job_id,
        status=job.status,
        step=job.step,
        progress=job.progress,
        message=text(f"classrooms.step.{job.step}", locale),
        done=job.status.done,
        poll_url=f"{base_url}/api/generate-classroom/{job.job_id}",
        poll_interval_ms=POLL_MS,
        input_summary=InputSummary(
            requirement_preview=request.requirement[:_PREVIEW],
            materials=len(request.materials),
            material_length=sum(len(one.text) for one in request.materials),
            recordings=len(request.sounds),
        ),
        scenes_generated=job.scenes_made,
        total_scenes=None if outline is None else len(outline.scenes),
        outline_revision=job.outline_revision or None,
        result=Made(
            classroom_id=job.classroom_id,
            url=url_of(base_url, job.classroom_id),
            scenes_count=job.scenes_made,
        )
        if succeeded
        else None,
        error=None if job.error_code is None else _why(job.error_code, locale),
        created_at=job.created_at,
        updated_at=job.updated_at,
        started_at=job.started_at,
        completed_at=job.ended_at,
    )


def record_view(record: ClassroomRecord, base_url: str) -> ClassroomSummary:
    """Return a classroom as it is listed."""
    return ClassroomSummary(
        classroom_id=record.classroom_id,
        title=record.title,
        origin=record.origin,
        owner_kind=record.owner.kind,
        created_at=record.created_at,
        url=url_of(base_url, record.classroom_id),
    )


def loss_views(losses: Iterable[Loss], locale: str) -> list[LossView]:
    """Return losses as they are shown."""
    return [LossView(path=one.path, code=one.code, message=one.said(locale)) for one in losses]


def url_of(base_url: str, classroom_id: str) -> str:
    """Return the address of a classroom."""
    return f"{base_url}/api/classrooms/{classroom_id}"


def _why(code: str, locale: str) -> Why:
    try:
        said = text(f"error.{code}", locale)
    except (KeyError, IndexError, ValueError):  # a message with parameters, which are not kept
        said = text("classrooms.step.failed", locale)
    return Why(code=code, message=said)
