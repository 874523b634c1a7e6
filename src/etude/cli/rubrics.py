"""`etude rubric`: check the file of a rubric, and list the rubrics at hand.

Exit codes of both: 0 done, 1 a file has mistakes or cannot be read, 3 no such file.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from etude.cli import exits, terminal
from etude.cli.installation import settings_for
from etude.documents import DocumentInvalidError
from etude.errors import EtudeError
from etude.i18n import text
from etude.rubric.library import RubricLibrary, read_rubric, rubric_digest
from etude.rubric.model import Rubric, title_of

app = typer.Typer()


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A rubric's YAML.", metavar="FILE")],
    *,
    as_json: terminal.JsonOption = False,
) -> None:
    """Name every mistake of a rubric with file, line and reason.

    Exit code 1 if there is one: the rubric would not be used.
    """
    try:
        rubric = read_rubric(file)
    except DocumentInvalidError as error:
        _show_mistakes(file, error, as_json=as_json)
        raise typer.Exit(exits.REFUSED) from error
    if as_json:
        terminal.print_json({"file": str(file), "rubric": _shown(rubric), "mistakes": []})
    else:
        counts = {"signals": len(rubric.signals), "dimensions": len(rubric.dimensions)}
        line = text("rubric.sound", terminal.locale(), file=file, rubric=rubric.key, **counts)
        terminal.print_text(line)


@app.command("list")
def list_rubrics(
    *,
    data: Annotated[Path | None, typer.Option(help="Folder of everything (ETUDE_DATA).")] = None,
    as_json: terminal.JsonOption = False,
) -> None:
    """List the rubrics that ship and those in the data folder's `rubrics`.

    Exit code 1 if a file there has mistakes; the others are used.
    """
    library = RubricLibrary.load(settings_for("rubric", data).rubrics)
    shipped = {rubric_digest(rubric) for rubric in RubricLibrary.load().rubrics}
    shown = [_shown(one) | {"shipped": rubric_digest(one) in shipped} for one in library.rubrics]
    if as_json:
        problems = [_problem(one) for one in library.problems]
        terminal.print_json({"rubrics": shown, "problems": problems})
    else:
        _print_list(shown)
        for line in _explained(library.problems):
            terminal.print_note(line)
    if library.problems:
        raise typer.Exit(exits.REFUSED)


def _show_mistakes(file: Path, error: DocumentInvalidError, *, as_json: bool) -> None:
    if as_json:
        mistakes = [_problem(part) for part in error.parts]
        terminal.print_json({"file": str(file), "rubric": None, "mistakes": mistakes})
        return
    for line in _explained([error]):
        terminal.print_text(line)


def _explained(errors: Iterable[EtudeError]) -> Iterable[str]:
    """Yield a line for each mistake of each file."""
    for error in errors:
        for part in error.parts or (error,):
            yield f"{terminal.explain(part)} [{part.code}]"


def _problem(error: EtudeError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.code, "message": terminal.explain(error)}
    told |= {name: error.params[name] for name in ("file", "line", "path") if name in error.params}
    return told | ({"parts": [_problem(part) for part in error.parts]} if error.parts else {})


def _shown(rubric: Rubric) -> dict[str, Any]:
    return {
        "id": rubric.id,
        "version": rubric.version,
        "title": title_of(rubric.locale, rubric.id, terminal.locale()),
        "instruments": rubric.instruments,
        "signals": list(rubric.signals),
        "dimensions": list(rubric.dimensions),
        "digest": rubric_digest(rubric),
    }


def _print_list(shown: Iterable[dict[str, Any]]) -> None:
    for one in shown:
        origin = "rubric.shipped" if one["shipped"] else "rubric.own"
        instruments = ", ".join(one["instruments"]) or "-"
        key = f"{one['id']}@{one['version']}"
        where = text(origin, terminal.locale())
        terminal.print_text(f"{key:<24} {where}  {one['title']} ({instruments})")
