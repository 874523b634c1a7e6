"""What the commands share that work on this machine's own database, beside a running server."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from etude.authoring.classrooms.learner_data import classrooms_data
from etude.cli import columns, terminal
from etude.cli.installation import require_folder, settings_for
from etude.clock import Clock, SystemClock
from etude.examiner.learner_data import all_learner_data
from etude.people.learner_data import LearnerDataRegistry
from etude.people.paging import MAX_LIMIT
from etude.people.records import Item, Page
from etude.practice.assignments.learner_data import assignments_data
from etude.store import Blobs, Database, check

Result = TypeVar("Result")
DataOption = Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")]


class Local(msgspec.Struct, frozen=True, kw_only=True):
    """An open installation: for as long as one command."""

    database: Database
    blobs: Blobs
    clock: Clock
    learner_data: LearnerDataRegistry

    def now(self) -> datetime:
        """Return the time."""
        return self.clock.now()


def with_database(
    command: str, data: Path | None, action: Callable[[Local], Awaitable[Result]]
) -> Result:
    """Open the database that the settings name, await `action` on it and return its result.

    Raises:
        NotInitialisedError, SchemaBehind, SchemaAhead, StoreUnavailable: nothing was done; the
            message helps.
    """
    settings = settings_for(command, data)
    require_folder(settings)

    async def run() -> Result:
        await check(settings.database_url)
        async with await Database.open(settings.database_url, connections=2) as database:
            clock = SystemClock()
            blobs = Blobs(settings.blobs, clock)
            return await action(
                Local(
                    database=database,
                    blobs=blobs,
                    clock=clock,
                    learner_data=all_learner_data(
                        clock,
                        blobs,
                        assignments_data(clock),
                        classrooms_data(clock, blobs, settings.classrooms),
                    ),
                )
            )

    return asyncio.run(run())


async def every_page(
    read: Callable[[str | None, int], Awaitable[Page[Item]]],
) -> list[Item]:
    """Return all items of a list; `read` gets a cursor and a limit."""
    items: list[Item] = []
    cursor: str | None = None
    while True:
        page = await read(cursor, MAX_LIMIT)
        items += page.items
        cursor = page.next_cursor
        if cursor is None:
            return items


def shown(record: msgspec.Struct, **more: object) -> dict[str, Any]:
    """Return what a person sees of a record: everything but the database's own keys."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in fields.items() if not name.endswith("_key")} | more


def show(value: dict[str, Any] | Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Write one record or a list to stdout: as JSON, or a line each with tabs in between."""
    if as_json:
        terminal.print_json(value)
        return
    for record in [value] if isinstance(value, dict) else value:
        terminal.print_text("\t".join(_cell(field) for field in record.values()))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows to stdout under their heads, each column as wide as its widest cell."""
    table = [heads, *rows]
    widths = [max(map(columns.width, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [
            cell + " " * (width - columns.width(cell))
            for cell, width in zip(row, widths, strict=True)
        ]
        terminal.print_text("  ".join(cells).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def parse_time(text: str) -> datetime:
    """Read a time of the command line (RFC 3339), for typer; an offset is asked for later."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(text) from error


TimeOption = Annotated[
    datetime | None,
    typer.Option(parser=parse_time, metavar="TIME", help="2026-09-01T08:00:00+08:00"),
]
