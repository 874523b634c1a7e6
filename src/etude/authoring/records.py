"""A course as it stands: what was asked for, its modules, its run."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from etude.authoring.framework import CourseFramework
from etude.authoring.material import Language, Material
from etude.classroom.digest import OutputDigest
from etude.courseware.gates import ContinuityRef
from etude.people.records import Actor

RUN: Final = "authoring.run"
"""The kind of job that carries out a run."""
AuthorName = Literal["outline", "llm"]
RunKind = Literal["framework", "modules", "module-retry", "publish"]


class CourseStatus(StrEnum):
    """Where a course stands. Whether it is published is for the registry to say."""

    QUEUED = "queued"
    FRAMEWORK_GENERATING = "framework_generating"
    FRAMEWORK_READY = "framework_ready"
    GENERATING = "generating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ModuleStatus(StrEnum):
    """Where a module stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunState(StrEnum):
    """Where a run stands."""

    ACTIVE = "active"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A recording of the material; its bytes are a blob."""

    name: str
    sha256: str


class CourseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asked for; it never changes.

    Attributes:
        requirement: in words; for the outline author it is a title, if the material has none.
        narrated: whether a voice speaks what the teacher says and the sentences without recording.
        web_search: whether the web is searched for what the course is about.
        image_generation: whether pictures are made by a model.
    """

    requirement: Annotated[str, Meta(max_length=8000)] = ""
    materials: Annotated[tuple[Material, ...], Meta(max_length=500)] = ()
    sounds: tuple[SoundFile, ...] = ()
    language: Language | None = None
    narrated: bool = False
    web_search: bool = False
    image_generation: bool = False


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """A module as it stands."""

    index: int
    module_id: str
    status: ModuleStatus
    classroom_id: str | None = None
    prompt: str | None = None
    requirement_sha256: str | None = None
    digest: OutputDigest | None = None
    refs: tuple[ContinuityRef, ...] | None = None
    error_code: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a run failed: an error's code, where, and what about it."""

    code: str
    path: str
    detail: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is or was done to a course; `by` is noted of publications only."""

    run_key: int
    run_id: str
    course_key: int
    kind: str
    state: RunState
    started_at: datetime
    error_code: str | None = None
    problems: tuple[Problem, ...] = ()
    by: Actor | None = None


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a course."""

    course_key: int
    course_id: str
    owner: str
    author: str
    status: CourseStatus
    title: str
    request: CourseRequest
    framework: CourseFramework | None
    framework_revision: int
    confirmed: bool
    without_audio: bool
    error_code: str | None
    created_at: datetime
    modules: tuple[Module, ...] = ()
    run: Run | None = None
    """The run that is active, else the last one."""

    @property
    def subject(self) -> str:
        """Whose work a call in the ledger is, and whose a recording is."""
        return f"course:{self.course_key}"

    @property
    def active(self) -> Run | None:
        """The run that is being carried out, if any."""
        return self.run if self.run and self.run.state is RunState.ACTIVE else None
