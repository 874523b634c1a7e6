"""A learner's classroom over real HTTP, while real workers are killed: one classroom, whole."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.testing.installation import Installation, furnish
from etude.testing.leases import pass_leases
from etude.testing.server import ServerProcess

KILLED = -9
PATIENCE_S = 150.0
TEXT = (
    "cat = a small animal that says meow\ndog = an animal that barks\nhen = a bird that lays eggs"
)
# Before the outline is stored; files and folder there, document not; placed and not noted.
POINTS = (
    "authoring.classroom.outlined", "classroom.draft.placed", "authoring.classroom.placed",
)  # fmt: skip


@pytest.fixture
def installation(tmp_path: Path, sqlite_copy: Callable[[Path], str]) -> Installation:
    return furnish(tmp_path, sqlite_copy(tmp_path))


def worker(installation: Installation, **environment: str) -> ServerProcess:
    made = ServerProcess(
        installation.data,
        command="worker",
        database_url=installation.database_url,
        environment=environment,
    )
    made.start(wait=False)
    return made


def ended(client: httpx2.Client, address: str) -> dict[str, Any]:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        job: dict[str, Any] = client.get(address).json()
        if job["done"]:
            return job
        time.sleep(0.2)
    raise AssertionError(address)


def test_killed_workers_make_one_classroom(installation: Installation) -> None:
    """Each worker dies at another point; the last one ends the job, and nothing else is left."""
    with (
        ServerProcess(installation.data, database_url=installation.database_url) as server,
        installation.client(server.url, "anna") as anna,
    ):
        asked = anna.post("/api/generate-classroom", json={"requirement": TEXT})
        assert asked.status_code == 202, asked.text
        address = f"/api/generate-classroom/{asked.json()['jobId']}"
        for point in POINTS:
            assert worker(installation, ETUDE_CRASH_AT=point).wait() == KILLED
            assert anna.get(address).json()["done"] is False
            pass_leases(installation.data)
        last = worker(installation)
        try:
            job = ended(anna, address)
            assert (job["status"], job["progress"]) == ("succeeded", 100)
            room = f"/api/classrooms/{job['result']['classroomId']}"
            shown = anna.get(room)
            assert len(shown.json()["scenes"]) == job["result"]["scenesCount"]
            assert len(anna.get("/api/classrooms").json()["items"]) == 1
            stored = {
                one.name
                for one in (installation.data / "classrooms").iterdir()
                if not one.name.startswith(".draft-")  # swept a day later
            }
            assert stored == {room.rpartition("/")[2], room.rpartition("/")[2] + ".json"}
            out = anna.get(f"{room}/export")
            brought = anna.post(
                "/api/classrooms/import",
                content=out.content,
                headers={"Content-Type": "application/zip"},
            )
            assert brought.status_code == 201, brought.text
        finally:
            assert last.stop() == 0
