"""`etude bundle`: check a bundle, show what is in it, compare two. Works on files, needs no server.

Exit codes: 0 sound or equal, 1 refused or different, 3 no such file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from etude.cli import exits, terminal
from etude.courseware.bundle import Bundle
from etude.courseware.bundle_errors import BundleFileUnknownError, BundleFileUnreadableError
from etude.courseware.checking import check_bundle, classroom_of
from etude.courseware.manifest import CLASSROOM
from etude.errors import EtudeError
from etude.i18n import text

app = typer.Typer()

File = Annotated[Path, typer.Argument(help="A bundle (ZIP).", metavar="FILE")]


@app.command()
def verify(
    file: File,
    *,
    courseware: Annotated[
        str | None, typer.Option(help="Courseware that it must be of.", metavar="ID")
    ] = None,
    content_hash: Annotated[
        str | None, typer.Option("--hash", help="Content hash that it must have (sha256:…).")
    ] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """Check every byte, the content hash, and that nothing is missing."""
    try:
        with _opened(file) as bundle:
            check_bundle(bundle, courseware, content_hash)
            manifest = bundle.manifest
    except (BundleFileUnknownError, BundleFileUnreadableError):
        raise
    except EtudeError as error:
        _show_refusal(file, error, as_json=as_json)
        raise typer.Exit(exits.REFUSED) from error
    if as_json:
        told = {"file": str(file), "sound": True, "content_hash": manifest.content_hash}
        terminal.print_json({**told, "courseware_id": manifest.courseware_id, "mistakes": []})
    else:
        names = {"courseware": manifest.courseware_id, "hash": manifest.content_hash}
        terminal.print_text(text("bundle.sound", terminal.locale(), file=file, **names))


@app.command()
def show(file: File, *, as_json: terminal.JsonOption = False) -> None:
    """Show the manifest, the scenes and the files of a bundle; checks only that it can be read."""
    with _opened(file) as bundle:
        manifest, classroom = bundle.manifest, classroom_of(bundle)
        size = bundle.size
    scenes = [{"type": scene.type, "title": scene.title} for scene in classroom.in_order]
    if as_json:
        shown = msgspec.to_builtins(manifest)
        terminal.print_json({"file": str(file), "size": size, "manifest": shown, "scenes": scenes})
        return
    terminal.print_text(f"{manifest.title}  {manifest.courseware_id}  {manifest.content_hash}")
    for number, scene in enumerate(scenes, 1):
        terminal.print_text(f"{number:>4}  {scene['type']:<12} {scene['title']}")
    for row in manifest.files:
        terminal.print_text(f"{row.size:>12}  {row.path}")


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="A bundle.", metavar="FILE")],
    second: Annotated[Path, typer.Argument(help="Another.", metavar="OTHER")],
    *,
    as_json: terminal.JsonOption = False,
) -> None:
    """Say what two bundles differ in: manifest, scenes, files. Exit code 1 if in anything."""
    with _opened(first) as one, _opened(second) as other:
        differences = list(_differences(one, other))
    if as_json:
        terminal.print_json({"equal": not differences, "differences": differences})
    else:
        for each in differences:
            terminal.print_text(f"{each['change']} {each['what']} {each['name']}")
    if differences:
        raise typer.Exit(exits.REFUSED)


def _opened(file: Path) -> Bundle:
    try:
        return Bundle.open(file)
    except FileNotFoundError as error:
        raise BundleFileUnknownError(file=str(file)) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BundleFileUnreadableError(file=str(file), reason=reason) from error


def _differences(one: Bundle, other: Bundle) -> Iterator[dict[str, str]]:
    yield from _compared("manifest", _facts(one), _facts(other))
    yield from _compared("scene", _scenes(one), _scenes(other))
    yield from _compared("file", _files(one), _files(other))


def _facts(bundle: Bundle) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(bundle.manifest)
    return {name: value for name, value in facts.items() if name != "files"}


def _scenes(bundle: Bundle) -> dict[str, Any]:
    return {scene.id: scene for scene in classroom_of(bundle).scenes}


def _files(bundle: Bundle) -> dict[str, Any]:
    return {row.path: row.sha256 for row in bundle.manifest.files if row.path != CLASSROOM}


def _compared(what: str, one: dict[str, Any], other: dict[str, Any]) -> Iterator[dict[str, str]]:
    for name in sorted(one.keys() | other.keys()):
        if name not in other:
            change = "-"
        elif name not in one:
            change = "+"
        elif one[name] != other[name]:
            change = "~"
        else:
            continue
        yield {"what": what, "name": name, "change": change}


def _show_refusal(file: Path, error: EtudeError, *, as_json: bool) -> None:
    problems = [_problem(one) for one in (error, *error.parts)]
    if as_json:
        terminal.print_json({"file": str(file), "sound": False, "mistakes": problems})
        return
    for one in problems:
        terminal.print_text(f"{one['message']} [{one['code']}]")


def _problem(error: EtudeError) -> dict[str, Any]:
    return {"code": error.code, "message": terminal.explain(error), **error.params}
