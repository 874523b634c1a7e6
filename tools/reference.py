"""Write the pages that come from code: `python tools/reference.py [--check]`.

`--check` writes nothing, names what is stale and exits 1; a docs test runs it.
"""  # noqa: INP001 - a script beside the package

import contextlib
import importlib
import inspect
import io
import os
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import etude
from etude.classroom.schema import classroom_schema
from etude.cli.app import COMMANDS, build
from etude.cli.exits import exit_code
from etude.errors import EtudeError
from etude.events.schema import asyncapi, event_schema, render
from etude.i18n import catalogue
from etude.rubric.schema import rubric_schema
from etude.web import openapi, routes
from etude.web.app import ROUTE_HANDLERS

ROOT = Path(__file__).parent.parent

ERRORS_HEAD = """# Error codes

Every error that reaches a person has one of these codes, which never changes its meaning. Over
HTTP it is `code` in an `application/problem+json` document (RFC 9457) with the status below; at
the command line it stands in brackets behind the message, and the process ends with the exit code
below. Messages are in the reader's language; here the English ones, their parameters in braces.

This page is written by `make schemas`.

| code | status | exit | meaning | message |
|---|---|---|---|---|
"""

LINES_HEAD = """
## Codes of single lines

A line of an upload is refused by itself; its neighbours are stored. `errors` of the answer and
`etude events lint` name it by number, with one of these codes.

| code | message |
|---|---|
"""

CLI_HEAD = """# The command line

Data goes to stdout and nothing else does; messages and progress go to stderr, in the language of
`--locale`, else of `LC_ALL`, `LC_MESSAGES` or `LANG`. Each command takes `--json`.

| exit code | when |
|---|---|
| 0 | done |
| 1 | refused (401, 403, 409, 413, 415, 422), or a check found something |
| 2 | wrong arguments or settings |
| 3 | what was named does not exist, or no longer |
| 4 | something needed is away, full, busy or not installed |
| 70 | a defect of Etude; the traceback is on stderr |
| 130 | interrupted from the keyboard |

`docs/errors.md` lists each error with its exit code. This page is written by `make schemas`.
"""


def error_classes() -> list[type[EtudeError]]:
    """Return every error class of the package that has a code of its own, by code."""
    for module in pkgutil.walk_packages(etude.__path__, "etude."):
        if ".migrations" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    own: dict[str, type[EtudeError]] = {}
    waiting: list[type[EtudeError]] = [EtudeError]
    while waiting:
        one = waiting.pop(0)
        waiting += one.__subclasses__()
        if one.__module__.startswith("etude."):
            own.setdefault(one.code, one)
    return [own[code] for code in sorted(own)]


def cell(text: str) -> str:
    """Return `text` on one line, fit for a table."""
    return " ".join(text.split()).replace("|", "\\|")


def errors_page() -> str:
    """Return `docs/errors.md`."""
    messages = catalogue("en")
    classes = [one for one in error_classes() if not one.code.islower()]
    rows = []
    for one in classes:
        meaning = cell((inspect.getdoc(one) or "").split("\n\n")[0])
        if one is EtudeError:
            meaning = "A defect of Etude."
        message = cell(messages[f"error.{one.code}"])
        exit_ = exit_code(one())
        rows.append(f"| `{one.code}` | {one.status} | {exit_} | {meaning} | {message} |")
    lines = [
        f"| `{key.removeprefix('error.')}` | {cell(message)} |"
        for key, message in sorted(messages.items())
        if key.startswith("error.") and key.removeprefix("error.").islower()
    ]
    return ERRORS_HEAD + "\n".join(rows) + "\n" + LINES_HEAD + "\n".join(lines) + "\n"


def commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 - typer keeps its command classes private
    """Yield the path of `group` and of every command below it."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def cli_page() -> str:
    """Return `docs/cli.md`."""
    root = typer.main.get_command(build([command.name for command in COMMANDS]))
    parts = [CLI_HEAD]
    for path in commands(root, ()):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            root.main([*path, "--help"], prog_name="etude")
        title = " ".join(("etude", *path))
        text = "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())
        parts.append(f"\n## `{title}`\n\n```text\n{text}\n```\n")
    return "".join(parts)


def routes_page() -> str:
    """Return `docs/routes.md`."""
    return routes.page(ROUTE_HANDLERS)


def openapi_page() -> str:
    """Return `docs/schemas/openapi.json`."""
    return openapi.encode(openapi.document(ROUTE_HANDLERS)).decode()


PAGES = {
    "docs/errors.md": errors_page,
    "docs/cli.md": cli_page,
    "docs/routes.md": routes_page,
    "docs/schemas/openapi.json": openapi_page,
    "docs/schemas/event.schema.json": lambda: render(event_schema()),
    "docs/schemas/rubric.schema.json": lambda: render(rubric_schema()),
    "docs/schemas/classroom.schema.json": lambda: render(classroom_schema()),
    "docs/schemas/asyncapi.json": lambda: render(asyncapi()),
}


def main() -> int:
    """Write or check every page; return the exit code."""
    os.environ.update(COLUMNS="100", NO_COLOR="1", TERM="dumb")
    stale = []
    for name, page in PAGES.items():
        path, made = ROOT / name, page()
        if path.exists() and path.read_text("utf-8") == made:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(made, "utf-8")
    for name in stale:
        verb = "stale, run `make schemas`" if "--check" in sys.argv else "written"
        sys.stdout.write(f"{name}: {verb}\n")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
