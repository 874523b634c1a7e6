"""Links between documents lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog/*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|src=\"([^\"]+)\"|href=\"([^\"]+)\"")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository, and a heading in it where it says so."""
    broken = []
    for found in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        target = next(part for part in found if part)
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    """`docs/README.md` links to every page of docs, directly or through a folder's own index."""
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    reached = {ROOT / "docs" / "README.md"}
    for index in (ROOT / "docs" / "README.md", ROOT / "docs" / "decisions" / "README.md"):
        for found in LINK.findall(index.read_text("utf-8")):
            reached.add((index.parent / found[0].partition("#")[0]).resolve())
    assert sorted(str(page.relative_to(ROOT)) for page in pages - reached) == []
