"""The ledger of calls to models as it is shown, over HTTP and at the terminal alike."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.paging import DEFAULT_LIMIT
from etude.people.public_ids import public_ids
from etude.people.records import Page
from etude.people.spending import ledger
from etude.people.spending.amounts import MICRO, Limit, Spent
from etude.people.spending.ledger import Entry


class CallOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose day was drawn on. `id` null: this machine (`host`), or nobody who is known any more.

    A gateway has no key: it is called by its own id.
    """

    kind: str
    key: int | None
    id: str | None


class ModelCallView(msgspec.Struct, frozen=True, kw_only=True):
    """One call; nothing of what was said. `cost` null: nobody said what the model costs.

    `state` `asked`: its answer is not known (yet), and it counts at its highest.
    """

    asked_at: datetime
    ended_at: datetime | None
    owner: CallOwner
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


async def shown_calls(
    connection: AsyncConnection,
    *,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[ModelCallView]:
    """Return a page of all calls, or of those asked at `since` or later; as `ledger.everybodys`."""
    found = await ledger.everybodys(connection, since=since, cursor=cursor, limit=limit)
    parties = (_party(one.owner) for one in found.items)
    ids = await public_ids(connection, {(kind, key) for kind, key, _ in parties if key is not None})
    items = tuple(_view(one, ids) for one in found.items)
    return Page(items=items, next_cursor=found.next_cursor)


def shown_month(spent: Spent, most: Limit) -> MonthView:
    """Show what a month has cost beside what it may cost."""
    return MonthView(
        tokens=spent.tokens,
        cost=spent.micro / MICRO,
        most_tokens=most.tokens,
        most_cost=None if most.micro is None else most.micro / MICRO,
    )


def _party(owner: str) -> tuple[str, int | None, str | None]:
    """Read `learner:7` and `host` as kind and key, `gateway:host:8000` as kind and id."""
    kind, _, rest = owner.partition(":")
    if kind != "gateway" and rest.isdecimal():
        return kind, int(rest), None
    return kind, None, rest or None


def _view(one: Entry, ids: Mapping[tuple[str, int], str]) -> ModelCallView:
    kind, key, own_id = _party(one.owner)
    return ModelCallView(
        asked_at=one.asked_at,
        ended_at=one.ended_at,
        owner=CallOwner(kind=kind, key=key, id=own_id if key is None else ids.get((kind, key))),
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
