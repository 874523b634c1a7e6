"""`etude model calls`: the ledger of calls to models, on this machine's database."""

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
from etude.people.spending import ledger
from etude.people.spending.shown import (
    CallOwner,
    ModelCallView,
    MonthView,
    shown_calls,
    shown_month,
)
from etude.people.spending.terms import month_of, spending_terms
from etude.people.times import check_time

app = typer.Typer(no_args_is_help=True)
_COLUMNS: Final = ("asked", "owner", "subject", "stage", "model", "state", "tokens", "cost")


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What the command shows: the calls, oldest first."""

    items: list[ModelCallView]
    month: MonthView


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
        return Shown(items=items, month=shown_month(spent, most))

    shown = with_database("model calls", data, act)
    if as_json:
        terminal.print_json(shown)
        return
    locale = terminal.locale()
    heads = [text(f"cli.model.head.{name}", locale) for name in _COLUMNS]
    show_table(heads, [_row(one) for one in shown.items])
    terminal.print_text(_said(shown.month, locale))


async def _calls_since(connection: AsyncConnection, since: datetime) -> list[ModelCallView]:
    """Return the calls that were asked at `since` or later."""
    return await every_page(
        lambda cursor, limit: shown_calls(connection, since=since, cursor=cursor, limit=limit)
    )


def _row(one: ModelCallView) -> tuple[str, ...]:
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


def _name(owner: CallOwner) -> str:
    if owner.id is not None:
        return f"{owner.kind} {owner.id}"
    return f"{owner.kind} #{owner.key}" if owner.key else owner.kind  # this machine has no number


def _said(month: MonthView, locale: str) -> str:
    tokens, cost = str(month.tokens), f"{month.cost:.4f}"
    if month.most_tokens is not None:
        tokens = text("cli.model.of", locale, spent=tokens, most=month.most_tokens)
    if month.most_cost is not None:
        cost = text("cli.model.of", locale, spent=cost, most=f"{month.most_cost:.4f}")
    return text("cli.model.month", locale, tokens=tokens, cost=cost)
