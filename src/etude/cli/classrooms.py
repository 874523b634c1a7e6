"""`etude classroom …`: classrooms of this machine, shown, edited, checked, brought and taken."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from etude.authoring.classrooms.composition import (
    open_shelf,
)
from etude.authoring.classrooms.records import (
    HOST,
)
from etude.authoring.classrooms.shelf import Shelf
from etude.authoring.errors import (
    MaterialUnknownError,
)
from etude.classroom.archive import Archive
from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.importing import import_archive, import_document
from etude.classroom.loading import read_classroom, read_object
from etude.classroom.mending import Loss
from etude.classroom.model import Classroom, InteractiveContent
from etude.classroom.plain import plain
from etude.cli import exits, terminal
from etude.cli.classroom_group import app
from etude.cli.installation import settings_for
from etude.cli.local import DataOption, Local, every_page, show, with_database
from etude.cli.material_files import bytes_of, naming
from etude.cli.page_check import WIDTH, PageReport, look_at
from etude.clock import RandomIds, SystemClock
from etude.i18n import text

_LOOK_EVERY_S: Final = 0.1
_CHECKED: Final = "checked"
_ZIP: Final = ".zip"
Result = TypeVar("Result")
ClassroomArgument = Annotated[str, typer.Argument(metavar="CLASSROOM")]
FileArgument = Annotated[Path, typer.Argument(metavar="FILE")]


@app.command("list")
def list_classrooms(*, data: DataOption = None, as_json: terminal.JsonOption = False) -> None:
    """List the single classrooms, the oldest first; those of courses: `etude course status`."""

    async def act(shelf: Shelf) -> list[dict[str, Any]]:
        found = await every_page(lambda at, most: shelf.listed(HOST, cursor=at, limit=most))
        return [
            {
                "classroom_id": one.classroom_id,
                "origin": one.origin,
                "owner_kind": one.owner.kind,
                "created_at": one.created_at.isoformat(),
                "title": one.title,
            }
            for one in found
        ]

    show(_with_shelf(act, data), as_json=as_json)


@app.command("show")
def show_classroom(
    classroom: ClassroomArgument,
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Show the scenes of a classroom; with --json its document, which `edit` takes back."""

    async def act(shelf: Shelf) -> tuple[Classroom, str]:
        stored = await shelf.read(HOST, classroom)
        return stored.classroom, stored.revision

    found, revision = _with_shelf(act, data)
    if as_json:
        terminal.print_json({"revision": revision, "classroom": plain(found)})
        return
    terminal.print_text(f"{found.id}\t{found.stage.name}\t{revision}")
    for number, scene in enumerate(found.in_order, 1):
        terminal.print_text(f"{number:>4}  {scene.type:<12} {scene.title}")


