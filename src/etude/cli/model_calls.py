"""`etude model calls`: the ledger of calls to models, on this machine's database."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec
import typer
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.cli import terminal
from etude.cli.installation import settings_for
from etude.cli.local import (
    DataOption,
    Local,
    every_page,
    parse_time,
    show_table,
    with_database,
)
from etude.i18n import text
from etude.people.public_ids import public_ids
from etude.people.records import Page
from etude.people.spending import ledger
from etude.people.spending.amounts import MICRO, Limit, Spent
from etude.people.spending.ledger import Entry
from etude.people.spending.terms import month_of, spending_terms
from etude.people.times import check_time

app = typer.Typer(no_args_is_help=True)
_COLUMNS: Final = ("asked", "owner", "subject", "stage", "model", "state", "tokens", "cost")


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose day was drawn on. `id` null: this machine (`host`), or nobody who is known any more."""

    kind: str
    key: int | None
    id: str | None


class ShownCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call, with the members that the route has; nothing of what was said."""

    asked_at: datetime
    ended_at: datetime | None
    owner: Owner
    subject: str
    stage: str
    model: str
    state: str
    error_code: str | None
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost: float | None


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody has spent in this calendar month (UTC), and what may be; null: no limit."""

    tokens: int
    cost: float
    most_tokens: int | None
    most_cost: float | None


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What the command shows: the calls, oldest first."""

    items: list[ShownCall]
    month: Month


@app.command()
def calls(
    *,
    since: Annotated[
        datetime | None,
        typer.Option(
            parser=parse_time,
            metavar="TIME",
            help="2026-09-01T08:00:00+08:00; else since the month began (UTC).",
        ),
    ] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """List what models were asked, for whom and for what, with tokens and cost.

    Below: what everybody has spent this month, and what may be (ETUDE_LLM_MONTH).
    """
    most = spending_terms(settings_for("model calls", data)).month
    first = None if since is None else check_time(since)

    async def act(here: Local) -> Shown:
        begun = month_of(here.now())
        async with here.database.read() as connection:
            spent = await ledger.spent_since(connection, begun)
            items = await _calls_since(connection, first or begun)
        return Shown(items=items, month=_month(spent, most))

    shown = with_database("model calls", data, act)
    if as_json:
        terminal.print_json(shown)
        return
    locale = terminal.locale()
    heads = [text(f"cli.model.head.{name}", locale) for name in _COLUMNS]
    show_table(heads, [_row(one) for one in shown.items])
    terminal.print_text(_said(shown.month, locale))


async def _calls_since(connection: AsyncConnection, since: datetime) -> list[ShownCall]:
    """Return the calls that were asked at `since` or later."""

    async def read(cursor: str | None, limit: int) -> Page[ShownCall]:
        found = await ledger.everybodys(connection, since=since, cursor=cursor, limit=limit)
        ids = await public_ids(connection, {_party(one.owner) for one in found.items})
        items = tuple(_shown(one, _owner(one.owner, ids)) for one in found.items)
        return Page(items=items, next_cursor=found.next_cursor)

    return await every_page(read)


def _party(owner: str) -> tuple[str, int]:
    kind, _, key = owner.partition(":")
    return kind, int(key) if key.isdecimal() else 0


def _owner(owner: str, ids: Mapping[tuple[str, int], str]) -> Owner:
    """Read `learner:7`. A gateway, which has no row, is called by its id: `gateway:host:8000`."""
    kind, _, rest = owner.partition(":")
    if not rest.isdecimal():
        return Owner(kind=kind, key=None, id=rest)
    return Owner(kind=kind, key=int(rest), id=ids.get((kind, int(rest))))


def _shown(one: Entry, owner: Owner) -> ShownCall:
    return ShownCall(
        asked_at=one.asked_at,
        ended_at=one.ended_at,
        owner=owner,
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


def _month(spent: Spent, most: Limit) -> Month:
    return Month(
        tokens=spent.tokens,
        cost=spent.micro / MICRO,
        most_tokens=most.tokens,
        most_cost=None if most.micro is None else most.micro / MICRO,
    )


def _row(one: ShownCall) -> tuple[str, ...]:
    about = "≤ " if one.estimated else ""
    return (
        one.asked_at.isoformat(timespec="seconds"),
        _name(one.owner),
        one.subject,
        one.stage,
        one.model,
        one.error_code or one.state,
        f"{about}{one.prompt_tokens + one.completion_tokens}",
        "-" if one.cost is None else f"{one.cost:.4f}",
    )


def _name(owner: Owner) -> str:
    if owner.id is not None:
        return f"{owner.kind} {owner.id}"
    return f"{owner.kind} #{owner.key}" if owner.key else owner.kind  # this machine has no number


def _said(month: Month, locale: str) -> str:
    tokens, cost = str(month.tokens), f"{month.cost:.4f}"
    if month.most_tokens is not None:
        tokens = text("cli.model.of", locale, spent=tokens, most=month.most_tokens)
    if month.most_cost is not None:
        cost = text("cli.model.of", locale, spent=cost, most=f"{month.most_cost:.4f}")
    return text("cli.model.month", locale, tokens=tokens, cost=cost)
