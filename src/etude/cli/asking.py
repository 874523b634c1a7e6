"""What a command asks the person at the terminal, on stderr and in the language of the run."""

from typing import Final

import typer

from etude.cli import terminal
from etude.i18n import text

_YES: Final = {"y", "yes"}
_NO: Final = {"n", "no", ""}


def ask_unseen(key: str) -> str:
    """Ask a question of the catalogue, twice and unseen, until both answers are the same.

    Raises:
        typer.Abort: no answer came.
    """
    while True:
        first = _ask(text(key, terminal.locale()), unseen=True)
        if first == _ask(text("cli.usage.repeat", terminal.locale()), unseen=True):
            return first
        terminal.say("cli.usage.differs")


def require_yes(key: str, /, **params: object) -> None:
    """Ask a question of the catalogue, and go on only after a yes.

    Raises:
        typer.Abort: the answer is no, or none came.
    """
    question = text(key, terminal.locale(), **params)
    while True:
        answer = _ask(text("cli.usage.yes_or_no", terminal.locale(), question=question), default="")
        if answer.lower().strip() in _YES:
            return
        if answer.lower().strip() in _NO:
            raise typer.Abort
        terminal.say("cli.usage.neither")


def _ask(question: str, *, default: str | None = None, unseen: bool = False) -> str:
    """Return the answer; without a default, one that is not empty."""
    suffix = text("cli.usage.asked", terminal.locale())
    answer: str = typer.prompt(
        question,
        default=default,
        hide_input=unseen,
        prompt_suffix=suffix,
        show_default=False,
        err=True,
    )
    return answer
