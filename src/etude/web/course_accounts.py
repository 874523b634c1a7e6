"""The ledger of a course over HTTP: what models were asked for it, call by call."""

from typing import Annotated, Final

from litestar import get
from litestar.params import PathParameter, QueryParameter

from etude.authoring.errors import CourseUnknownError
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.course_account_views import CallList, call_view
from etude.web.courses import PATH, courses_of
from etude.web.declared import declared
from etude.web.services import HttpRequest

CALLS: Final = PATH + "/{course_id:str}/calls"


@get(
    CALLS,
    opt=declared(
        roles=("ops",), needs=Scope.OPERATE, raises=(CourseUnknownError, StoreUnavailable)
    ),
    tags=["Courses"],
)
async def list_course_calls(
    request: HttpRequest,
    course_id: Annotated[
        str, PathParameter(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The course's id.")
    ],
    *,
    answers: Annotated[
        bool, QueryParameter(description="Whether the answers' texts come with the calls.")
    ] = False,
) -> CallList:
    """List what models were asked for a course, with tokens and cost."""
    calls = await courses_of(request).calls(course_id, answers=answers)
    return CallList(items=tuple(call_view(one) for one in calls))


route_handlers = [list_course_calls]
