"""Every command line that the documentation shows is one that Etude takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from etude.cli.app import COMMANDS, build

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
ASSIGNMENT = re.compile(r"[A-Z_]+=")


def _shown() -> Iterator[tuple[str, str]]:
    for page in [*ROOT.glob("README*.md"), *ROOT.glob("docs/**/*.md")]:
        for block in BLOCK.findall(page.read_text("utf-8")):
            for words in _lines(block.replace("\\\n", " ")):
                while words and ASSIGNMENT.match(words[0]):
                    del words[0]
                if words and words[0] == "etude":
                    yield page.name, shlex.join(words[1:])


def _lines(block: str) -> Iterator[list[str]]:
    """Yield each line's words; a quotation may go over several lines."""
    begun = ""
    for line in block.splitlines():
        begun += line
        try:
            yield shlex.split(begun, comments=True)
        except ValueError:  # the quotation goes on
            begun += "\n"
        else:
            begun = ""
    assert not begun


SHOWN = sorted(set(_shown()))


def test_commands_are_found() -> None:
    """The pages that show commands are read: operating alone shows several."""
    assert len(SHOWN) > 10


@pytest.mark.parametrize(("page", "arguments"), SHOWN)
def test_a_command_of_the_documentation_can_be_given(page: str, arguments: str) -> None:
    """Words, options and their number are the command's own: a reader meets no usage error."""
    command = typer.main.get_command(build([one.name for one in COMMANDS]))
    words = shlex.split(arguments)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, page
        command = command.commands[words.pop(0)]
    assert command.make_context(page, words).params is not None
