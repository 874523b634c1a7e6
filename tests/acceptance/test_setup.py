"""A fresh clone sets itself up, with uv and without."""

import os
from pathlib import Path

import pytest

from etude.testing.waiting import run_bounded

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("way", [{}, {"SETUP_WITH_PIP": "1"}], ids=["uv", "pip"])
def test_a_fresh_clone_sets_itself_up(tmp_path: Path, way: dict[str, str]) -> None:
    """`make setup-server` alone brings `.venv/bin/etude`; done again, it has nothing to do."""
    clone = tmp_path / "clone"
    run_bounded(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for _ in range(2):
        made = run_bounded(
            ["make", "setup-server"],
            limit_s=1800,  # it loads what it needs
            cwd=clone,
            env=environment | way,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
    assert "Setting up" not in made.stderr
    run_bounded([clone / ".venv/bin/etude", "--version"], check=True)
