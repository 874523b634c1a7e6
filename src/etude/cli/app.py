"""The root of the command line: `etude [--locale TAG] COMMAND …`.

Each command is a module, imported only when it is the one named, so that `etude events …` starts
fast and works on the bare edge library, without the server's packages.
"""

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Final, NoReturn

import typer
import typer.main

from etude.cli import exits, terminal, usage
from etude.cli.errors import CommandNeedsExtraError, OutputUnwritableError
from etude.errors import EtudeError
from etude.files import arm_from_environment
from etude.i18n import LOCALES, text


@dataclass(frozen=True)
class Command:
    """A word behind `etude` and where it is built: a `typer.Typer` (a group) or a function."""

    name: str
    target: str

    def load(self) -> typer.Typer | Callable[..., None]:
        """Import the module and return the command's group or function."""
        module, _, attribute = self.target.partition(":")
        loaded: typer.Typer | Callable[..., None] = getattr(
            importlib.import_module(module), attribute
        )
        return loaded


MOST_PARTS: Final = 20
"""Of one error, told on a terminal."""

# In the order of `etude --help`: what a newcomer needs first. Summaries: `cli.command.<name>`.
COMMANDS: Final = (
    Command("demo", "etude.cli.demo:demo"),
    Command("init", "etude.cli.init:init"),
    Command("serve", "etude.cli.serve:serve"),
    Command("web", "etude.cli.serve:web"),
    Command("worker", "etude.cli.serve:worker"),
    Command("gateway", "etude.cli.serve:gateway"),
    Command("doctor", "etude.cli.doctor:doctor"),
    Command("upgrade", "etude.cli.upgrade:upgrade"),
    Command("backup", "etude.cli.backup:backup"),
    Command("events", "etude.cli.events:app"),
    Command("examine", "etude.cli.examine:examine"),
    Command("lesson", "etude.cli.lessons:app"),
    Command("assign", "etude.cli.assign:app"),
    Command("rubric", "etude.cli.rubrics:app"),
    Command("course", "etude.cli.courses:app"),
    Command("classroom", "etude.cli.classroom:app"),
    Command("bundle", "etude.cli.bundle:app"),
    Command("model", "etude.cli.model_calls:app"),
    Command("speech", "etude.cli.speech:app"),
    Command("assess", "etude.cli.assess:app"),
    Command("learner", "etude.cli.people:learner"),
    Command("class", "etude.cli.classes:app"),
    Command("device", "etude.cli.people:device"),
    Command("user", "etude.cli.people:user"),
    Command("token", "etude.cli.people:token"),
    Command("bench", "etude.cli.bench:app"),
)

# Packages of an extra that is not `server`.
_EXTRA_OF: Final = {"asyncpg": "postgres"}


def build(loaded: Sequence[str]) -> typer.Typer:
    """Return the command line with the commands named in `loaded` ready to run.

    The others are there by name and summary only; pass every name for the whole tree.
    """
    app = typer.Typer(
        name="etude", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )
    app.callback(help=text("cli.about", terminal.locale()), no_args_is_help=True)(_root)
    for command in COMMANDS:
        summary = text(f"cli.command.{command.name}", terminal.locale())
        built = command.load() if command.name in loaded else _placeholder
        if isinstance(built, typer.Typer):
            app.add_typer(built, name=command.name, help=summary, no_args_is_help=True)
        else:
            app.command(command.name, short_help=summary)(built)
    return app


def main() -> NoReturn:
    """Run the command that `sys.argv` names and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character still gets the rest
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code (`etude.cli.exits`).

    A typed error becomes one line on stderr, in the user's language; what is not typed is a
    defect and shows its traceback. The language is the command's: whoever calls keeps their own.
    """
    return copy_context().run(_run, arguments)


def _run(arguments: Sequence[str]) -> int:
    terminal.use_locale(terminal.wanted_locale(arguments, os.environ))
    arm_from_environment()
    try:
        return _run_named(arguments)
    except BrokenPipeError:
        with contextlib.suppress(BrokenPipeError, OutputUnwritableError):
            terminal.flush()  # else the interpreter fails, at its end, on what is left
        return exits.REFUSED
    except EtudeError as error:
        return _report(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "etude"}:
            return _defect()
        extra = _EXTRA_OF.get(package, "server")
        return _report(CommandNeedsExtraError(extra=extra, install=install_line(extra)))
    except Exception:  # noqa: BLE001 - the outermost border: anything untyped is a defect to show
        return _defect()


def _run_named(arguments: Sequence[str]) -> int:
    """Run the command; when this returns, what it wrote has left, or nobody reads it any more."""
    named = _named(arguments)
    command = typer.main.get_command(build([named] if named else []))
    try:
        code = usage.run(command, arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else exits.OK
    terminal.flush()
    return code


def install_line(extra: str) -> str:
    """Return the shell line that installs `extra`."""
    return f"pip install 'etude[{extra}]'"


def _named(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is neither a root option nor its value."""
    value_follows = False
    for argument in arguments:
        if not value_follows and not argument.startswith("-"):
            return argument
        value_follows = argument == "--locale"
    return None


def _report(error: EtudeError) -> int:
    """Tell the error, and below it what it gathers: the lines of a file, for one."""
    sys.stderr.write(f"etude: {terminal.explain(error)} [{error.code}]\n")
    for part in error.parts[:MOST_PARTS]:
        sys.stderr.write(f"  {terminal.explain(part)} [{part.code}]\n")
    return exits.exit_code(error)


def _defect() -> int:
    traceback.print_exc()
    terminal.say("cli.defect")
    return exits.INTERNAL


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - the signature that typer calls
    if wanted:
        terminal.print_text(version("etude"))
        raise typer.Exit


def _known_locale(tag: str | None) -> str | None:
    if tag is not None and tag not in LOCALES:
        raise typer.BadParameter(", ".join(LOCALES))
    return tag


def _root(
    *,
    locale: Annotated[
        str | None,
        typer.Option(help="en or zh-CN; else LC_ALL, LC_MESSAGES, LANG.", callback=_known_locale),
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version)
    ] = False,
) -> None:
    """Take the root's options; both have done their work when this runs."""


def _placeholder() -> None:
    """Stand for a command that is not the one named."""
