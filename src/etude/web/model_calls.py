"""The ledger of calls to models over HTTP: who asked for what, and what it cost."""

import msgspec
from litestar import get

from etude.people.errors import CursorInvalidError
from etude.people.paging import DEFAULT_LIMIT
from etude.people.scopes import Scope
from etude.people.spending import ledger
from etude.people.spending.shown import ModelCallView, MonthView, shown_calls, shown_month
from etude.people.spending.terms import month_of, spending_terms
from etude.store.errors import StoreUnavailable
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of


class ModelCallPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the ledger, oldest first."""

    items: list[ModelCallView]
    next_cursor: str | None
    month: MonthView


@get(
    "/api/v1/model-calls",
    opt=declared(
        roles=("server", "ops"),
        needs=Scope.OPERATE,
        raises=(CursorInvalidError, StoreUnavailable),
    ),
    tags=["People"],
)
async def list_model_calls(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> ModelCallPage:
    """List the calls to models, of courses, reports, tutors and toys, with tokens and cost."""
    services = services_of(request)
    most = spending_terms(services.settings).month
    async with services.database.read() as connection:
        page = await shown_calls(connection, cursor=cursor, limit=limit)
        spent = await ledger.spent_since(connection, month_of(services.clock.now()))
    return ModelCallPage(
        items=list(page.items), next_cursor=page.next_cursor, month=shown_month(spent, most)
    )


route_handlers = [list_model_calls]
