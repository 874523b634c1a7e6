"""A reader can follow what code and pages refer to: `docs/PAGE.md`, `… §HEADING`, `… NUMBER`."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    file
    for folder in ("src", "tests", "tools", "docs", "changelog")
    for file in sorted((ROOT / folder).rglob("*"))
    if file.suffix in {".html", ".js", ".json", ".md", ".py", ".sql", ".toml", ".yaml"}
    and file != Path(__file__)
] + [*sorted(ROOT.glob("*.md")), ROOT / "pyproject.toml", ROOT / "Makefile"]

PAGE = re.compile(r"\bdocs/[\w/-]+\.md")
CITATION = re.compile(r"`(docs/[\w/-]+\.md) (?:§([^`]+)|(\d+(?:, \d+)*))`")
STANDARD = re.compile(r"(?:RFC \d+|HTML Standard|Base Definitions) §")
STRAY = re.compile(r"§|\.md`? \d")
BARE = re.compile(r"`([\w/-]+\.md)`")
BREAK = re.compile(r"\n[ \t]*(?:# ?)?|\\n *")


@cache
def headings(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [title.replace("`", "") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]


def rules() -> list[str]:
    """Return the numbers of `docs/rules.md`, in its order."""
    titles = headings(ROOT / "docs" / "rules.md")
    return [found[1] for title in titles if (found := re.match(r"(\d+)\. ", title))]


def lost(text: str, *, code: bool) -> Iterator[str]:
    """Yield each reference in `text` that leads nowhere; of `code` also names without a folder."""
    if ".md" not in text and "§" not in text:
        return
    text = BREAK.sub(" ", text)
    pages = {name for name in PAGE.findall(text) if not (ROOT / name).is_file()}
    yield from sorted(pages)
    for found in CITATION.finditer(text):
        page, heading, numbers = found.groups()
        if page in pages:
            continue
        if numbers is None:
            known = heading in headings(ROOT / page)
        else:
            known = page == "docs/rules.md" and set(numbers.split(", ")) <= set(rules())
        if not known:
            yield found[0]
    rest = STANDARD.sub("", CITATION.sub("", text))
    for found in STRAY.finditer(rest):
        yield rest[max(0, found.start() - 30) : found.end() + 10]
    if code:
        yield from (name for name in BARE.findall(rest) if not (ROOT / name).is_file())


def test_every_reference_leads_somewhere() -> None:
    """Pages, headings and rules that are referred to are in this repository."""
    found = [
        f"{file.relative_to(ROOT)}: {reference}"
        for file in SOURCES
        for reference in lost(file.read_text("utf-8"), code=file.suffix in {".py", ".toml"})
    ]
    assert found == []


def test_rules_have_numbers_of_their_own() -> None:
    """No number stands for two rules, and they stand in their order."""
    numbers = [int(number) for number in rules()]
    assert numbers
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "text",
    [
        "`docs/none.md`",
        "see docs/none.md.",
        "`docs/events.md §None`",
        "`docs/events.md\n    §None`",
        "`docs/rules.md 44, 999`",
        "`docs/events.md 44`",
        "`docs/rules.md` 44",
        "(rules.md 44)",
        "`rules.md` 44",
        "`rules.md`",
        "`events.md §Fields`",
        "`docs/events.md` §Fields",
        "the reference §4.7",
    ],
)
def test_what_leads_nowhere_is_found(text: str) -> None:
    """A page, heading or number that is not there, and a form that names no place for certain."""
    assert list(lost(text, code=True))


@pytest.mark.parametrize(
    "text",
    [
        "`docs/events.md`",
        "`docs/events.md §Usual values`",
        "# as in `docs/events.md §Usual\n    # values`",
        "`docs/devices.md §What a device asks`, `docs/rules.md 44`",
        "(`docs/rules.md 13, 49`)",
        "RFC 9110 §15.5.16",
    ],
)
def test_what_leads_somewhere_is_not_found(text: str) -> None:
    """Also where a line ends within it."""
    assert list(lost(text, code=True)) == []
