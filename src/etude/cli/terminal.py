"""What every command shares: the language, JSON on stdout, everything else on stderr.

Nothing but data goes to stdout (`docs/cli.md`), so that a command can stand in a pipe; what is said
to the person at the terminal goes to stderr in their language.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Annotated, Final

import msgspec
import typer

from etude.cli.errors import OutputUnwritableError
from etude.errors import EtudeError
from etude.i18n import DEFAULT_LOCALE, LOCALES, text

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_locale: ContextVar[str] = ContextVar("locale", default=DEFAULT_LOCALE)

STDOUT: Final = "stdout"
LOCALE_VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")


def locale() -> str:
    """Return the language of this run, `en` or `zh-CN`."""
    return _locale.get()


def use_locale(tag: str) -> None:
    """Speak `tag` (one of `LOCALES`) from here on."""
    _locale.set(tag)


def wanted_locale(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the language that `--locale` names, else the environment, else English.

    Read before the arguments are parsed, so that help and usage errors are in it too. The first
    variable that is set decides, as POSIX has it (Base Definitions §8.2).
    """
    given = list(arguments)
    for place, argument in enumerate(given):
        if argument == "--locale" and place + 1 < len(given):
            return given[place + 1] if given[place + 1] in LOCALES else DEFAULT_LOCALE
        if argument.startswith("--locale="):
            tag = argument.partition("=")[2]
            return tag if tag in LOCALES else DEFAULT_LOCALE
        if not argument.startswith("-"):
            break
    chosen = next((environment[name] for name in LOCALE_VARIABLES if environment.get(name)), "")
    return "zh-CN" if chosen.lower().startswith("zh") else DEFAULT_LOCALE


def print_json(value: object) -> None:
    """Write `value` to stdout as one indented JSON document, always in UTF-8 (RFC 8259 §8.1)."""
    encoded = msgspec.json.encode(value)
    flush()
    print_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def print_bytes(data: bytes) -> None:
    """Write a part of the answer to stdout as it is; after `print_text`, `flush` first."""
    with output():
        sys.stdout.buffer.write(data)


def print_text(line: str) -> None:
    """Write one line of the command's answer to stdout."""
    with output():
        sys.stdout.write(line + "\n")


@contextlib.contextmanager
def output(target: str = STDOUT) -> Iterator[None]:
    """Say `OUTPUT_UNWRITABLE` of what is written in the block; a reader who left is no fault.

    Args:
        target: where the block writes to, for the message.
    """
    try:
        yield
    except OSError as error:
        if target == STDOUT:
            _abandon_stdout()
        if isinstance(error, BrokenPipeError):  # `| head`: the root ends quietly
            raise
        reason = error.strerror or type(error).__name__
        raise OutputUnwritableError(target=target, reason=reason) from error


def _abandon_stdout() -> None:
    """Drop what stdout cannot take: the interpreter would fail on it again at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush() -> None:
    """Write what is left for stdout, while a failure can still be told."""
    with output():
        sys.stdout.flush()


def say(key: str, /, **params: object) -> None:
    """Tell the person at the terminal `key` of the catalogue, on stderr."""
    print_note(text(key, locale(), **params))


def print_note(line: str) -> None:
    """Write one line for the person at the terminal, on stderr."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def explain(error: EtudeError) -> str:
    """Return the error's message in this run's language."""
    try:
        return text(f"error.{error.code}", locale(), **error.params)
    except KeyError:  # a plug-in's error without a message must not hide the error itself
        return str(error)


def require_known(value: str, known: Iterable[str], option: str) -> None:
    """Refuse a value of an option that is none of those there are, and name these."""
    names = tuple(known)
    if value not in names:
        said = f"{value} ({' | '.join(names)})"
        raise typer.BadParameter(said, param_hint=option)
