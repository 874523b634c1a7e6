"""What the command line says of itself: help and usage errors, in the language of the run.

typer has no catalogues, its words stand in its code. The English catalogue holds them word for word
(`cli.usage.typer`): what typer says is recognised by them and said in the run's language. What is
not recognised, since another version of typer words it differently, is shown as typer has it.
"""

import re
import string
from collections.abc import Sequence
from functools import cache
from typing import Final

import typer
from typer._click import Command, HelpFormatter  # typer bundles click: no public names
from typer._click.exceptions import ClickException, NoArgsIsHelpError
from typer.core import TyperGroup

from etude.cli import exits, terminal
from etude.i18n import DEFAULT_LOCALE, catalogue, text

_TYPERS: Final = "cli.usage.typer."
_PART: Final = "message"
"""The placeholder for a text that typer has put together itself, of further ones of its texts."""


def run(command: Command, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; a usage error is told on stderr.

    Raises:
        BrokenPipeError: nobody reads the answer any more.
        EtudeError: the command's own.
    """
    _dress(command)
    try:
        ended = command.main(list(arguments), prog_name="etude", standalone_mode=False)
    except ClickException as error:
        _tell(error)
        return error.exit_code
    except typer.Abort:
        terminal.say("cli.usage.aborted")
        return exits.REFUSED
    return ended if isinstance(ended, int) else exits.OK


def said(english: str) -> str:
    """Return what typer says, in the run's language; a text that is not typer's stays as it is."""
    for key, pattern in _patterns():
        if found := pattern.fullmatch(english):
            parts = found.groupdict()
            if _PART in parts:
                parts[_PART] = said(parts[_PART])
            return text(key, terminal.locale(), **parts)
    return english


@cache
def _patterns() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return how each text of typer is recognised; those that fix the most of it come first."""
    fixed: list[tuple[int, str, re.Pattern[str]]] = []
    for key, message in catalogue(DEFAULT_LOCALE).items():
        if key.startswith(_TYPERS):
            pieces = list(string.Formatter().parse(message))
            pattern = "".join(
                re.escape(literal) + (f"(?P<{name}>.+)" if name else "")
                for literal, name, _, _ in pieces
            )
            length = sum(len(literal) for literal, _, _, _ in pieces)
            fixed.append((length, key, re.compile(pattern, re.DOTALL)))
    return [(key, pattern) for _, key, pattern in sorted(fixed, key=lambda one: -one[0])]


def _dress(command: Command) -> None:
    """Have a command and those below it write their help in the run's language."""
    command.context_class = _Context
    if command.options_metavar:
        command.options_metavar = said(command.options_metavar)
    if isinstance(command, TyperGroup):
        command.subcommand_metavar = said(command.subcommand_metavar)
        for each in command.commands.values():
            _dress(each)


def _tell(error: ClickException) -> None:
    """Say on stderr how the command is used, and what is wrong; without arguments, the help."""
    if isinstance(error, NoArgsIsHelpError):
        terminal.print_note(error.format_message())
        return
    context = getattr(error, "ctx", None)  # of usage errors, if they come from a command's line
    if context is not None:
        terminal.print_note(context.get_usage())
        option = context.help_option_names[0]
        terminal.say("cli.usage.hint", command=context.command_path, option=option)
        terminal.print_note("")
    terminal.say("cli.usage.error", message=said(error.format_message()))


def _said_beside(described: str) -> str:
    """Return the text beside an option, and what typer adds in brackets, in the run's language."""
    described = said(described)
    help_text, bracket, added = described.rpartition("[")
    if not added.endswith("]") or (help_text and not help_text.endswith("  ")):
        return described
    return help_text + bracket + "; ".join(map(said, added[:-1].split("; "))) + "]"


class _Formatter(HelpFormatter):
    """Writes help with typer's own words in the run's language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how the command is called."""
        super().write_usage(prog, args, prefix or text("cli.usage.usage", terminal.locale()))

    def write_heading(self, heading: str) -> None:
        """Write the heading of a list."""
        line = text("cli.usage.heading", terminal.locale(), heading=said(heading))
        self.write(f"{'':>{self.current_indent}}{line}\n")

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write arguments, options or commands, with what each is."""
        super().write_dl(
            [(name, _said_beside(described)) for name, described in rows], col_max, col_spacing
        )


class _Context(typer.Context):
    formatter_class = _Formatter
