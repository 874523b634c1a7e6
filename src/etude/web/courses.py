"""Courses over HTTP: ask for one, read and edit its framework, confirm, follow, publish."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from litestar import Response, get, post, put
from litestar.params import JSONBody, PathParameter

from etude.authoring import publication
from etude.authoring.authors import Author
from etude.authoring.composition import known_authors, open_courses
from etude.authoring.courses import Courses
from etude.authoring.errors import (
    AuthorUnknownError,
    ContinuityBrokenError,
    CourseAudioMissingError,
    CourseModuleUnknownError,
    CourseNoRunError,
    CourseRunActiveError,
    CourseStateError,
    CourseUnknownError,
    CourseVoiceMissingError,
    FrameworkChangedError,
    FrameworkInvalidError,
    FrameworkRevisionMissingError,
    MaterialLineTooLongError,
    MaterialTooLittleError,
    MaterialTooMuchError,
    MaterialTwiceError,
    MaterialUnreadableError,
)
from etude.authoring.model.configured import model_author
from etude.authoring.model.errors import (
    CourseOptionUnavailableError,
    CourseRequestEmptyError,
)
from etude.authoring.records import Course, CourseRequest, SoundFile
from etude.authoring.voices import PromisedVoice
from etude.courseware.errors import (
    PublishRefusedError,
    PublishTokenMissingError,
    SourceChangedError,
)
from etude.courseware.publishers import publisher_for
from etude.courseware.publishing import CoursePublisher
from etude.courseware.remote_errors import PublishCancelledError, PublishServerError
from etude.llm.errors import LlmAddressError, LlmNotInstalledError
from etude.people.records import Actor
from etude.people.scopes import Scope
from etude.people.spending.errors import MonthSpentError, PriceMissingError, QuotaSpentError
from etude.store.errors import BlobMissing, StoreUnavailable
from etude.web.auth import principal_of
from etude.web.bodies import stream_body
from etude.web.course_views import (
    Confirmation,
    CourseList,
    CourseView,
    NewCourse,
    PublishedView,
    ReadinessView,
    Reason,
    RecordingView,
    reason_of,
    summary_of,
    view_of,
)
from etude.web.declared import Body, declared
from etude.web.services import HttpRequest, Services, services_of

PATH: Final = "/api/courses"
RECORDINGS: Final = "/api/course-recordings"
RECORDING_BYTES: Final = 32 << 20
_ONE: Final = PATH + "/{course_id:str}"
_TAGS: Final = ["Courses"]
_ACT_ERRORS: Final = (
    CourseUnknownError,
    CourseRunActiveError,
    CourseStateError,
    StoreUnavailable,
)
_AUDIO: Final = ("audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "application/octet-stream")
CourseId = Annotated[
    str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The course's id.")
]
_NUMBER: Final = re.compile(r"[0-9]{1,2}")
# A text, so that what is no number is answered by this route, and every method is told.
ModuleIndex = Annotated[str, PathParameter(description="The module, from 0 to 14.")]


@post(
    RECORDINGS,
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(StoreUnavailable,),
        body=Body(
            media_types=_AUDIO, limit_bytes=RECORDING_BYTES, description="The bytes of a recording."
        ),
    ),
    tags=_TAGS,
    status_code=201,
)
async def add_recording(request: HttpRequest) -> RecordingView:
    """Store a recording of the material; name it when the course is asked for."""
    blob = await services_of(request).blobs.put_stream(stream_body(request, RECORDING_BYTES))
    return RecordingView(sha256=blob.sha256, size=blob.size)


@post(
    PATH,
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(
            AuthorUnknownError,
            CourseOptionUnavailableError,
            CourseRequestEmptyError,
            CourseVoiceMissingError,
            LlmAddressError,
            LlmNotInstalledError,
            PriceMissingError,
            QuotaSpentError,
            MonthSpentError,
            MaterialTooLittleError,
            MaterialTooMuchError,
            MaterialTwiceError,
            MaterialLineTooLongError,
            MaterialUnreadableError,
            BlobMissing,
            StoreUnavailable,
        ),
    ),
    tags=_TAGS,
)
async def create_course(request: HttpRequest, data: JSONBody[NewCourse]) -> Response[CourseView]:
    """Ask for a course; its framework is made, and waits for confirmation."""
    if data.video_generation:
        raise CourseOptionUnavailableError(option="videoGeneration")
    wanted = CourseRequest(
        requirement=data.requirement,
        materials=data.materials,
        sounds=tuple(SoundFile(name=one.name, sha256=one.sha256) for one in data.recordings),
        language=data.language,
        narrated=data.narrated,
        web_search=data.web_search,
        image_generation=data.image_generation,
    )
    principal = principal_of(request)
    owner = f"{principal.kind}:{principal.key}"  # as of classrooms: one quota for both
    course = await courses_of(request).create(wanted, owner, data.author)
    return await _answer(request, course, status=201)


@get(
    PATH, opt=declared(roles=("ops",), needs=Scope.OPERATE, raises=(StoreUnavailable,)), tags=_TAGS
)
async def list_authored_courses(request: HttpRequest) -> CourseList:
    """List the newest courses, made or in the making."""
    return CourseList(items=[summary_of(one) for one in await courses_of(request).listed()])


@get(
    _ONE,
    opt=declared(
        roles=("ops",), needs=Scope.OPERATE, raises=(CourseUnknownError, StoreUnavailable)
    ),
    tags=_TAGS,
)
async def show_course(request: HttpRequest, course_id: CourseId) -> Response[CourseView]:
    """Show a course: framework, modules, run, and whether what is published is what is there."""
    return await _answer(request, await courses_of(request).get(course_id))


@put(
    _ONE + "/framework",
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(
            *_ACT_ERRORS,
            FrameworkInvalidError,
            FrameworkChangedError,
            FrameworkRevisionMissingError,
        ),
    ),
    tags=_TAGS,
)
async def edit_framework(
    request: HttpRequest, course_id: CourseId, data: JSONBody[dict[str, Any]]
) -> Response[CourseView]:
    """Replace the framework of the revision in `If-Match`, while it waits for confirmation."""
    revision = _revision(request)
    if revision is None:
        raise FrameworkRevisionMissingError
    return await _answer(request, await courses_of(request).edit(course_id, revision, data))


@post(
    _ONE + "/start",
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(*_ACT_ERRORS, FrameworkChangedError, CourseAudioMissingError),
    ),
    tags=_TAGS,
    status_code=202,
)
async def start_course(
    request: HttpRequest, course_id: CourseId, data: JSONBody[Confirmation]
) -> Response[CourseView]:
    """Confirm the framework, of the revision in `If-Match` if given, and begin with the modules."""
    course = await courses_of(request).start(
        course_id, revision=_revision(request), without_audio=data.without_audio
    )
    return await _answer(request, course, status=202)


@post(
    _ONE + "/framework/regenerate",
    opt=declared(roles=("ops",), needs=Scope.OPERATE, raises=_ACT_ERRORS),
    tags=_TAGS,
    status_code=202,
)
async def regenerate_framework(request: HttpRequest, course_id: CourseId) -> Response[CourseView]:
    """Make the framework anew; every module waits again."""
    course = await courses_of(request).regenerate_framework(course_id)
    return await _answer(request, course, status=202)


_MADE_AGAIN: Final = declared(
    roles=("ops",),
    needs=Scope.OPERATE,
    raises=(*_ACT_ERRORS, CourseModuleUnknownError, ContinuityBrokenError),
)


def _module(index: str) -> int:
    """Return the number of a module in an address; raises `CourseModuleUnknownError`."""
    if not _NUMBER.fullmatch(index):
        raise CourseModuleUnknownError(module=index[:32])
    return int(index)


@post(
    _ONE + "/modules/{index:str}/regenerate",
    opt=_MADE_AGAIN,
    tags=_TAGS,
    status_code=202,
)
async def retry_module(
    request: HttpRequest, course_id: CourseId, index: ModuleIndex
) -> Response[CourseView]:
    """Make one module anew, then the later ones that have not succeeded."""
    course = await courses_of(request).retry(course_id, _module(index))
    return await _answer(request, course, status=202)


@post(
    _ONE + "/regenerate-from/{index:str}",
    opt=_MADE_AGAIN,
    tags=_TAGS,
    status_code=202,
)
async def regenerate_from(
    request: HttpRequest, course_id: CourseId, index: ModuleIndex
) -> Response[CourseView]:
    """Make a module and all after it anew."""
    course = await courses_of(request).regenerate_from(course_id, _module(index))
    return await _answer(request, course, status=202)


@post(
    _ONE + "/accept-source/{index:str}",
    opt=declared(
        roles=("ops",), needs=Scope.OPERATE, raises=(*_ACT_ERRORS, CourseModuleUnknownError)
    ),
    tags=_TAGS,
    status_code=200,
)
async def accept_source(
    request: HttpRequest, course_id: CourseId, index: ModuleIndex
) -> Response[CourseView]:
    """Take the classroom of a module as it is now, although it was edited."""
    return await _answer(
        request, await courses_of(request).accept_source(course_id, _module(index))
    )


@post(
    _ONE + "/resume",
    opt=declared(roles=("ops",), needs=Scope.OPERATE, raises=_ACT_ERRORS),
    tags=_TAGS,
    status_code=202,
)
async def resume_course(request: HttpRequest, course_id: CourseId) -> Response[CourseView]:
    """Go on where a failure or cancellation stopped; what succeeded stays."""
    return await _answer(request, await courses_of(request).resume(course_id), status=202)


@post(
    _ONE + "/cancel",
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(CourseUnknownError, CourseNoRunError, StoreUnavailable),
    ),
    tags=_TAGS,
    status_code=200,
)
async def cancel_course(request: HttpRequest, course_id: CourseId) -> Response[CourseView]:
    """Stop what is being done; modules that succeeded stay."""
    return await _answer(request, await courses_of(request).cancel(course_id))


@get(
    _ONE + "/readiness",
    opt=declared(
        roles=("ops",), needs=Scope.OPERATE, raises=(CourseUnknownError, StoreUnavailable)
    ),
    tags=_TAGS,
)
async def show_readiness(request: HttpRequest, course_id: CourseId) -> ReadinessView:
    """Say whether a course could be published now, and every reason against it."""
    courses = courses_of(request)
    course = await courses.get(course_id)
    found = await publisher_of(services_of(request)).readiness(publication.source_of(course))
    warnings = [
        Reason(code="AUDIO_MISSING", module_index=None, detail=place)
        for place in await courses.silent(course)
    ]
    warnings += [
        Reason(code="MODEL_NEEDED", module_index=index, detail=", ".join(parts))
        for index, parts in found.needs_model.items()
    ]
    if found.unprotected:
        target = publisher_of(services_of(request)).target
        warnings.append(Reason(code="PUBLISH_UNPROTECTED", module_index=None, detail=target))
    return ReadinessView(
        ready=found.ready,
        blockers=tuple(reason_of(one) for one in found.blockers),
        warnings=tuple(warnings),
    )


@post(
    _ONE + "/publish",
    opt=declared(
        roles=("ops",),
        needs=Scope.OPERATE,
        raises=(
            *_ACT_ERRORS,
            PublishTokenMissingError,
            PublishRefusedError,
            SourceChangedError,
            PublishCancelledError,
            PublishServerError,
        ),
    ),
    tags=_TAGS,
    status_code=200,
)
async def publish_course(request: HttpRequest, course_id: CourseId) -> PublishedView:
    """Publish a course: freeze every module, pin them all; the same again is the same version."""
    services = services_of(request)
    by = Actor.of(principal_of(request))
    made = await publication.publish(courses_of(request), publisher_of(services), course_id, by)
    return PublishedView(
        course_id=made.manifest.course_id,
        version=made.manifest.version,
        new=made.new,
        manifest_hash=made.manifest_hash,
    )


def courses_of(request: HttpRequest) -> Courses:
    """Return the courses of the application that `request` came to."""
    services = services_of(request)
    return open_courses(
        services.database,
        services.blobs,
        services.clock,
        services.ids,
        classrooms=services.settings.classrooms,
        authors=authors_of(services),
    )


def authors_of(services: Services) -> Mapping[str, Author]:
    """Return the authors of this installation; here none of them makes anything."""
    database, blobs, clock = services.database, services.blobs, services.clock
    voice = PromisedVoice()
    return known_authors(
        blobs, voice, model_author(services.settings, database, blobs, clock, voice)
    )


def publisher_of(services: Services) -> CoursePublisher:
    """Return what publishes courses of this installation."""
    return publisher_for(services.settings, services.database, services.clock)


def _revision(request: HttpRequest) -> int | None:
    """Return the revision in `If-Match`; None if there is none that could be one."""
    sent = request.headers.get("if-match", "").strip().removeprefix("W/").strip('"')
    return int(sent) if sent.isascii() and sent.isdecimal() and len(sent) < 10 else None  # noqa: PLR2004 - digits


async def _answer(
    request: HttpRequest, course: Course, *, status: int = 200
) -> Response[CourseView]:
    courses = courses_of(request)
    silent = await courses.silent(course)
    target = publisher_of(services_of(request)).target
    standing = await publication.standing(courses, course, target)
    headers: Mapping[str, str] = {"ETag": f'"{course.framework_revision}"'}
    view = view_of(course, silent, standing, await courses.account(course))
    return Response(view, status_code=status, headers=dict(headers))


route_handlers = [
    add_recording,
    create_course,
    list_authored_courses,
    show_course,
    edit_framework,
    start_course,
    regenerate_framework,
    retry_module,
    regenerate_from,
    accept_source,
    resume_course,
    cancel_course,
    show_readiness,
    publish_course,
]
