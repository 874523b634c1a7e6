"""A fresh clone sets itself up, with uv and without."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("way", [{}, {"SETUP_WITH_PIP": "1"}], ids=["uv", "pip"])
def test_a_fresh_clone_sets_itself_up(tmp_path: Path, way: dict[str, str]) -> None:
    """`make setup-server` alone brings `.venv/bin/etude`; done again, it has nothing to do."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)  # noqa: S603, S607 - git as found
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for _ in range(2):
        made = subprocess.run(
            ["make", "setup-server"],  # noqa: S607 - make as found
            cwd=clone,
            env=environment | way,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
    assert "Setting up" not in made.stderr
    subprocess.run([clone / ".venv/bin/etude", "--version"], check=True)  # noqa: S603 - just installed
