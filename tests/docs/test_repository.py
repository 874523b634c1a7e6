"""Files of the repository say nothing about the machine they were written on."""

import os
import re
from pathlib import Path

import pytest

from etude.testing.waiting import run_bounded

ROOT = Path(__file__).parents[2]
LIMIT_LINES = 500


def tracked() -> list[Path]:
    listed = run_bounded(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git clone, so there is no list of its files")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_this_machine() -> None:
    """Neither the clone's folder nor the home folder of whoever runs this is in any file."""
    here = [str(ROOT) + "/", str(Path.home()) + "/"]
    private = [place.encode() for place in here if len(place) > len("/app/")]
    naming = [
        str(file.relative_to(ROOT))
        for file in tracked()
        if any(place in file.read_bytes() for place in private)
    ]
    assert naming == []


def test_no_module_holds_more_than_one_noun() -> None:
    """A module of the package has at most 500 lines."""
    long = [
        str(file.relative_to(ROOT))
        for file in tracked()
        if file.suffix == ".py"
        and file.is_relative_to(ROOT / "src")
        and len(file.read_text("utf-8").splitlines()) > LIMIT_LINES
    ]
    assert long == []


def test_every_exception_has_its_reason() -> None:
    """A `noqa` names its rule and says why; a `type: ignore` too."""
    bare = []
    for file in tracked():
        if file.suffix != ".py":
            continue
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            found = re.search(r"#\s*(noqa|type: ignore)(.*)$", line)
            if found and not re.search(r"\s[-#]\s?.*\w{3}", found[2]):
                bare.append(f"{file.relative_to(ROOT)}:{number}")
    assert bare == []


def test_scripts_can_be_run() -> None:
    """`.ci/run` and what the Makefile calls are executable."""
    scripts = [file for file in tracked() if file.parent.name in {".ci", "tools"}]
    held = [file for file in scripts if file.suffix != ".py" and not os.access(file, os.X_OK)]
    assert held == []
