"""`etude class …` on this machine's database: classes, who teaches them, who is in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from etude.cli import terminal
from etude.cli.local import DataOption, Local, TimeOption, every_page, show, shown, with_database
from etude.clock import RandomIds
from etude.people import audit
from etude.people.class_errors import RosterFileUnreadableError, RosterTooLongError
from etude.people.class_staff import add_teacher, remove_teacher, teachers_of
from etude.people.classes import ClassChange, change_class, create_class, get_class, list_classes
from etude.people.learners import DEFAULT_LOCALE
from etude.people.records import HOST
from etude.people.roster_files import MAX_BYTES, MAX_LINES, read_roster
from etude.people.roster_import import import_roster
from etude.people.rosters import join_class, leave_class, roster_at, roster_ever

app = typer.Typer(no_args_is_help=True)
ClassArgument = Annotated[str, typer.Argument(metavar="CLASS", help="The class's id.")]
LearnerArgument = Annotated[str, typer.Argument(metavar="LEARNER", help="The learner's id.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What the class is called.")],
    *,
    class_id: Annotated[
        str | None, typer.Option("--id", metavar="CLASS", help="Else one is made.")
    ] = None,
    grade: Annotated[str | None, typer.Option(help="Such as '3'.")] = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Add a class; prints its id."""

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            made = await create_class(
                work,
                class_id=class_id or RandomIds().new(),
                name=name,
                grade=grade,
                actor=HOST,
                now=here.now(),
            )
        return shown(made)

    show(with_database("class create", data, act), as_json=as_json)


@app.command("list")
def list_all(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the classes, archived ones too."""

    async def act(here: Local) -> list[dict[str, Any]]:
        async with here.database.read() as connection:
            found = await every_page(
                lambda cursor, limit: list_classes(connection, cursor=cursor, limit=limit)
            )
        return [shown(each) for each in found]

    show(with_database("class list", data, act), as_json=as_json)


@app.command("show")
def show_one(
    class_id: ClassArgument,
    *,
    at: TimeOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="Also who has left, and who joins later.")
    ] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Show who is in a class, now or at `--at`, a line each; with --json the class itself too.

    Each learner shown is an entry in the audit log.
    """

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            found = await get_class(work.connection, class_id)
            members = (
                await roster_ever(work.connection, found.class_key)
                if history
                else await roster_at(work.connection, found.class_key, at or here.now())
            )
            await audit.record_all(
                work,
                HOST,
                "class.roster_read",
                subjects=[("learner", key) for key in sorted({one.learner_key for one in members})],
                now=here.now(),
                detail={"class": found.class_key},
            )
            teachers = await teachers_of(work.connection, found.class_key)
        return shown(found, teachers=list(teachers), roster=[shown(each) for each in members])

    answer = with_database("class show", data, act)
    show(answer if as_json else answer["roster"], as_json=as_json)


@app.command()
def rename(
    class_id: ClassArgument,
    name: Annotated[str, typer.Argument(help="What it is called from now on.")],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Call a class something else; its id stays."""
    show(_change("class rename", class_id, ClassChange(name=name), data), as_json=as_json)


@app.command()
def archive(
    class_id: ClassArgument,
    *,
    back: Annotated[bool, typer.Option("--back", help="Take it back: it counts again.")] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Let a class count no more; its roster stays. What was assigned to it counts no more."""
    change = ClassChange(archived=not back)
    show(_change("class archive", class_id, change, data), as_json=as_json)


@app.command()
def add(
    class_id: ClassArgument,
    learner_id: LearnerArgument,
    *,
    since: TimeOption = None,
    until: TimeOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Put a learner into a class, from now or `--since`, further on or `--until`."""

    async def act(here: Local) -> dict[str, Any]:
        now = here.now()
        async with here.database.transaction() as work:
            joined = await join_class(
                work,
                class_id,
                learner_id,
                starts_at=since or now,
                ends_at=until,
                actor=HOST,
                now=now,
            )
        return shown(joined)

    show(with_database("class add", data, act), as_json=as_json)


@app.command()
def remove(
    class_id: ClassArgument,
    learner_id: LearnerArgument,
    *,
    at: TimeOption = None,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Take a learner out of a class, now or at `--at`; what was before stays."""

    async def act(here: Local) -> dict[str, Any]:
        left_at = at or here.now()
        async with here.database.transaction() as work:
            await leave_class(work, class_id, learner_id, at=left_at, actor=HOST, now=here.now())
        return {"class_id": class_id, "learner_id": learner_id, "left_at": left_at.isoformat()}

    show(with_database("class remove", data, act), as_json=as_json)


@app.command()
def teacher(
    class_id: ClassArgument,
    staff_id: Annotated[str, typer.Argument(metavar="SIGN-IN-NAME")],
    *,
    no_more: Annotated[bool, typer.Option("--remove", help="They teach it no more.")] = False,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Let a member of staff teach a class: see it, and assign to it."""

    async def act(here: Local) -> dict[str, Any]:
        change = remove_teacher if no_more else add_teacher
        async with here.database.transaction() as work:
            await change(work, class_id, staff_id, actor=HOST, now=here.now())
            found = await get_class(work.connection, class_id)
            teachers = await teachers_of(work.connection, found.class_key)
        return {"class_id": class_id, "teachers": list(teachers)}

    show(with_database("class teacher", data, act), as_json=as_json)


@app.command("import")
def import_file(
    class_id: ClassArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: name[,id][,device_id], a learner a line.")
    ],
    *,
    locale: Annotated[
        Literal["en", "zh-CN"], typer.Option(help="Of learners who are new.")
    ] = DEFAULT_LOCALE,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Bring everybody of a file into a class; who is new is made. All of it, or nothing.

    Nobody leaves by being absent, and the same file again changes nothing. A device is given to its
    line's learner, from now on.
    """
    roster = read_roster(_bytes_of(file), str(file))

    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            done = await import_roster(
                work,
                class_id,
                roster,
                locale=locale,
                actor=HOST,
                now=here.now(),
                ids=RandomIds(),
            )
        return shown(done)

    done = with_database("class import", data, act)
    if as_json:
        terminal.print_json(done)
        return
    empty = done.pop("empty_lines")
    show(done, as_json=False)
    if empty:
        terminal.say("cli.people.roster_empty_lines", lines=_spans(empty))


def _change(command: str, class_id: str, change: ClassChange, data: Path | None) -> dict[str, Any]:
    async def act(here: Local) -> dict[str, Any]:
        async with here.database.transaction() as work:
            changed = await change_class(work, class_id, change, actor=HOST, now=here.now())
        return shown(changed)

    return with_database(command, data, act)


def _spans(numbers: Sequence[int]) -> str:
    """Write ascending numbers shortly: `3, 7-120`; a spreadsheet leaves many empty lines behind."""
    spans: list[tuple[int, int]] = []
    for each in numbers:
        if spans and spans[-1][1] == each - 1:
            spans[-1] = (spans[-1][0], each)
        else:
            spans.append((each, each))
    return ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in spans)


def _bytes_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            found = opened.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RosterFileUnreadableError(file=str(file), reason=reason) from error
    if len(found) > MAX_BYTES:
        raise RosterTooLongError(most=MAX_LINES)
    return found
