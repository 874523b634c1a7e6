"""The two READMEs keep their promises to a newcomer."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]


@pytest.mark.parametrize("readme", READMES, ids=lambda page: page.name)
def test_there_are_exactly_two_commands(readme: Path) -> None:
    """The blocks to type hold `make demo` and `make test`, in this order, and nothing else."""
    blocks = re.findall(r"```\w*\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)
    typed = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    assert [line for line in typed if line] == ["make demo", "make test"]


@pytest.mark.parametrize("readme", READMES, ids=lambda page: page.name)
def test_there_is_a_picture(readme: Path) -> None:
    """A newcomer sees what it is: an SVG of the repository's own."""
    (picture,) = re.findall(r"!\[[^\]]+\]\((docs/images/[^)]+\.svg)\)", readme.read_text("utf-8"))
    assert (ROOT / picture).read_text("utf-8").startswith("<svg")


def test_both_languages_link_to_each_other() -> None:
    """A reader of either finds the other."""
    english, chinese = (page.read_text("utf-8") for page in READMES)
    assert "(README.zh-CN.md)" in english
    assert "(README.md)" in chinese


def test_make_knows_the_commands() -> None:
    """What the READMEs and `.ci/run` call, the Makefile has."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = set(re.findall(r"^make (\S+)", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE))
    assert called == {"lint", "test"}
    promised = {"demo", "test", "lint", "serve", "bench", "soak", "schemas", "lock", "clean"}
    assert promised <= targets
