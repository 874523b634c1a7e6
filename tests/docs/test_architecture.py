"""`docs/architecture.md` against the package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "etude"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_every_context_stands_on_a_floor() -> None:
    """The floors name exactly the folders and modules of the package, and the test kit apart."""
    floors = PAGE.split("```")[1]
    named = {
        word
        for line in floors.splitlines()
        for word in re.split(r" {3,}", line)[0].split()
        if word != "|"
    }
    made = {
        path.stem
        for path in PACKAGE.iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }
    assert named == made - {"__init__", "__main__", "testing"}


def test_every_module_of_the_path_exists() -> None:
    """Whoever walks the path of an event finds each module that the page names."""
    modules = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", PAGE)
    assert len(modules) >= 8
    assert [name for name in modules if not (PACKAGE / name).exists()] == []
