"""What the command line says of itself: help and usage errors, in the language of the run.

typer has no catalogues, its words stand in its code. The English catalogue holds them word for word
(`cli.usage.typer`): what typer says is recognised by them and said in the run's language. What is
not recognised, since another version of typer words it differently, is shown as typer has it.
What commands and options say of themselves stands beside them in English, and is found by that in
`etude.i18n.help_texts`; what has no entry there stays in English.
"""

import inspect
import re
import string
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import typer
from typer._click import Command, HelpFormatter  # typer bundles click: no public names
from typer._click.exceptions import ClickException, NoArgsIsHelpError
from typer.core import TyperArgument, TyperGroup, TyperOption

from etude.cli import columns, exits, terminal
from etude.i18n import DEFAULT_LOCALE, catalogue, help_texts, text

_TYPERS: Final = "cli.usage.typer."
_LEAST_WIDTH: Final = 10
"""Columns for what stands beside an option, on however narrow a terminal; typer's own number."""
_PART: Final = "message"
"""The placeholder for a text that typer has put together itself, of further ones of its texts."""


def run(command: Command, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; a usage error is told on stderr.

    Raises:
        BrokenPipeError: nobody reads the answer any more.
        EtudeError: the command's own.
    """
    _dress(command, _help_of("etude"))
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            _dress_all(each, _help_of(name))
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


def paragraphs(help_text: str) -> list[str]:
    """Return the paragraphs of a help text, each on one line, as `help_texts` has them."""
    return [" ".join(part.split()) for part in inspect.cleandoc(help_text).split("\n\n")]


def _help_of(name: str) -> Mapping[str, str]:
    """Return the help of a command and of those below it in the run's language, by its English."""
    tables = help_texts(terminal.locale())
    return {**tables.get("common", {}), **tables.get(name, {})}


def _dress_all(command: Command, words: Mapping[str, str]) -> None:
    """Dress a command and those below it."""
    _dress(command, words)
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _dress_all(each, words)


def _dress(command: Command, words: Mapping[str, str]) -> None:
    """Have a command write its help in the run's language, of which `words` has what is its own."""
    command.context_class = _Context
    for each in command.params:
        if isinstance(each, TyperArgument | TyperOption) and each.help:
            each.help = _in_words(each.help, words)
    if command.help and any(part in words for part in paragraphs(command.help)):
        command.help = _in_words(command.help, words)
        # typer would shorten it in lists at a space, of which Chinese has few
        command.short_help = command.short_help or _first_sentence(command.help)
    if command.options_metavar:
        command.options_metavar = said(command.options_metavar)
    if isinstance(command, TyperGroup):
        command.subcommand_metavar = said(command.subcommand_metavar)


def _in_words(help_text: str, words: Mapping[str, str]) -> str:
    """Return a help text with the paragraphs that `words` has in the run's language."""
    if not words:
        return help_text
    return "\n\n".join(words.get(part, part) for part in paragraphs(help_text))


def _first_sentence(help_text: str) -> str:
    sentence, full_stop, _ = paragraphs(help_text)[0].partition("。")
    return sentence + full_stop


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


def _broken(help_text: str, width: int) -> str:
    """Return a help text with Chinese paragraphs broken into lines of so many columns.

    typer breaks the others itself, and leaves alone what begins with its mark, a backspace.
    """
    if not columns.is_wide(help_text):
        return help_text
    return "\n\n".join(
        "\n".join(("\b", *columns.lines(part, width))) for part in help_text.split("\n\n")
    )


class _Formatter(HelpFormatter):
    """Writes help with typer's own words in the run's language, and Chinese in even lines."""

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
        first = min(max(len(name) for name, _ in rows), col_max) + col_spacing
        width = max(self.width - first - self.indent_increment, _LEAST_WIDTH)
        super().write_dl(
            [(name, _broken(_said_beside(described), width)) for name, described in rows],
            col_max,
            col_spacing,
        )

    def write_text(self, text: str) -> None:
        """Write what a command does."""
        super().write_text(_broken(text, self.width - self.current_indent))


class _Context(typer.Context):
    formatter_class = _Formatter
