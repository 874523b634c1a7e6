"""Pages that are written from code say what the code says."""

import sys
from pathlib import Path

from etude.testing.waiting import run_bounded

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_current() -> None:
    """`make schemas` would change no page."""
    made = run_bounded(
        [sys.executable, str(ROOT / "tools" / "reference.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stdout) == (0, ""), made.stdout + made.stderr
