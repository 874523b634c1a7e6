"""`etude examine`: the report of a session, from a file or from this installation's database.

A file or a journal's folder is examined where it lies: nothing is asked, stored or sent. Exit
codes: 0 done, 1 refused lines or a report that does not hold, 3 no such session, file or rubric.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from etude.cli import exits, terminal
from etude.cli.event_file import STDIN, read_events
from etude.cli.examined_sessions import stored_session
from etude.cli.installation import settings_for
from etude.cli.local import DataOption, Local, TimeOption, with_database
from etude.clock import RandomIds, SystemClock
from etude.edge.reader import JournalFolder
from etude.events.errors import EventFileUnknownError, LineError
from etude.events.model import Event
from etude.examiner.errors import ReportUnreadableError
from etude.examiner.examining import make_report
from etude.examiner.journey import EarlierSession
from etude.examiner.overall import overall
from etude.examiner.page import render_page
from etude.examiner.report import Report, as_earlier, read_report, report_bytes
from etude.examiner.rescoring import rescore
from etude.examiner.verify import Verification, verify
from etude.files import Files, replace_file
from etude.i18n import LOCALES, text
from etude.rubric.library import (
    SUFFIXES,
    RubricLibrary,
    read_rubric,
    rubric_digest,
    rubric_pin,
)
from etude.rubric.model import Rubric

_PAGE_MODE: Final = 0o644


class _Session(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the session to examine; `reported` are the events behind `report`."""

    events: tuple[Event, ...]
    reported: tuple[Event, ...] = ()
    rejected: tuple[LineError, ...] = ()
    started_at: datetime | None = None
    media: frozenset[str] | None = None
    report: Report | None = None
    rubric: Rubric | None = None


