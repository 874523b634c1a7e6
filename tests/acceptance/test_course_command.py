"""`etude course` as a person uses it: from a sample to a published course, with real processes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from etude.testing.nursery import Nursery

TOKEN = "t" * 40


@pytest.fixture
def etude(tmp_path: Path, nursery: Nursery) -> Any:
    environment = os.environ | {
        "ETUDE_DATA": str(tmp_path / "data"),
        "ETUDE_COURSEWARE_PUBLISH_TOKEN": TOKEN,
    }

    def call(*words: str, check: int = 0) -> str:
        done = nursery.run(*words, environment=environment, given="a password for tests\n")
        assert done.returncode == check, done.stderr
        return done.stdout if check == 0 else done.stderr

    call("init")
    return call


def test_from_a_sample_to_a_published_course(etude: Any, tmp_path: Path) -> None:
    """A sample is planned, edited, confirmed, made, published; again is no new version."""
    made = json.loads(etude("course", "create", "--sample", "sijie.txt", "--json"))
    course = made["course_id"]
    assert made["status"] == "framework_ready"
    framework = json.loads(etude("course", "framework", course))["framework"]
    framework["courseTitle"] = "四季"
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(framework), "utf-8")
    etude("course", "framework", course, "--put", str(edited))
    assert "COURSE_AUDIO_MISSING" in etude("course", "start", course, check=1)
    done = json.loads(etude("course", "start", course, "--without-audio", "--json"))
    assert [one["status"] for one in done["modules"]] == ["succeeded"] * 4
    first = json.loads(etude("course", "publish", course, "--json"))
    assert (first["version"], first["new"]) == (1, True)
    again = json.loads(etude("course", "publish", course, "--json"))
    assert (again["version"], again["new"]) == (1, False)
    assert "四季" in etude("course", "list")


def test_a_folder_that_is_not_there(etude: Any) -> None:
    """Material that is not there is named, with the exit code of what is not found."""
    assert "MATERIAL_UNKNOWN" in etude("course", "create", "/nowhere/at/all", check=3)
