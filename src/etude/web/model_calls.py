"""The ledger of calls to models over HTTP: who asked for what, and what it cost."""

from datetime import datetime

import msgspec
from litestar import get

from etude.people.errors import CursorInvalidError
from etude.people.paging import DEFAULT_LIMIT
from etude.people.public_ids import public_ids
from etude.people.scopes import Scope
from etude.people.spending import ledger
from etude.people.spending.amounts import MICRO
from etude.people.spending.ledger import Entry
from etude.people.spending.terms import month_of, spending_terms
from etude.store.errors import StoreUnavailable
from etude.web.audit_log import Party
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of


class ModelCallView(msgspec.Struct, frozen=True, kw_only=True):
    """One call; nothing of what was said. `cost` null: nobody said what the model costs.

    `state` `asked`: its answer is not known (yet), and it counts at its highest.
    """

    asked_at: datetime
    ended_at: datetime | None
    owner: Party
    subject: str
    stage: str
    model: str
    state: str
    error_code: str | None
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost: float | None


class MonthView(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody has spent in this calendar month (UTC), and what may be; null: no limit."""

    tokens: int
    cost: float
    most_tokens: int | None
    most_cost: float | None


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
        page = await ledger.everybodys(connection, cursor=cursor, limit=limit)
        ids = await public_ids(connection, {_owner(one) for one in page.items})
        spent = await ledger.spent_since(connection, month_of(services.clock.now()))
    month = MonthView(
        tokens=spent.tokens,
        cost=spent.micro / MICRO,
        most_tokens=most.tokens,
        most_cost=None if most.micro is None else most.micro / MICRO,
    )
    items = [_view(one, ids.get(_owner(one))) for one in page.items]
    return ModelCallPage(items=items, next_cursor=page.next_cursor, month=month)


def _owner(one: Entry) -> tuple[str, int]:
    kind, _, key = one.owner.partition(":")
    return kind, int(key) if key.isdecimal() else 0


def _view(one: Entry, owner_id: str | None) -> ModelCallView:
    """Show one call. A gateway, which has no row, is called by its id: `gateway:host:8000`."""
    kind, key = _owner(one)
    if kind == "gateway":
        owner_id = one.owner.partition(":")[2]
    return ModelCallView(
        asked_at=one.asked_at,
        ended_at=one.ended_at,
        owner=Party(kind=kind, key=key, id=owner_id),
        subject=one.subject,
        stage=one.stage,
        model=one.model,
        state=one.state,
        error_code=one.error_code,
        prompt_tokens=one.prompt_tokens,
        completion_tokens=one.completion_tokens,
        estimated=one.estimated,
        cost=None if one.cost_micro is None else one.cost_micro / MICRO,
    )


route_handlers = [list_model_calls]
