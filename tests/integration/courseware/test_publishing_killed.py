"""`kill -9` of a process that publishes: the old state or the new one, whatever the instant."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.clock import SystemClock
from etude.courseware import registry
from etude.courseware.gates import CourseSource
from etude.courseware.publishing import Publisher
from etude.people.audit import list_audit
from etude.people.records import HOST
from etude.store import Blobs, Database
from etude.testing.courseware import course
from etude.testing.waiting import run_bounded

Run = Callable[..., Any]
SCRIPT = """
import asyncio, sys
from pathlib import Path
from etude.clock import SystemClock
from etude.courseware.publishing import Publisher
from etude.files import arm_from_environment
from etude.people.records import HOST
from etude.store import Database
from etude.testing.courseware import course

async def publish(root, url):
    async with await Database.open(url) as database:
        publisher = Publisher(database, root / "blobs", SystemClock(), token="t" * 32,
            classrooms=root / "classrooms", legacy=root / "older")
        source = course(root / "classrooms")
        arm_from_environment()
        await publisher.publish(source, HOST)

asyncio.run(publish(Path(sys.argv[1]), sys.argv[2]))
"""
BEFORE = (
    "store.blob.written",
    "store.blob.linked",
    "store.blob.durable",
    "store.blob.durable:2",
    "courseware.bundles.stored",
    "courseware.versions.inserted",
    "courseware.manifest.inserted",
    "store.transaction.before_commit",
)


def killed(root: Path, url: str, point: str) -> None:
    done = run_bounded(
        [sys.executable, "-c", SCRIPT, str(root), url],
        env=os.environ | {"ETUDE_CRASH_AT": point},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


async def state(url: str) -> tuple[int, int, int]:
    """Return how many manifests, versions and audit entries there are."""
    async with await Database.open(url) as database, database.read() as connection:
        manifests = await registry.newest_manifests(connection)
        versions = [await registry.version(connection, f"cw_harbour_{n}", 1) for n in (0, 1)]
        entries = (await list_audit(connection)).items
        return len(manifests), sum(one is not None for one in versions), len(entries)


async def publish(root: Path, url: str, source: CourseSource) -> Any:
    async with await Database.open(url) as database:
        publisher = Publisher(
            database,
            root / "blobs",
            SystemClock(),
            classrooms=root / "classrooms",
            legacy=root / "older",
            token="t" * 32,
        )
        published = await publisher.publish(source, HOST)
        async with database.read() as connection:
            for module in published.manifest.modules:
                row = await registry.version(connection, module.courseware_id, 1)
                assert row is not None
                await publisher.check_stored(row)
        orphans = await Blobs(root / "blobs", SystemClock()).sweep_orphans(database, age_s=0)
        return published, orphans


@pytest.mark.parametrize("point", BEFORE)
def test_killed_before_the_commit(run: Run, tmp_path: Path, sqlite_url: str, point: str) -> None:
    """Nothing is visible; publishing again makes version 1 of all, and leaves no bytes over."""
    killed(tmp_path, sqlite_url, point)
    assert run(state(sqlite_url)) == (0, 0, 0)
    source = course(tmp_path / "classrooms")
    published, orphans = run(publish(tmp_path, sqlite_url, source))
    assert (published.manifest.version, orphans) == (1, 0)


def test_killed_after_the_commit(run: Run, tmp_path: Path, sqlite_url: str) -> None:
    """The course is published, whole; publishing again finds it."""
    killed(tmp_path, sqlite_url, "store.transaction.committed")
    assert run(state(sqlite_url)) == (1, 2, 1)
    published, _ = run(publish(tmp_path, sqlite_url, course(tmp_path / "classrooms")))
    assert not published.new
    assert [one.index for one in published.manifest.modules] == [0, 1]
