"""`etude classroom` as a person uses it: one lesson of a text, edited, taken away, brought back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from etude.testing.nursery import Nursery

LESSON = """## Making tea

The kettle makes the water hot. Tea leaves give the water their colour.

### Words
- **kettle**: a pot for boiling water. Example: The kettle sings.
- **leaf**: a flat green part of a plant. Example: The leaf is dry.
- **cup**: a small bowl to drink from. Example: The cup is warm.

### Steps
1. Boil the water.
2. Warm the pot.
3. Add the tea.
4. Wait and pour.
"""


@pytest.fixture
def etude(tmp_path: Path, nursery: Nursery) -> Any:
    environment = os.environ | {"ETUDE_DATA": str(tmp_path / "data")}

    def call(*words: str, check: int = 0) -> str:
        done = nursery.run(*words, environment=environment, given="a password for tests\n")
        assert done.returncode == check, done.stderr
        return done.stdout if check == 0 else done.stdout + done.stderr

    call("init")
    return call


def test_one_lesson_of_a_text(etude: Any, tmp_path: Path) -> None:
    """A text is outlined, confirmed, made, edited by hand, exported, imported again, removed."""
    text = tmp_path / "tea.md"
    text.write_text(LESSON, "utf-8")
    waiting = json.loads(etude("classroom", "generate", str(text), "--json"))
    assert (waiting["status"], waiting["progress"]) == ("waiting", 30)
    job = waiting["job_id"]
    told = json.loads(etude("classroom", "outline", job))
    told["outline"]["title"] = "Tea for two"
    told["outline"]["scenes"].pop()
    edited = tmp_path / "outline.json"
    edited.write_text(json.dumps(told), "utf-8")
    etude("classroom", "outline", job, "--put", str(edited))
    assert "LESSON_OUTLINE_CHANGED" in etude(
        "classroom", "outline", job, "--put", str(edited), check=1
    )
    made = json.loads(etude("classroom", "confirm", job, "--json"))
    assert made["status"] == "succeeded"
    room = made["classroom_id"]
    assert "Tea for two" in etude("classroom", "list")
    shown = json.loads(etude("classroom", "show", room, "--json"))
    assert len(shown["classroom"]["scenes"]) == len(told["outline"]["scenes"])
    shown["classroom"]["scenes"][0]["title"] = "Welcome"
    document = tmp_path / "room.json"
    document.write_text(json.dumps(shown), "utf-8")
    etude("classroom", "edit", room, str(document))
    assert "CLASSROOM_CHANGED" in etude("classroom", "edit", room, str(document), check=1)
    assert "Welcome" in etude("classroom", "show", room)
    out = tmp_path / "tea.maic.zip"
    etude("classroom", "export", room, str(out))
    again = json.loads(etude("classroom", "import", str(out), "--json"))
    assert (again["title"], again["losses"]) == ("Tea for two", [])
    etude("classroom", "delete", room)
    assert "CLASSROOM_UNKNOWN" in etude("classroom", "show", room, check=3)
    assert len(json.loads(etude("classroom", "list", "--json"))) == 1
    assert json.loads(etude("classroom", "jobs", "--json")) == []


@pytest.mark.usefixtures("browser")
def test_a_file_is_checked(etude: Any, tmp_path: Path) -> None:
    """`check` names what is wrong with a document, and runs its activities in Chromium."""
    text = tmp_path / "tea.md"
    text.write_text(LESSON, "utf-8")
    made = json.loads(etude("classroom", "generate", str(text), "--task", "--yes", "--json"))
    out = tmp_path / "tea.json"
    shown = json.loads(etude("classroom", "show", made["classroom_id"], "--json"))
    out.write_text(json.dumps(shown), "utf-8")
    assert "tea" in etude("classroom", "check", str(out))
    assert etude("classroom", "check", str(tmp_path / "nothing.json"), check=3)
    seen = json.loads(etude("classroom", "check", str(out), "--browser", "--json"))
    assert [one["width"] for one in seen["pages"].values()] == [360]
    activity = next(one for one in shown["classroom"]["scenes"] if one["type"] == "interactive")
    page = "<body><div style='width:700px'>.</div><script>fetch('https://example.org')</script>"
    activity["content"]["html"] = page
    out.write_text(json.dumps(shown), "utf-8")
    told = etude("classroom", "check", str(out), "--browser", check=1)
    assert "example.org" in told
    assert "700" in told or "708" in told
    shown["classroom"]["scenes"][0]["type"] = "quiz"
    out.write_text(json.dumps(shown), "utf-8")
    assert "scenes[0]" in etude("classroom", "check", str(out), check=1)
