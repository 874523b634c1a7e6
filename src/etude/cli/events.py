"""`etude events`: what a file of events holds. Only `upload` needs a server.

Exit codes of all: 0 done, 1 a finding or a refused line, 3 no such file, 4 unreadable.
"""

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from etude.cli import exits, terminal
from etude.cli.event_file import read_events, read_lines
from etude.cli.upload import upload
from etude.events import lint as linting
from etude.events.cloudevents import to_cloudevent
from etude.events.errors import LineError
from etude.events.model import Event
from etude.events.ndjson import to_fields
from etude.i18n import catalogue, text
from etude.rubric import recap as recaps

app = typer.Typer()
app.command()(upload)

FileArgument = Annotated[
    Path, typer.Argument(help="events.jsonl, plain or .gz; - reads stdin.", metavar="FILE")
]
_COLUMNS: Final = ("positive", "uncertain", "issue")


@app.command()
def lint(file: FileArgument, *, as_json: terminal.JsonOption = False) -> None:
    """Name what is wrong with each line: refused lines, and conventions that are not kept.

    Exit code 1 if anything was found.
    """
    found = list(linting.lint(read_lines(file)))
    locale = terminal.locale()
    if as_json:
        terminal.print_json(
            {
                "rejected_lines": sum(one.is_rejected for one in found),
                "findings": [
                    msgspec.to_builtins(one) | {"message": one.message(locale)} for one in found
                ],
            }
        )
    else:
        for one in found:
            terminal.print_text(f"{file}:{one.line}: {one.code}: {one.message(locale)}")
    if found:
        raise typer.Exit(exits.REFUSED)


@app.command()
def recap(file: FileArgument, *, as_json: terminal.JsonOption = False) -> None:
    """Make the recap of a session: counts by phase and what went well, in the run's language.

    Exit code 1 if lines were refused; the recap is of the others.
    """
    rejected: list[LineError] = []
    made = recaps.recap(_accepted(read_events(file), rejected), locale=terminal.locale())
    if as_json:
        terminal.print_json(made)
    else:
        _print_recap(made)
    _end(rejected)


@app.command()
def export(
    file: FileArgument,
    *,
    format_: Annotated[
        Literal["ndjson", "cloudevents"],
        typer.Option("--format", help="Events as sent, or CloudEvents 1.0."),
    ] = "ndjson",
    as_json: terminal.JsonOption = False,
) -> None:
    """Write the events of a file again: one a line, or with --json as one array.

    Exit code 1 if lines were refused; the others are written.
    """
    rejected: list[LineError] = []
    events = _accepted(read_events(file), rejected)
    documents = _cloudevents(events) if format_ == "cloudevents" else map(to_fields, events)
    _write_all(map(msgspec.json.encode, documents), as_array=as_json)
    _end(rejected)


def _accepted(read: Iterable[Event | LineError], rejected: list[LineError]) -> Iterator[Event]:
    """Yield the events, and gather the errors."""
    for one in read:
        if isinstance(one, LineError):
            rejected.append(one)
        else:
            yield one


def _end(rejected: list[LineError]) -> None:
    """Say on stderr which lines were refused, and end the command accordingly."""
    for error in rejected:
        sys.stderr.write(terminal.explain(error) + "\n")
    if rejected:
        raise typer.Exit(exits.REFUSED)


def _print_recap(made: recaps.Recap) -> None:
    locale = made.locale
    for phase, counts in made.phase_summary.items():
        name = catalogue(locale).get(f"recap.phase.{phase}", phase)
        seen = ", ".join(
            text(f"recap.count.{column}", locale, count=getattr(counts, column))
            for column in _COLUMNS
        )
        terminal.print_text(f"{name}: {seen}")
    for sentence in made.highlights:
        terminal.print_text(f"★ {sentence}")


def _cloudevents(events: Iterable[Event]) -> Iterator[Any]:
    started: dict[str, datetime] = {}
    for event in events:
        if event.started_at is not None:
            started.setdefault(event.session_id, event.started_at)
        yield to_cloudevent(event, started.get(event.session_id))


def _write_all(documents: Iterable[bytes], *, as_array: bool) -> None:
    """Write each document on a line, as it comes; `as_array` makes the whole one document."""
    between = b",\n" if as_array else b"\n"
    terminal.print_bytes(b"[" if as_array else b"")
    count = 0
    for count, document in enumerate(documents, 1):
        terminal.print_bytes((between if count > 1 else b"") + document)
    terminal.print_bytes(b"]\n" if as_array else b"\n" if count else b"")
    terminal.flush()
