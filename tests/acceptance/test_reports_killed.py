"""`kill -9` of real workers: every session gets exactly one report of each state."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.testing.installation import Installation, furnish
from etude.testing.samples import sample_lines
from etude.testing.server import ServerProcess

KILLED = -9
PATIENCE_S = 150.0
# Before anything is written; written and not committed; committed and not noted by the runner.
POINTS = ("examiner.examine.made", "examiner.examine.revised", "jobs.run.handled")


@pytest.fixture
def installation(tmp_path: Path, sqlite_copy: Callable[[Path], str]) -> Installation:
    return furnish(tmp_path, sqlite_copy(tmp_path))


@pytest.fixture
def toy(installation: Installation) -> Iterator[httpx2.Client]:
    with (
        ServerProcess(installation.data, database_url=installation.database_url) as server,
        installation.client(server.url, "toy-1") as client,
    ):
        yield client


def worker(installation: Installation, **environment: str) -> ServerProcess:
    made = ServerProcess(
        installation.data,
        command="worker",
        database_url=installation.database_url,
        environment=environment,
    )
    made.start(wait=False)
    return made


def upload(client: httpx2.Client, session_id: str) -> None:
    lines = [
        json.dumps(json.loads(line) | {"session_id": session_id}).encode()
        for line in sample_lines("violin-3min")
    ]
    answer = client.post(
        f"/api/v1/sessions/{session_id}/events",
        content=b"\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert answer.status_code == 200, answer.text


def report(client: httpx2.Client, session_id: str) -> dict[str, Any]:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        answer = client.get(f"/api/v1/sessions/{session_id}/report")
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        assert answer.status_code == 202, answer.text
        time.sleep(0.2)
    raise AssertionError(session_id)


def test_a_worker_that_is_killed_anywhere_loses_and_doubles_nothing(
    installation: Installation, toy: httpx2.Client
) -> None:
    """Each dies at another point; the next takes over when the lease is over, after 30 s."""
    for number, point in enumerate(POINTS):
        upload(toy, f"s{number}")
        assert worker(installation, ETUDE_CRASH_AT=point).wait() == KILLED
    last = worker(installation)
    try:
        reports = [report(toy, f"s{number}") for number in range(len(POINTS))]
        assert [one["revision"] for one in reports] == [1, 1, 1]
        assert len({one["report_id"] for one in reports}) == len(POINTS)
        for number in range(len(POINTS)):
            answer = toy.get(f"/api/v1/sessions/s{number}/report", params={"revision": 2})
            assert answer.status_code == 404
    finally:
        assert last.stop() == 0
