"""`kill -9` of whoever publishes or receives a course, with real processes.

A publication whose process died is finished by the worker; one whose server died is repeated. Both
end with one version, whatever the instant.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.courseware import receipts, registry
from etude.store import Blobs, Database
from etude.testing.clocks import ManualClock
from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.leases import pass_leases
from etude.testing.nursery import Nursery

APP = "etude.cli.app"
DEADLINE_S = 120.0
# The first transaction of a process is that of opening the database.
HERE = (
    "store.transaction.committed:2",  # the run is begun
    "store.blob.durable:2",
    "courseware.bundles.stored",
    "courseware.versions.inserted",
    "courseware.manifest.inserted",
    "store.transaction.before_commit:3",
    "store.transaction.committed:3",  # published, the run not ended
)
THERE = (
    "store.transaction.committed:2",
    "courseware.publish.sending",
    "courseware.publish.answered",
    "courseware.receipt.noted",
    "store.transaction.committed:4",  # the receipt is there, the run not ended
)
SERVER = (
    "store.blob.written",
    "store.blob.durable:2",
    "courseware.bundles.received",
    "courseware.versions.inserted",
    "courseware.manifest.inserted",
    "store.transaction.committed:2",  # published, not answered
)


class Killing:
    """A laptop's processes, started and killed; its database is looked at from outside."""

    def __init__(self, nursery: Nursery, laptop: Any) -> None:
        self.nursery, self.laptop = nursery, laptop

    def publish(self, server: str | None = None, crash_at: str = "") -> None:
        """Run `etude course publish` until it ends, or is killed at a crash point."""
        child = self.nursery.start(
            APP,
            *("course", "publish", self.laptop.course_id),
            environment=self.laptop.environment(server, crash_at),
        )
        child.wait()

    def worker_finishes(self, server: str | None = None) -> None:
        """Let two minutes pass, and a worker do what is due."""
        pass_leases(self.laptop.data)
        worker = self.nursery.start(APP, "worker", environment=self.laptop.environment(server))
        until(lambda: self.run_state() != "active", worker.log_text)
        worker.kill()

    def run_state(self) -> str:
        with sqlite3.connect(self.laptop.data / "etude.db") as database:
            query = "SELECT state FROM course_run ORDER BY run_key DESC LIMIT 1"
            return str(database.execute(query).fetchone()[0])

    def receipt(self, target: str) -> Any:
        async def read() -> Any:
            async with (
                await Database.open(self.laptop.database_url) as database,
                database.read() as connection,
            ):
                return await receipts.newest(connection, self.laptop.course_id, target)

        return asyncio.run(read())

    def manifests(self) -> list[int]:
        """Return the versions of the course in the laptop's own registry."""

        async def read() -> list[int]:
            async with (
                await Database.open(self.laptop.database_url) as database,
                database.read() as connection,
            ):
                numbers = range(1, 4)
                found = [
                    await registry.manifest(connection, self.laptop.course_id, number)
                    for number in numbers
                ]
                return [one.version for one in found if one is not None]

        return asyncio.run(read())

    def orphans(self) -> int:
        """Sweep what nobody refers to; how many blobs went."""

        async def sweep() -> int:
            blobs = Blobs(self.laptop.data / "blobs", ManualClock())
            async with await Database.open(self.laptop.database_url) as database:
                return await blobs.sweep_orphans(database, age_s=0)

        return asyncio.run(sweep())


def until(done: Callable[[], bool], log_text: Callable[[], str]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < deadline_s, log_text()
        time.sleep(0.05)


@pytest.fixture
def killing(nursery: Nursery, laptop: Any) -> Killing:
    return Killing(nursery, laptop)


@pytest.fixture
def school(
    nursery: Nursery, tmp_path: Path, sqlite_copy: Callable[[Path], str]
) -> Iterator[KillableServer]:
    data = tmp_path / "school"
    data.mkdir()
    token = {"ETUDE_COURSEWARE_PUBLISH_TOKEN": "t" * 40, "ETUDE_ROLE": "server"}
    public = {"ETUDE_PUBLIC_URL": "https://etude.example.org"}
    server = KillableServer(nursery, furnish(data, sqlite_copy(data)), token | public)
    yield server
    server.kill()


@pytest.mark.parametrize("point", HERE)
def test_the_worker_finishes_what_died(killing: Killing, point: str) -> None:
    """Published here and killed: the worker publishes it once, nothing is left over."""
    killing.publish(crash_at=point)
    assert killing.run_state() == "active"
    killing.worker_finishes()
    assert killing.run_state() == "done"
    assert killing.manifests() == [1]
    assert killing.receipt(receipts.HERE).version == 1
    assert killing.orphans() == 0


def test_killed_before_the_run_was_begun(killing: Killing) -> None:
    """Nothing is being published; publishing again does it."""
    killing.publish(crash_at="authoring.publish.begun")
    assert killing.run_state() == "done"  # of the run that made the modules
    assert killing.manifests() == []
    killing.publish()
    assert killing.manifests() == [1]


@pytest.mark.parametrize("point", THERE)
def test_the_worker_finishes_what_died_on_the_way(
    killing: Killing, school: KillableServer, point: str
) -> None:
    """Published at a server and killed: the worker sends it again, one version, one receipt."""
    school.start()
    killing.publish(school.url, crash_at=point)
    assert killing.run_state() == "active"
    killing.worker_finishes(school.url)
    assert killing.run_state() == "done"
    assert versions(school, killing.laptop.course_id) == [1]
    assert killing.receipt(school.url).version == 1
    assert killing.manifests() == []


@pytest.mark.parametrize("point", SERVER)
def test_a_server_that_died_is_asked_again(
    killing: Killing, school: KillableServer, point: str
) -> None:
    """The server is killed at any instant: not noted as published; again, it is version 1."""
    school.start(crash_at=point)
    killing.publish(school.url)
    school.wait()
    assert killing.run_state() == "failed"
    assert killing.receipt(school.url) is None
    school.start()
    killing.publish(school.url)
    assert killing.run_state() == "done"
    assert versions(school, killing.laptop.course_id) == [1]
    assert killing.receipt(school.url).version == 1


def versions(school: KillableServer, course_id: str) -> list[int]:
    """Return the versions of the course that learners see at the school."""
    found = []
    for number in (1, 2, 3):
        address = f"{school.url}/api/learn/courses/{course_id}?version={number}"
        if httpx2.get(address, trust_env=False).is_success:
            found.append(number)
    return found
