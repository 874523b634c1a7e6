"""Single classrooms over HTTP: ask for one, follow it, read and confirm its outline, cancel."""

from collections.abc import Mapping
from typing import Annotated, Final

from litestar import Response, get, post, put
from litestar.params import JSONBody, PathParameter

from etude import i18n
from etude.authoring.authors import LessonAuthor
from etude.authoring.classrooms.composition import lesson_authors, open_classroom_jobs
from etude.authoring.classrooms.errors import (
    ClassroomJobsAtOnceError,
    ClassroomJobStateError,
    ClassroomJobUnknownError,
    ClassroomRecordingsForbiddenError,
    ClassroomsADayError,
    LessonOutlineChangedError,
    LessonOutlineRevisionMissingError,
)
from etude.authoring.classrooms.jobs import ClassroomJobs
from etude.authoring.classrooms.records import ClassroomJob, LessonOutline, LessonRequest, Owner
from etude.authoring.errors import (
    AuthorUnknownError,
    CourseVoiceMissingError,
    LessonMaterialTooLittleError,
    LessonMaterialTooMuchError,
    LessonOutlineInvalidError,
    LessonStepsMissingError,
    MaterialLineTooLongError,
    MaterialTwiceError,
    MaterialUnreadableError,
)
from etude.authoring.model.configured import model_author
from etude.authoring.model.errors import (
    CourseRequestEmptyError,
)
from etude.authoring.records import SoundFile
from etude.authoring.voices import PromisedVoice
from etude.llm.errors import LlmAddressError, LlmNotInstalledError
from etude.people.errors import CursorInvalidError
from etude.people.paging import DEFAULT_LIMIT
from etude.people.scopes import Scope
from etude.people.spending.errors import MonthSpentError, PriceMissingError, QuotaSpentError
from etude.store.errors import BlobMissing, StoreUnavailable
from etude.web.auth import principal_of
from etude.web.classroom_views import JobPage, JobView, NewClassroom, OutlineView, job_view
from etude.web.declared import EVERYWHERE, declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, Services, services_of

PATH: Final = "/api/generate-classroom"
_ONE: Final = PATH + "/{job_id:str}"
_TAGS: Final = ["Classrooms"]
JobId = Annotated[str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The job's id.")]


@post(
    PATH,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            AuthorUnknownError,
            CourseRequestEmptyError,
            CourseVoiceMissingError,
            LlmAddressError,
            LlmNotInstalledError,
            PriceMissingError,
            QuotaSpentError,
            MonthSpentError,
            LessonMaterialTooLittleError,
            LessonMaterialTooMuchError,
            LessonStepsMissingError,
            MaterialTwiceError,
            MaterialLineTooLongError,
            MaterialUnreadableError,
            ClassroomRecordingsForbiddenError,
            ClassroomJobsAtOnceError,
            ClassroomsADayError,
            BlobMissing,
            StoreUnavailable,
        ),
    ),
    tags=_TAGS,
    status_code=202,
)
async def generate_classroom(
    request: HttpRequest, data: JSONBody[NewClassroom]
) -> Response[JobView]:
    """Ask for a classroom of a text; with material or a mode its outline waits for confirmation."""
    owner = owner_of(request)
    if data.recordings and not owner.sees_all:
        raise ClassroomRecordingsForbiddenError
    wanted = LessonRequest(
        requirement=data.requirement,
        materials=data.materials,
        sounds=tuple(SoundFile(name=one.name, sha256=one.sha256) for one in data.recordings),
        language=data.language,
        narrated=data.enable_tts,
        interactive_mode=data.interactive_mode,
        task_engine_mode=data.task_engine_mode,
    )
    job = await jobs_of(request).create(wanted, owner, data.author)
    return _answer(request, job, status=202)


@get(
    PATH,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(CursorInvalidError, StoreUnavailable),
    ),
    tags=_TAGS,
)
async def list_classroom_jobs(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> JobPage:
    """List one's jobs, the oldest first; whoever operates sees everybody's."""
    page = await jobs_of(request).listed(owner_of(request), cursor=cursor, limit=limit)
    return JobPage(items=[_shown(request, job) for job in page.items], next_cursor=page.next_cursor)


@get(
    _ONE,
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(ClassroomJobUnknownError, StoreUnavailable),
    ),
    tags=_TAGS,
)
async def show_classroom_job(request: HttpRequest, job_id: JobId) -> Response[JobView]:
    """Show how far a job is; once it succeeded, where its classroom is."""
    return _answer(request, await jobs_of(request).get(owner_of(request), job_id))


