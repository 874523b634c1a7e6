"""A disk that is full (`RLIMIT_FSIZE`): a clear error, nothing lost, and on it goes afterwards."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from os import urandom
from pathlib import Path

import httpx2
import pytest

from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.nursery import Nursery
from etude.testing.school import body, event

NDJSON = {"Content-Type": "application/x-ndjson"}
WAV = {"Content-Type": "audio/wav"}


@pytest.fixture
def alone(
    nursery: Nursery, tmp_path: Path, sqlite_copy: Callable[[Path], str]
) -> Iterator[KillableServer]:
    server = KillableServer(nursery, furnish(tmp_path, sqlite_copy(tmp_path)))
    server.start()
    yield server
    server.kill()


@contextmanager
def no_file_grows_beyond(size: int, pid: int) -> Iterator[None]:
    """The system refuses the process every write behind `size` bytes of a file."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # killed meanwhile
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


def send(client: httpx2.Client, session_id: str, first: int, count: int) -> httpx2.Response:
    content = body(*(event(session_id, number) for number in range(first, first + count)))
    return client.post(f"/api/v1/sessions/{session_id}/events", content=content, headers=NDJSON)


def ids(client: httpx2.Client, session_id: str) -> list[str]:
    answer = client.get(f"/api/v1/sessions/{session_id}/events")
    return [line[14:20].decode() for line in answer.content.splitlines()]


def expected(count: int) -> list[str]:
    return [f"e{number:05}" for number in range(1, count + 1)]


def test_uploads_on_a_full_disk_are_refused_and_nothing_is_lost(
    alone: KillableServer, session_id: str
) -> None:
    """503 `DISK_FULL`; what was acknowledged is there and readable; with room it is taken again."""
    wal = alone.installation.data / "etude.db-wal"
    with alone.client("toy-1") as client:
        assert send(client, session_id, 1, 50).status_code == 200
        acknowledged = 50
        with no_file_grows_beyond(wal.stat().st_size + 60_000, alone.pid):
            refused = None
            for _ in range(200):
                answer = send(client, session_id, acknowledged + 1, 20)
                if answer.status_code != 200:
                    refused = answer
                    break
                acknowledged += 20
            assert refused is not None
            assert acknowledged > 50
            assert (refused.status_code, refused.json()["code"]) == (503, "DISK_FULL")
            assert refused.headers["content-type"] == "application/problem+json"
            assert ids(client, session_id) == expected(acknowledged)
            shown = client.get(f"/api/v1/sessions/{session_id}").json()
            assert (shown["events"], shown["watermark"]) == (acknowledged, acknowledged)
            assert client.get("/health").status_code == 200
            again = send(client, session_id, acknowledged + 1, 20)
            assert (again.status_code, again.json()["code"]) == (503, "DISK_FULL")
        answer = send(client, session_id, acknowledged + 1, 20)
        assert (answer.status_code, answer.json()["duplicates_skipped"]) == (200, 0)
        assert ids(client, session_id) == expected(acknowledged + 20)
        assert client.get("/ready").status_code == 200


def test_a_kill_on_a_full_disk_loses_nothing_acknowledged(
    alone: KillableServer, session_id: str
) -> None:
    """The half-written transaction is not there after a restart; everything before it is."""
    wal = alone.installation.data / "etude.db-wal"
    with alone.client("toy-1") as client:
        assert send(client, session_id, 1, 50).status_code == 200
        with no_file_grows_beyond(wal.stat().st_size + 8_000, alone.pid):
            assert send(client, session_id, 51, 500).status_code == 503
            alone.kill()
    alone.start()
    with alone.client("toy-1") as client:
        assert ids(client, session_id) == expected(50)
        assert send(client, session_id, 51, 500).json()["duplicates_skipped"] == 0
        assert ids(client, session_id) == expected(550)


def test_a_recording_on_a_full_disk_is_refused_and_leaves_nothing(
    alone: KillableServer, session_id: str
) -> None:
    """503 `DISK_FULL`, no part of it stays; with room the same request is taken."""
    data = urandom(3_000_000)
    path = f"/api/v1/sessions/{session_id}/media/{sha256(data).hexdigest()}"
    with alone.client("toy-1") as client:
        assert send(client, session_id, 1, 1).status_code == 200
        with no_file_grows_beyond(2_000_000, alone.pid):
            answer = client.put(path, content=data, headers=WAV)
            assert (answer.status_code, answer.json()["code"]) == (503, "DISK_FULL")
            blobs = alone.installation.data / "blobs"
            assert [each for each in blobs.rglob("*") if each.is_file()] == []
            assert send(client, session_id, 2, 1).status_code == 200  # events still fit
        assert client.put(path, content=data, headers=WAV).status_code == 201
        assert client.get(path).content == data
