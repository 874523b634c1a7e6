"""`docs/people.md` against the code."""

import re
from pathlib import Path

from etude.people.scopes import Scope, allowed_scopes

PAGE = Path(__file__).parents[2] / "docs" / "people.md"


def test_the_table_of_scopes_is_the_codes() -> None:
    """Who may hold which scope is printed as it is enforced."""
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    holders = (
        allowed_scopes("device"),
        allowed_scopes("learner"),
        allowed_scopes("staff", "teacher"),
        allowed_scopes("staff", "operator"),
        allowed_scopes("service"),
    )
    printed = {name: [cell.strip() == "✓" for cell in cells.split("|")] for name, cells in rows}
    assert printed == {scope: [scope in held for held in holders] for scope in Scope}
