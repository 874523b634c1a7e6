"""Reports: the latest revision or an earlier one, and by which rubric a session is examined."""

import hashlib
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, get, put
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from etude.examiner import cards, revisions
from etude.examiner.report import Report, read_report, report_bytes
from etude.examiner.revisions import Expected, Status
from etude.examiner.serving_errors import ReportFailedError, RevisionUnknownError
from etude.people.scopes import Scope
from etude.rubric.errors import RubricUnknownError
from etude.sessions import reading, repository
from etude.sessions.errors import (
    SessionEmptyError,
    SessionErasedError,
    SessionIdInvalidError,
    SessionTooLongError,
    SessionUnknownError,
)
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.report_pages import rendered
from etude.web.representations import JSON, is_known, page, wants_page
from etude.web.services import HttpRequest, services_of
from etude.web.uploads import SessionId

_READ_ERRORS: Final = (
    SessionIdInvalidError,
    SessionUnknownError,
    SessionErasedError,
    StoreUnavailable,
)
_MAX_REVISION: Final = 2**31 - 1
Number = Annotated[
    int | None,
    QueryParameter(name="revision", ge=1, le=_MAX_REVISION, description="An earlier revision."),
]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """There is no report yet: the session is `open`, or its report is `queued` or `running`."""

    status: Status


class RubricChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rubric to examine by: `id@version`, or an id for its newest version."""

    rubric: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class RubricChosen(msgspec.Struct, frozen=True, kw_only=True):
    """By which rubric the session is examined from now on; a revision follows."""

    session_id: str
    rubric: str


@get(
    "/api/v1/sessions/{session_id:str}/report",
    opt=declared(
        roles=("server", "learner"),
        needs=Scope.SESSIONS_READ,
        raises=(
            *_READ_ERRORS,
            SessionEmptyError,
            RubricUnknownError,
            RevisionUnknownError,
            SessionTooLongError,
            ReportFailedError,
        ),
    ),
    responses={
        200: ResponseSpec(Report, generate_examples=False, description="The report."),
        202: ResponseSpec(Waiting, generate_examples=False, description="There is none yet."),
    },
    tags=["Reports"],
)
async def show_report(
    request: HttpRequest, session_id: SessionId, revision: Number = None
) -> Response[Any]:
    """Give the latest revision of a session's report, or an earlier one; a page to a browser.

    While it is being made: 202 and when to ask again (`Retry-After`).
    """
    services = services_of(request)
    now = services.clock.now()
    session = await reading.readable(services.database, principal_of(request), session_id, now)
    async with services.database.read() as connection:
        found = await revisions.load(connection, session, revision, now)
        if isinstance(found, Expected):
            return _waiting(found)
        kept_by = await revisions.not_reworded(connection, found)
        card = await cards.card_of_report(connection, session.session_key, services.card_links, now)
    told = msgspec.UNSET if kept_by is None else kept_by
    if wants_page(request):
        report = msgspec.structs.replace(read_report(found.body), not_reworded=told)
        content = await rendered(services, session, found, report)
        return page(content, report.inputs.locale, {"Cache-Control": "private, no-cache"})
    body = found.body
    if card is not None or kept_by is not None:
        sent = msgspec.structs.replace(read_report(body), summary_card=card, not_reworded=told)
        body = report_bytes(sent)
    return _with_etag(request, body)


def _waiting(expected: Expected) -> Response[Waiting]:
    return Response(
        Waiting(status=expected.status),
        status_code=202,
        headers={"Retry-After": str(expected.retry_after_s)},
    )


def _with_etag(request: HttpRequest, body: bytes) -> Response[Any]:
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Accept"}
    if is_known(request, etag):
        return Response(None, status_code=304, headers=headers)
    return Response(body, media_type=JSON, headers=headers)


@put(
    "/api/v1/sessions/{session_id:str}/rubric",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(*_READ_ERRORS, RubricUnknownError)
    ),
    tags=["Reports"],
)
async def choose_rubric(
    request: HttpRequest, session_id: SessionId, data: JSONBody[RubricChoice]
) -> RubricChosen:
    """Examine a session by a rubric that its events do not name; audited, a revision follows."""
    services = services_of(request)
    now = services.clock.now()
    await reading.readable(services.database, principal_of(request), session_id, now)
    library = await services.in_thread(services.shelf.library)
    rubric = library.get(data.rubric)
    async with services.database.transaction() as work:
        session = (await repository.lock(work, [session_id])).get(session_id)
        if session is None:
            raise SessionErasedError
        await revisions.assign_rubric(work, session, rubric, principal_of(request), now)
    return RubricChosen(session_id=session_id, rubric=rubric.key)


route_handlers = [show_report, choose_rubric]
