"""`docs/dependencies.md` against `pyproject.toml` and the locks."""

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from etude.testing.waiting import run_bounded

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
ROW = re.compile(r"^\| ([a-z0-9-]+) \|.*\| (\d[^ |]*)(?: \((\d{4}-\d\d-\d\d)\))? \|$", re.MULTILINE)
UV = shutil.which("uv") or (str(found) if (found := ROOT / ".venv/bin/uv").exists() else None)


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text("utf-8"))


def section(title: str) -> dict[str, tuple[str, str]]:
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    body = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return {name: (version, day) for name, version, day in ROW.findall(body)}


def named(requirements: list[str]) -> set[str]:
    return {found[0].lower() for one in requirements if (found := NAME.match(one))}


def test_every_direct_dependency_has_its_row() -> None:
    """Each table lists exactly what the same part of `pyproject.toml` names."""
    project = read("pyproject.toml")
    extras = project["project"]["optional-dependencies"]
    wanted = {
        "The edge library": project["project"]["dependencies"],
        **{f"`etude[{name}]`": requirements for name, requirements in extras.items()},
        "For development only": project["dependency-groups"]["dev"],
        "For building only": [*project["build-system"]["requires"], "uv"],
    }
    assert {title: set(section(title)) for title in wanted} == {
        title: named(requirements) for title, requirements in wanted.items()
    }


def test_every_row_has_the_locked_release() -> None:
    """Version and day of each row are those of `uv.lock`."""
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    locked = {}
    for package in read("uv.lock")["package"]:
        files = [package.get("sdist", {}), *package.get("wheels", [])]
        day = next((str(f["upload-time"])[:10] for f in files if "upload-time" in f), "")
        locked[package["name"]] = (package["version"], day)
    rows = {name: (version, day) for name, version, day in ROW.findall(page) if name in locked}
    assert rows == {name: locked[name] for name in rows}


def test_the_lock_knows_every_requirement() -> None:
    """`uv.lock` was resolved from the requirements that `pyproject.toml` has now."""
    project = read("pyproject.toml")
    (etude,) = (one for one in read("uv.lock")["package"] if one["name"] == "etude")
    extras = project["project"]["optional-dependencies"].values()
    wanted = named(project["project"]["dependencies"]) | named([r for e in extras for r in e])
    locked = etude["metadata"]
    assert {one["name"] for one in locked["requires-dist"]} == wanted
    assert {one["name"] for one in locked["requires-dev"]["dev"]} == named(
        project["dependency-groups"]["dev"]
    )


def test_the_lock_names_the_public_index_only() -> None:
    """No address of a private registry is in a lock."""
    hosts = set()
    for name in ("uv.lock", "requirements.lock", "requirements-dev.lock"):
        hosts |= set(re.findall(r"https?://([^/\"\s]+)", (ROOT / name).read_text("utf-8")))
    assert hosts <= {"pypi.org", "files.pythonhosted.org"}


@pytest.mark.skipif(UV is None, reason="needs uv, which this machine does not have")
@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("requirements.lock", ["--extra", "server", "--no-dev"]),
        ("requirements-dev.lock", ["--all-extras"]),
    ],
)
def test_the_exports_are_current(name: str, chosen: list[str]) -> None:
    """`make lock` would change neither export for an installation without uv."""
    assert UV is not None
    plain = ["--frozen", "--no-emit-project", "--no-header", "--no-annotate", "--offline"]
    made = run_bounded(
        [UV, "export", "--quiet", *plain, "--format", "requirements.txt", *chosen],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == (ROOT / name).read_text("utf-8")
