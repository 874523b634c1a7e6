"""What a model does for a learner in a classroom: grade a short answer, talk, coach a project.

Which classroom, and where in it, is all that is named; what a model is asked is made here of what
the classroom says. Nothing of it is stored. Without a model, or when it fails, the answer is
`available: false`: a player has one thing to look for, and does without.
"""

from typing import Annotated, Final

import msgspec
import structlog
from litestar import get, post
from litestar.params import JSONBody
from msgspec import Meta

from etude.classroom.errors import ClassroomUnknownError
from etude.classroom.model import Classroom
from etude.courseware import catalogue, tutoring
from etude.courseware.bundle import Bundle
from etude.courseware.checking import classroom_of
from etude.courseware.errors import (
    BundleStoredMissingError,
    CoursewareUnknownError,
    ManifestWithdrawnError,
    TutorNothingToAskError,
    TutorTooManyError,
)
from etude.courseware.tutoring import LONGEST_SAID, MOST_SAID, Said
from etude.llm.chat import Chat, Endpoint, Request
from etude.llm.errors import LlmError
from etude.people.scopes import Scope
from etude.people.spending.errors import PriceMissingError, QuotaSpentError
from etude.store.errors import BlobMissing, StoreUnavailable
from etude.web.auth import principal_of
from etude.web.classroom_jobs import owner_of
from etude.web.classrooms import shelf_of
from etude.web.declared import declared
from etude.web.services import HttpRequest, Services, services_of

PATH: Final = "/api/tutor"
NO_MODEL: Final = "LLM_NOT_CONFIGURED"
SUBJECT: Final = "tutor"
NOT_HAD: Final = (LlmError, QuotaSpentError, PriceMissingError)
"""Why there is no answer; a player does without."""
_TAGS: Final = ["Tutor"]
_ERRORS: Final = (
    TutorNothingToAskError,
    TutorTooManyError,
    ClassroomUnknownError,
    CoursewareUnknownError,
    ManifestWithdrawnError,
    BundleStoredMissingError,
    StoreUnavailable,
)
_Id = Annotated[str, Meta(min_length=1, max_length=128)]
_PlaceId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
log = structlog.get_logger("etude.web")


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where the learner is: in a version of a courseware, or in a classroom of their own."""

    courseware_id: _PlaceId | None = None
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    classroom_id: _PlaceId | None = None
    scene_id: _Id


class ShortAnswer(_Body, frozen=True, kw_only=True):
    """A short answer that is to be graded."""

    question_id: _Id
    answer: Annotated[str, Meta(min_length=1, max_length=LONGEST_SAID)]


class Talk(_Body, frozen=True, kw_only=True):
    """A discussion so far."""

    action_id: _Id
    said: Annotated[tuple[Said, ...], Meta(max_length=MOST_SAID)] = ()


class Coached(_Body, frozen=True, kw_only=True):
    """A talk with a project's instructor so far."""

    milestone_id: _Id
    said: Annotated[tuple[Said, ...], Meta(max_length=MOST_SAID)] = ()


