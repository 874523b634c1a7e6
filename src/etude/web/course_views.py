"""What the routes of courses take and answer."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from etude.authoring.framework import CourseFramework
from etude.authoring.material import Language, Material
from etude.authoring.model.accounts import Account
from etude.authoring.publication import Standing
from etude.authoring.records import AuthorName, Course
from etude.errors import EtudeError
from etude.web.course_account_views import ProblemView, UsageView, problem_view, usage_view


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class NewRecording(_View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recording that was stored before; `03.mp3` belongs to the sentence in `03.txt`."""

    name: Annotated[str, Meta(min_length=5, max_length=200)]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class NewCourse(_View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a course is asked for with."""

    requirement: Annotated[str, Meta(max_length=8000)] = ""
    materials: Annotated[tuple[Material, ...], Meta(max_length=500)] = ()
    recordings: Annotated[tuple[NewRecording, ...], Meta(max_length=1000)] = ()
    language: Language | None = None
    author: AuthorName = "outline"
    narrated: bool = False
    web_search: bool = False
    image_generation: bool = False
    video_generation: bool = False
    """Refused: there is nothing here that makes films."""


class Confirmation(_View, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said when a framework is confirmed."""

    without_audio: bool = False


class ModuleView(_View, frozen=True, kw_only=True):
    """A module as it stands."""

    index: int
    module_id: str
    title: str
    status: str
    classroom_id: str | None
    generation_prompt_snapshot: str | None
    requirement_sha256: str | None
    output_digest: Any
    continuity_input_refs: Any
    error_code: str | None


class RunView(_View, frozen=True, kw_only=True):
    """The run that works on a course, or the last one that did."""

    run_id: str
    kind: str
    state: str
    started_at: datetime
    error_code: str | None
    problems: tuple[ProblemView, ...]


class CourseSummary(_View, frozen=True, kw_only=True):
    """A course in a list."""

    course_id: str
    title: str
    status: str
    author: str
    created_at: datetime


class CourseView(_View, frozen=True, kw_only=True):
    """A course as it stands. `framework` is of revision `frameworkRevision`, which is its ETag.

    `publishedTo` is the server that courses are published to, null for this one; `driftedModules`
    are those whose classroom is not what was published there.
    """

    course_id: str
    title: str
    status: str
    author: str
    created_at: datetime
    error_code: str | None
    framework: CourseFramework | None
    framework_revision: int
    confirmed: bool
    silent_sentences: tuple[str, ...]
    modules: tuple[ModuleView, ...]
    run: RunView | None
    published_version: int | None
    published_at: datetime | None
    published_to: str | None
    drifted_modules: tuple[int, ...]
    usage: UsageView | None


class CourseList(_View, frozen=True, kw_only=True):
    """The newest courses."""

    items: list[CourseSummary]


class Reason(_View, frozen=True, kw_only=True):
    """A reason against publishing, or something to know before it."""

    code: str
    module_index: int | None
    detail: str


class ReadinessView(_View, frozen=True, kw_only=True):
    """Whether a course can be published; warnings do not keep it."""

    ready: bool
    blockers: tuple[Reason, ...]
    warnings: tuple[Reason, ...]


class PublishedView(_View, frozen=True, kw_only=True):
    """What is published now; `new` is false when the same was published before."""

    course_id: str
    version: int
    new: bool
    manifest_hash: str


class RecordingView(_View, frozen=True, kw_only=True):
    """A stored recording; it is kept once a course names it, else for an hour."""

    sha256: str
    size: int


def view_of(
    course: Course,
    silent: tuple[str, ...],
    standing: Standing,
    account: Account | None = None,
) -> CourseView:
    """Return a course as it is shown."""
    titles = (
        {one.module_id: one.title for one in course.framework.modules} if course.framework else {}
    )
    return CourseView(
        course_id=course.course_id,
        title=course.title,
        status=course.status,
        author=course.author,
        created_at=course.created_at,
        error_code=course.error_code,
        framework=course.framework,
        framework_revision=course.framework_revision,
        confirmed=course.confirmed,
        silent_sentences=silent,
        modules=tuple(
            ModuleView(
                index=one.index,
                module_id=one.module_id,
                title=titles.get(one.module_id, ""),
                status=one.status,
                classroom_id=one.classroom_id,
                generation_prompt_snapshot=one.prompt,
                requirement_sha256=one.requirement_sha256,
                output_digest=one.digest,
                continuity_input_refs=one.refs,
                error_code=one.error_code,
            )
            for one in course.modules
        ),
        run=None
        if course.run is None
        else RunView(
            run_id=course.run.run_id,
            kind=course.run.kind,
            state=course.run.state,
            started_at=course.run.started_at,
            error_code=course.run.error_code,
            problems=tuple(map(problem_view, course.run.problems)),
        ),
        published_version=standing.version,
        published_at=standing.published_at,
        published_to=standing.target or None,
        drifted_modules=standing.drifted,
        usage=usage_view(account),
    )


def summary_of(course: Course) -> CourseSummary:
    """Return a course as it stands in a list."""
    return CourseSummary(
        course_id=course.course_id,
        title=course.title,
        status=course.status,
        author=course.author,
        created_at=course.created_at,
    )


def reason_of(error: EtudeError) -> Reason:
    """Return a failure of a gate as it is shown."""
    index = error.params.get("moduleIndex")
    return Reason(
        code=error.code,
        module_index=index if isinstance(index, int) and index >= 0 else None,
        detail=", ".join(f"{name}: {value}" for name, value in error.params.items()),
    )
