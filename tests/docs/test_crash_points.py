"""`docs/crash-points.md` against the code."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def called() -> set[str]:
    names = set()
    for source in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            if name != "crash_point":
                continue
            (argument,) = node.args
            assert isinstance(argument, ast.Constant), f"{source.name}:{node.lineno}: no literal"
            names.add(str(argument.value))
    return names


def test_every_crash_point_has_its_row() -> None:
    """The page lists exactly the crash points that the code has, and what holds after each."""
    page = (ROOT / "docs" / "crash-points.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    assert {name for name, _, _ in rows} == called()
    assert len(rows) == len({name for name, _, _ in rows}), "a name is listed twice"
