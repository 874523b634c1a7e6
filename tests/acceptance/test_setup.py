"""A fresh clone sets itself up, with uv and without."""

import os
from pathlib import Path

import pytest

from etude.testing.waiting import run_bounded

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("way", [{}, {"SETUP_WITH_PIP": "1"}], ids=["uv", "pip"])
@pytest.mark.parametrize("target", ["setup-server", "setup-speech"])
def test_a_fresh_clone_sets_itself_up(tmp_path: Path, target: str, way: dict[str, str]) -> None:
    """One target alone brings `.venv/bin/etude`; done again, or with less, it has nothing to do."""
    clone = tmp_path / "clone"
    run_bounded(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for wanted in (target, "setup-server"):
        made = run_bounded(
            ["make", wanted],
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
    engines = "from etude.speech.libraries import engines_installed as e; raise SystemExit(not e())"
    loaded = run_bounded([clone / ".venv/bin/python", "-c", engines])
    assert loaded.returncode == 0 or target == "setup-server"