def examine(  # noqa: PLR0913 - the command's options
    session: Annotated[
        str | None, typer.Argument(help="A session, or an events.jsonl or a journal's folder.")
    ] = None,
    *,
    rubric: Annotated[
        str | None, typer.Option(help="ID, ID@VERSION or a file; else the session's own.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as a page to OUT.")] = None,
    earlier: Annotated[
        list[Path] | None, typer.Option(help="Report of an earlier session of the journey (JSON).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="With --verify: a report (JSON), not the stored one.")
    ] = None,
    locale: Annotated[str | None, typer.Option(help="Language of the report: en, zh-CN.")] = None,
    since: TimeOption = None,
    data: DataOption = None,
    verify_: Annotated[
        bool, typer.Option("--verify", help="Make a report again and say what differs.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Show the report of a session: scores, the evidence behind them, and what is not sure.

    Of a stored session it is the latest revision, unless another rubric or language is asked for.
    With --since in the place of a session, the worker makes a new revision, by --rubric if it is
    given, of every stored session that began then or later.
    """
    if (session is None) == (since is None):
        raise typer.BadParameter("SESSION | --since")  # noqa: EM101, TRY003 - names what was given
    wanted = terminal.locale() if locale is None else locale
    if wanted not in LOCALES:
        raise typer.BadParameter(wanted, param_hint="--locale")
    library = RubricLibrary.load(settings_for("examine", data).rubrics)
    if session is None or since is not None:
        _rescore(since, rubric, library, data, as_json=as_json)
        return
    found = _session(session, data, _read(report) if verify_ and report else None)
    if verify_:
        _verify(found, rubric, library, as_json=as_json)
        return
    if found.report and found.rubric and not (rubric or locale or earlier):
        made, chosen, events = found.report, found.rubric, found.reported
    else:
        chosen, events = _rubric(rubric, found, library), found.events
        made = _examined(found, chosen, earlier or (), wanted)
    if html is not None:
        with terminal.output(str(html)):
            page = render_page(made, events, chosen).encode()
            replace_file(Files(), html.absolute(), page, mode=_PAGE_MODE)
        terminal.say("cli.examine.written", file=html)
    if as_json:
        terminal.print_bytes(report_bytes(made) + b"\n")
    elif html is None:
        _print(made)
    _end(found)


def _rescore(
    since: datetime | None,
    named: str | None,
    library: RubricLibrary,
    data: Path | None,
    *,
    as_json: bool,
) -> None:
    """Ask for a new revision of every session since then."""
    rubric = None if named is None else library.get(named)

    async def ask(here: Local) -> int:
        return await rescore(here.database, here.clock, since=since or here.now(), rubric=rubric)

    count = with_database("examine", data, ask)
    terminal.say("cli.examine.rescored", count=count)
    if as_json:
        terminal.print_json({"asked": count})


def _session(named: str, data: Path | None, given: Report | None) -> _Session:
    """Read the session, a path that is there or one of the database's, and a report of it.

    That is the `given` one, else, of a stored session, the latest revision.
    """
    path = Path(named)
    if path.is_dir():
        folder = JournalFolder(path)
        if next(folder.parts(), None) is None:
            raise EventFileUnknownError(file=named)
        return _of_file(folder.events(), (), given)
    if path == STDIN or path.exists() or path.suffix in {".jsonl", ".gz"}:
        read = list(read_events(path))
        return _of_file(
            (one for one in read if isinstance(one, Event)),
            (one for one in read if isinstance(one, LineError)),
            given,
        )
    stored = stored_session(named, data, given)
    return _Session(
        events=stored.events,
        reported=stored.reported,
        started_at=stored.started_at,
        media=stored.media,
        report=stored.report,
        rubric=stored.rubric,
    )


def _of_file(
    events: Iterable[Event], rejected: Iterable[LineError], report: Report | None
) -> _Session:
    """Return what a file says; who has a report of it has all that it was made from."""
    held = tuple(events)
    started = (one.started_at for one in held if one.started_at is not None)
    return _Session(
        events=held,
        reported=held,
        rejected=tuple(rejected),
        started_at=next(started, None),
        report=report,
    )


def _examined(found: _Session, rubric: Rubric, earlier: Sequence[Path], locale: str) -> Report:
    return make_report(
        found.events,
        rubric,
        tuple(_earlier(earlier)),
        locale="zh-CN" if locale == "zh-CN" else "en",
        clock=SystemClock(),
        ids=RandomIds(),
        started_at=found.started_at,
        media=found.media,
    )


def _rubric(named: str | None, found: _Session, library: RubricLibrary) -> Rubric:
    if named is None:
        start = next((one for one in found.events if one.event_type == "session_start"), None)
        if found.rubric and rubric_pin(start) == rubric_digest(found.rubric):
            return found.rubric
        return library.of_session(start)
    return read_rubric(Path(named)) if named.endswith(SUFFIXES) else library.get(named)


def _earlier(files: Sequence[Path]) -> Iterator[EarlierSession]:
    for file in files:
        known = as_earlier(_read(file))
        if known is not None:
            yield known


def _read(file: Path) -> Report:
    try:
        return read_report(file.read_bytes(), str(file))
    except FileNotFoundError as error:
        raise EventFileUnknownError(file=str(file)) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ReportUnreadableError(file=str(file), reason=reason) from error


def _verify(
    found: _Session,
    rubric: str | None,
    library: RubricLibrary,
    *,
    as_json: bool,
) -> None:
    """Make a report again from what it was made from, by the rubric that was kept if it was."""
    report = found.report
    if report is None:
        lacking = "--report"
        raise typer.BadParameter(lacking, param_hint="--verify")
    kept = found.rubric if rubric is None else None
    chosen = kept or _rubric(rubric or report.rubric_key, found, library)
    result = verify(report, found.reported, chosen)
    if as_json:
        terminal.print_json({"holds": result.holds, **msgspec.to_builtins(result)})
    else:
        _print_verification(result)
    if not result.holds:
        raise typer.Exit(exits.REFUSED)
    _end(found)


def _print_verification(result: Verification) -> None:
    locale = terminal.locale()
    if result.holds:
        terminal.print_text(text("cli.examine.same", locale, digest=result.digest))
        return
    terminal.print_text(text("cli.examine.differs", locale))
    for one in result.differences:
        line = text(f"cli.examine.difference.{one.part}", locale, name=one.name)
        terminal.print_text(f"  {line}")


def _print(made: Report) -> None:
    locale, found = made.inputs.locale, made.examiner_assessment
    if found.overall_score is None:
        terminal.print_text(text("cli.examine.no_score", locale))
    else:
        beside = overall(made)
        words = {"highest": f"{beside.highest:g}", "coverage": beside.percent}
        line = text("cli.examine.overall", locale, score=found.overall_score, **words)
        terminal.print_text(line)
    for item in found.evidence_chain:
        interval = made.uncertainty[item.dimension].interval
        if interval is None:
            terminal.print_text(text("cli.examine.unscored", locale, title=item.title))
        else:
            low, high = interval
            words = {"title": item.title, "score": item.score, "low": low, "high": high}
            terminal.print_text(text("cli.examine.dimension", locale, **words))
            terminal.print_text(f"  {item.narrative} [{', '.join(item.evidence_events)}]")
        for entry in item.low_confidence_items:
            terminal.print_text(f"  △ {entry.event_id}: {entry.note}")
    for one in (*(gate.says for gate in found.safety), *(gap.note for gap in made.gaps)):
        terminal.print_text(one)
    terminal.print_text(text("cli.examine.next", locale, step=found.recommendations[0]))


def _end(found: _Session) -> None:
    """Say on stderr which lines were refused, and end the command accordingly."""
    for error in found.rejected:
        sys.stderr.write(terminal.explain(error) + "\n")
    if found.rejected:
        terminal.say("cli.examine.refused", count=len(found.rejected))
        raise typer.Exit(exits.REFUSED)