@app.command()
def edit(
    classroom: ClassroomArgument,
    file: FileArgument,
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Replace a classroom by what `show --json` printed of it, edited; exit code 1 if it changed.

    A module of a course is then published only after `etude course accept-source`.
    """
    with naming(file):
        value = read_object(bytes_of(file))
    revision, document = value.get("revision"), value.get("classroom")
    if not isinstance(revision, str) or not isinstance(document, dict):
        raise typer.BadParameter(f"{file}: revision, classroom", param_hint="FILE")  # noqa: EM102, TRY003 - names of members

    async def act(shelf: Shelf) -> dict[str, Any]:
        stored = await shelf.edit(HOST, classroom, revision, msgspec.json.encode(document))
        return {"classroom_id": classroom, "revision": stored.revision}

    show(_with_shelf(act, data), as_json=as_json)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A document, or a .maic.zip.")],
    *,
    browser: Annotated[
        bool, typer.Option("--browser", help="Run each activity in Chromium, 360 pixels wide.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check a classroom's file, without installation; exit code 1: mistakes, 2: no document."""
    with naming(file):
        found, losses = _read_file(file)
    told: dict[str, Any] = {
        "file": str(file),
        "title": found.stage.name,
        "scenes": len(found.scenes),
        "losses": [{"path": one.path, "code": one.code} for one in losses],
    }
    seen = look_at(_pages(found)) if browser else {}
    if browser:
        told["pages"] = {name: msgspec.to_builtins(one) for name, one in seen.items()}
    if as_json:
        terminal.print_json(told)
    else:
        terminal.print_text(f"{file}\t{found.stage.name}\t{len(found.scenes)}")
        _say_losses(losses)
        for name, one in seen.items():
            _say_page(name, one)
    if not all(one.sound for one in seen.values()):
        raise typer.Exit(exits.REFUSED)


@app.command("import")
def bring(
    file: FileArgument, *, data: DataOption = None, as_json: terminal.JsonOption = False
) -> None:
    """Take in a document of OpenMAIC or a .maic.zip; what was left out or mended is told."""
    archive = file.suffix.lower() == _ZIP
    content = b"" if archive else bytes_of(file)
    if archive and not file.is_file():
        raise MaterialUnknownError(file=str(file))

    async def act(shelf: Shelf) -> tuple[dict[str, Any], tuple[Loss, ...]]:
        async with shelf.upload() as upload:
            if archive:
                await asyncio.to_thread(_copied, file, upload.path)
                brought = await shelf.bring_archive(HOST, upload)
            else:
                brought = await shelf.bring_document(HOST, upload, content)
        made = brought.stored.classroom
        told = {"classroom_id": made.id, "scenes": len(made.scenes), "title": made.stage.name}
        return told, brought.losses

    with naming(file):
        told, losses = _with_shelf(act, data)
    if as_json:
        found = [{"path": one.path, "code": one.code} for one in losses]
        terminal.print_json(told | {"losses": found})
        return
    show(told, as_json=False)
    _say_losses(losses)


@app.command("export")
def take(
    classroom: ClassroomArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="NAME.maic.zip, or NAME.json.")],
    *,
    data: DataOption = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Write a classroom for OpenMAIC; what its format cannot hold is told."""
    archive = out.suffix.lower() == _ZIP
    if not archive and out.suffix.lower() != ".json":
        raise typer.BadParameter(f"{out} (NAME.maic.zip | NAME.json)", param_hint="OUT")  # noqa: EM102, TRY003 - names of files

    async def act(shelf: Shelf) -> tuple[Loss, ...]:
        if archive:
            with terminal.output(str(out)):
                out.unlink(missing_ok=True)
            return await shelf.take_archive(HOST, classroom, out)
        document, losses = await shelf.take_document(HOST, classroom)
        with terminal.output(str(out)):
            out.write_bytes(document)
        return losses

    losses = _with_shelf(act, data)
    if as_json:
        found = [{"path": one.path, "code": one.code} for one in losses]
        terminal.print_json({"file": str(out), "losses": found})
        return
    terminal.print_text(str(out))
    _say_losses(losses)


@app.command()
def delete(classroom: ClassroomArgument, *, data: DataOption = None) -> None:
    """Remove a classroom, unless a course is made of it."""

    async def act(shelf: Shelf) -> None:
        await shelf.remove(HOST, classroom)

    _with_shelf(act, data)


def _with_shelf(act: Callable[[Shelf], Awaitable[Result]], data: Path | None) -> Result:
    settings = settings_for("classroom", data)

    async def whole(here: Local) -> Result:
        return await act(open_shelf(here.database, here.clock, RandomIds(), settings))

    return with_database("classroom", data, whole)


def _read_file(path: Path) -> tuple[Classroom, tuple[Loss, ...]]:
    """Return the classroom of a file: ours as it is, OpenMAIC's as an import would make it."""
    if path.suffix.lower() == _ZIP:
        if not path.is_file():
            raise MaterialUnknownError(file=str(path))
        with Archive.open(path) as archive:
            taken = import_archive(archive, classroom_id=_CHECKED, now=SystemClock().now())
            return taken.classroom, taken.losses
    data = bytes_of(path)
    value = read_object(data)
    if isinstance(value.get("classroom"), dict):  # as `show --json` prints it
        data = msgspec.json.encode(value["classroom"])
    try:
        return read_classroom(data), ()
    except ClassroomInvalidError:
        if value.get("dslVersion") == "0.3.0":
            raise
    taken = import_document(data, classroom_id=_CHECKED, files=frozenset())
    return taken.classroom, taken.losses


def _pages(classroom: Classroom) -> dict[str, str]:
    return {
        f"{number} {scene.title}": scene.content.html or ""
        for number, scene in enumerate(classroom.in_order, 1)
        if isinstance(scene.content, InteractiveContent) and scene.content.html
    }


def _say_losses(losses: tuple[Loss, ...]) -> None:
    for one in losses:
        terminal.print_note(one.said(terminal.locale()))


def _say_page(name: str, seen: PageReport) -> None:
    locale = terminal.locale()
    if seen.sound:
        terminal.print_text(text("cli.classroom.page_sound", locale, page=name))
    for kind, told in (("error", seen.errors), ("request", seen.requests)):
        for one in told:
            line = text(f"cli.classroom.page_{kind}", locale, page=name, what=one)
            terminal.print_text(line)
    if seen.width > WIDTH:
        line = text("cli.classroom.page_wide", locale, page=name, width=seen.width, most=WIDTH)
        terminal.print_text(line)
    if seen.width == 0:
        terminal.print_text(text("cli.classroom.page_silent", locale, page=name))


def _copied(source: Path, target: Path) -> None:
    with source.open("rb") as reading, target.open("xb") as writing:
        while chunk := reading.read(1 << 20):
            writing.write(chunk)