@get(
    _ONE + "/outline",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(ClassroomJobUnknownError, ClassroomJobStateError, StoreUnavailable),
    ),
    tags=_TAGS,
)
async def show_outline(request: HttpRequest, job_id: JobId) -> Response[OutlineView]:
    """Show the outline of a job, and which sentences will have no sound."""
    return await _outline(request, await jobs_of(request).get(owner_of(request), job_id))


@put(
    _ONE + "/outline",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomJobUnknownError,
            ClassroomJobStateError,
            LessonOutlineInvalidError,
            LessonOutlineChangedError,
            LessonOutlineRevisionMissingError,
            StoreUnavailable,
        ),
    ),
    tags=_TAGS,
)
async def edit_outline(
    request: HttpRequest, job_id: JobId, data: JSONBody[LessonOutline]
) -> Response[OutlineView]:
    """Replace the outline of the revision in `If-Match`, while it waits for confirmation."""
    revision = _revision(request)
    if revision is None:
        raise LessonOutlineRevisionMissingError
    job = await jobs_of(request).edit_outline(owner_of(request), job_id, revision, data)
    return await _outline(request, job)


@post(
    _ONE + "/confirm",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(
            ClassroomJobUnknownError,
            ClassroomJobStateError,
            ClassroomJobsAtOnceError,
            LessonOutlineChangedError,
            StoreUnavailable,
        ),
    ),
    tags=_TAGS,
    status_code=202,
)
async def confirm_outline(request: HttpRequest, job_id: JobId) -> Response[JobView]:
    """Confirm the outline, of the revision in `If-Match` if given; its scenes are made then."""
    job = await jobs_of(request).confirm(owner_of(request), job_id, _revision(request))
    return _answer(request, job, status=202)


@post(
    _ONE + "/cancel",
    opt=declared(
        roles=EVERYWHERE,
        needs=Scope.CLASSROOMS_WRITE,
        raises=(ClassroomJobUnknownError, ClassroomJobStateError, StoreUnavailable),
    ),
    tags=_TAGS,
    status_code=200,
)
async def cancel_classroom_job(request: HttpRequest, job_id: JobId) -> Response[JobView]:
    """Stop a job; nothing of its classroom stays."""
    return _answer(request, await jobs_of(request).cancel(owner_of(request), job_id))


def owner_of(request: HttpRequest) -> Owner:
    """Return who is asking, as the owner of what they ask for."""
    principal = principal_of(request)
    return Owner(kind=principal.kind, key=principal.key, sees_all=Scope.OPERATE in principal.scopes)


def jobs_of(request: HttpRequest) -> ClassroomJobs:
    """Return the jobs of the application that `request` came to."""
    services = services_of(request)
    return open_classroom_jobs(
        services.database,
        services.blobs,
        services.clock,
        services.ids,
        services.settings,
        lesson_authors_of(services),
    )


def lesson_authors_of(services: Services) -> Mapping[str, LessonAuthor]:
    """Return the authors of lessons on their own; here none of them makes anything."""
    database, blobs, clock = services.database, services.blobs, services.clock
    voice = PromisedVoice()
    return lesson_authors(
        blobs, voice, model_author(services.settings, database, blobs, clock, voice)
    )


def _revision(request: HttpRequest) -> int | None:
    """Return the revision in `If-Match`; None if there is none that could be one."""
    sent = request.headers.get("if-match", "").strip().strip('"')
    return int(sent) if sent.isascii() and sent.isdecimal() and len(sent) < 10 else None  # noqa: PLR2004 - digits


def _shown(request: HttpRequest, job: ClassroomJob) -> JobView:
    locale = i18n.negotiate(request.headers.get("accept-language"))
    return job_view(job, services_of(request).settings.base_url, locale)


def _answer(request: HttpRequest, job: ClassroomJob, *, status: int = 200) -> Response[JobView]:
    view = _shown(request, job)
    headers = {"Location": view.poll_url} if status == 202 else {}  # noqa: PLR2004 - RFC 9110 §15.3.3
    return Response(view, status_code=status, headers=headers)


async def _outline(request: HttpRequest, job: ClassroomJob) -> Response[OutlineView]:
    if job.outline is None:
        raise ClassroomJobStateError(status=job.status)
    view = OutlineView(
        outline=job.outline,
        revision=job.outline_revision,
        silent_sentences=await jobs_of(request).silent(job),
    )
    return Response(view, headers={"ETag": f'"{job.outline_revision}"'})


route_handlers = [
    generate_classroom,
    list_classroom_jobs,
    show_classroom_job,
    show_outline,
    edit_outline,
    confirm_outline,
    cancel_classroom_job,
]