class Tutor(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a model answers here."""

    available: bool


class GradeView(msgspec.Struct, frozen=True, kw_only=True):
    """A grade; without a score nobody graded it (`reason`): compare by yourself."""

    available: bool
    graded: bool = False
    score: int | None = None
    points: float | None = None
    comment: str = ""
    reason: str | None = None


class ReplyView(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody of the classroom says next."""

    available: bool
    name: str = ""
    reply: str = ""
    reason: str | None = None


@get(
    PATH,
    opt=declared(roles=("server", "learner"), needs=Scope.CLASSROOMS_WRITE),
    tags=_TAGS,
)
async def show_tutor(request: HttpRequest) -> Tutor:
    """Say whether a model grades, talks and coaches here; without one a player does without."""
    return Tutor(available=_endpoint(services_of(request)) is not None)


@post(
    PATH + "/grade",
    opt=declared(roles=("server", "learner"), needs=Scope.CLASSROOMS_WRITE, raises=_ERRORS),
    tags=_TAGS,
    status_code=200,
)
async def grade_answer(request: HttpRequest, data: JSONBody[ShortAnswer]) -> GradeView:
    """Grade a short answer by the rubric of its question."""
    endpoint = _endpoint(services_of(request))
    if endpoint is None:
        return GradeView(available=False, reason=NO_MODEL)
    classroom = await _classroom(request, data)
    question = tutoring.question_of(classroom, data.scene_id, data.question_id)
    asked = tutoring.grading(classroom, question, data.answer)
    try:
        grade = tutoring.read_grade(await _answer(request, endpoint, asked, "grade"), question)
    except NOT_HAD as error:
        return GradeView(available=False, points=question.points, reason=error.code)
    return GradeView(
        available=True,
        graded=grade.score is not None,
        score=grade.score,
        points=question.points,
        comment=grade.comment,
    )


@post(
    PATH + "/discussion",
    opt=declared(roles=("server", "learner"), needs=Scope.CLASSROOMS_WRITE, raises=_ERRORS),
    tags=_TAGS,
    status_code=200,
)
async def discuss(request: HttpRequest, data: JSONBody[Talk]) -> ReplyView:
    """Say what an agent answers in a discussion; with nothing said yet, how it begins."""
    endpoint = _endpoint(services_of(request))
    if endpoint is None:
        return ReplyView(available=False, reason=NO_MODEL)
    classroom = await _classroom(request, data)
    found = tutoring.discussion_of(classroom, data.scene_id, data.action_id)
    agent, asked = tutoring.talking(classroom, data.scene_id, found, data.said)
    return await _reply(request, endpoint, agent.name, asked, "discussion")


@post(
    PATH + "/project",
    opt=declared(roles=("server", "learner"), needs=Scope.CLASSROOMS_WRITE, raises=_ERRORS),
    tags=_TAGS,
    status_code=200,
)
async def coach(request: HttpRequest, data: JSONBody[Coached]) -> ReplyView:
    """Say what a project's instructor answers at a milestone."""
    endpoint = _endpoint(services_of(request))
    if endpoint is None:
        return ReplyView(available=False, reason=NO_MODEL)
    classroom = await _classroom(request, data)
    project, milestone = tutoring.milestone_of(classroom, data.scene_id, data.milestone_id)
    name, asked = tutoring.coaching(classroom, project, milestone, data.said)
    return await _reply(request, endpoint, name, asked, "project")


async def _classroom(request: HttpRequest, where: _Body) -> Classroom:
    """Return the classroom that the learner is in, as it was published or as it is theirs."""
    if where.classroom_id is not None:
        return (await shelf_of(request).read(owner_of(request), where.classroom_id)).classroom
    if where.courseware_id is None:
        raise TutorNothingToAskError(what="coursewareId, classroomId")
    services = services_of(request)
    async with services.database.read() as connection:
        row = await catalogue.version_of(connection, where.courseware_id, where.version)
    kept = services.tutoring.read(row.bundle_sha256)
    if kept is not None:
        return kept
    path = services.blobs.file_of(row.bundle_sha256)

    def read() -> Classroom:
        with Bundle.open(path) as bundle:
            return classroom_of(bundle)

    try:
        classroom = await services.in_thread(read)
    except (BlobMissing, FileNotFoundError) as error:
        raise BundleStoredMissingError(
            courseware=where.courseware_id, version=row.version
        ) from error
    services.tutoring.keep(row.bundle_sha256, classroom)
    return classroom


async def _reply(
    request: HttpRequest, endpoint: Endpoint, name: str, asked: Request, stage: str
) -> ReplyView:
    try:
        reply = tutoring.read_reply(await _answer(request, endpoint, asked, stage))
    except NOT_HAD as error:
        return ReplyView(available=False, name=name, reason=error.code)
    return ReplyView(available=True, name=name, reply=reply)


async def _answer(request: HttpRequest, endpoint: Endpoint, asked: Request, stage: str) -> str:
    """Ask the model in the learner's name, if it is not too often.

    Raises:
        LlmError: it does not answer.
        QuotaSpentError, PriceMissingError: it is not asked.
    """
    services, principal = services_of(request), principal_of(request)
    services.tutoring.allow((principal.kind, principal.key), services.clock.now())
    try:
        async with Chat(endpoint) as chat:
            owner = f"{principal.kind}:{principal.key}"
            answer = await services.payer.ask(
                chat, asked, owner=owner, subject=SUBJECT, stage=f"{SUBJECT}:{stage}"
            )
            return answer.text
    except NOT_HAD as error:
        log.warning("no tutor", action="tutor.failed", code=error.code)
        raise


def _endpoint(services: Services) -> Endpoint | None:
    """Return where the configured model is; None: there is none, or it has no name."""
    settings = services.settings
    if settings.llm_url is None or settings.llm_model is None:
        return None
    key = None if settings.llm_key is None else settings.llm_key.get_secret_value()
    return Endpoint(url=settings.llm_url, model=settings.llm_model, key=key)


route_handlers = [show_tutor, grade_answer, discuss, coach]
