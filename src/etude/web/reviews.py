"""Reviews: a person's verdict on an event that was not sure (`docs/rules.md 28`)."""

from typing import Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from etude.examiner.reviews import Reviewer, Verdict, review
from etude.examiner.serving_errors import ReviewSubjectUnknownError
from etude.people.scopes import Scope
from etude.sessions import reading
from etude.sessions.errors import (
    SessionErasedError,
    SessionIdInvalidError,
    SessionTooLongError,
    SessionUnknownError,
)
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.services import HttpRequest, services_of
from etude.web.uploads import SessionId

METHOD_OF_PROGRAMS: Final = "service"


class Reviewed(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict is an event of the session now; another revision of the report follows."""

    review_id: str


@post(
    "/api/v1/sessions/{session_id:str}/reviews",
    status_code=201,
    opt=declared(
        roles=("server",),
        needs=Scope.SESSIONS_REVIEW,
        raises=(
            SessionIdInvalidError,
            SessionUnknownError,
            SessionErasedError,
            SessionTooLongError,
            ReviewSubjectUnknownError,
            StoreUnavailable,
        ),
    ),
    tags=["Reports"],
)
async def add_review(
    request: HttpRequest, session_id: SessionId, data: JSONBody[Verdict]
) -> Reviewed:
    """Say what was really there; the same verdict again is no second one."""
    services = services_of(request)
    principal, now = principal_of(request), services.clock.now()
    session = await reading.readable(services.database, principal, session_id, now)
    by_person = principal.kind == "staff"
    reviewer = (
        Reviewer(name=principal.id)
        if by_person
        else Reviewer(name=principal.id, method=METHOD_OF_PROGRAMS)
    )
    review_id = await review(
        services.database,
        services.ingest,
        session,
        data,
        reviewer,
        principal=principal,
        now=now,
    )
    return Reviewed(review_id=review_id)


route_handlers = [add_review]
