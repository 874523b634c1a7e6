"""A publication as a run: held while it lasts, cancelled at once, never begun in vain."""

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from etude.authoring import publication
from etude.authoring.errors import CourseRunActiveError
from etude.authoring.publication import FINISH_AFTER_S
from etude.authoring.records import Course
from etude.courseware.errors import PublishTokenMissingError
from etude.courseware.registering import Published
from etude.courseware.remote_errors import PublishCancelledError
from etude.people.audit import list_audit
from etude.people.records import HOST, Actor
from etude.settings import Settings
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.waiting import within
from etude.testing.workshop import Workshop

Run = Callable[..., Any]


class Bench:
    """A workshop with a made course, and its database seen from outside."""

    def __init__(self, run: Run, data: Path, url: str) -> None:
        self.run, self.url = run, url
        token = SecretStr("t" * 32)
        self.settings = Settings(data=data, database_url=url, courseware_publish_token=token)
        self.database: Database = run(Database.open(url))
        self.clock = ManualClock()
        self.workshop = Workshop(self.settings, self.database, self.clock)
        self.course: Course = run(self.workshop.made(narrated=False))

    def job_due_us(self) -> int:
        with sqlite3.connect(self.url.removeprefix("sqlite:///")) as database:
            query = "SELECT run_after_us FROM job WHERE state = 'queued'"
            return int(database.execute(query).fetchone()[0])


@pytest.fixture
def bench(run: Run, tmp_path: Path, sqlite_url: str) -> Iterator[Bench]:
    made = Bench(run, tmp_path / "data", sqlite_url)
    yield made
    run(made.database.close())


class Slow:
    """A publisher that takes as long as the test likes."""

    target = ""

    def __init__(self) -> None:
        self.begun, self.stopped = asyncio.Event(), False

    def require_token(self) -> None:
        return

    async def readiness(self, _course: Any) -> Any:
        raise NotImplementedError

    async def publish(self, _course: Any, _by: Any, _allowed: Any = None) -> Published:
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.stopped = True
            raise
        raise AssertionError


def test_a_long_publication_is_not_begun_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it lasts the worker's turn is put off; nothing else is done; cancelled, it stops."""
    monkeypatch.setattr(publication, "POSTPONE_EVERY_S", 0.0)
    monkeypatch.setattr(publication, "LOOK_EVERY_S", 0.02)
    workshop, course_id = bench.workshop, bench.course.course_id

    async def go() -> None:
        slow = Slow()
        doing = asyncio.create_task(publication.publish(workshop.courses, slow, course_id, HOST))
        await within(slow.begun.wait(), "the begin of the publication")
        first = bench.job_due_us()
        bench.clock.advance(100)
        async with asyncio.timeout(60):
            while bench.job_due_us() < first + 100_000_000:  # noqa: ASYNC110 - a row, no event
                await asyncio.sleep(0.02)
        bench.clock.advance(100)
        assert await workshop.work() == 0
        with pytest.raises(CourseRunActiveError):
            await workshop.courses.retry(course_id, 0)
        await workshop.courses.cancel(course_id)
        with pytest.raises(PublishCancelledError):
            async with asyncio.timeout(60):
                await doing
        assert slow.stopped
        assert (await workshop.courses.get(course_id)).active is None
        assert (await workshop.publish(course_id)).manifest.version == 1

    bench.run(go())


def test_the_worker_finishes_in_the_name_of_who_began(bench: Bench) -> None:
    """The process that published died: the audit log says who asked, not who finished it."""
    workshop, course_id = bench.workshop, bench.course.course_id
    who = Actor(kind="staff", key=4, token_key=9)

    async def go() -> list[tuple[Any, ...]]:
        await workshop.courses.begin_publishing(course_id, who, FINISH_AFTER_S)
        bench.clock.advance(FINISH_AFTER_S + 1)
        await workshop.work()
        async with bench.database.read() as connection:
            entries = (await list_audit(connection)).items
        return [(one.actor, one.action, one.subject) for one in entries]

    assert bench.run(go()) == [(who, "course.published", ("manifest", 1))]


def test_without_a_token_no_run_is_begun(bench: Bench) -> None:
    """The token is looked at before anything is noted of the course."""
    settings = bench.settings.model_copy(update={"courseware_publish_token": SecretStr("")})
    poor = Workshop(settings, bench.database, bench.clock)
    with pytest.raises(PublishTokenMissingError):
        bench.run(poor.publish(bench.course.course_id))
    found: Course = bench.run(poor.courses.get(bench.course.course_id))
    assert found.run is not None
    assert found.run.kind == "modules"


def test_an_upload_that_hangs_is_cancelled(bench: Bench) -> None:
    """A server that takes nothing more: cancelled, the upload is given up within seconds."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer_once, args=(listener, ended), daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = bench.settings.model_copy(update={"course_publish_server_base_url": address})
        workshop = Workshop(settings, bench.database, bench.clock)

        async def go() -> float:
            doing = asyncio.create_task(workshop.publish(bench.course.course_id))
            async with asyncio.timeout(60):
                found = bench.course
                while found.active is None:
                    found = await workshop.courses.get(bench.course.course_id)
                    await asyncio.sleep(0.02)
                await asyncio.sleep(1)
            await workshop.courses.cancel(bench.course.course_id)
            start_s = time.monotonic()
            with pytest.raises(PublishCancelledError):
                await within(doing, "the end of the cancelled publication")
            return time.monotonic() - start_s

        try:
            took_s = bench.run(go())
        finally:
            ended.set()
    # Two seconds are promised; the rest is for a machine on which everything takes its turn. What
    # is not cancelled hangs on: the server keeps the connection until this is over.
    assert took_s < 8
    found: Course = bench.run(workshop.courses.get(bench.course.course_id))
    assert found.active is None


def _answer_once(listener: socket.socket, ended: threading.Event) -> None:
    """Say that a publication would be taken, then take a connection and leave it alone."""
    body = b'{"formatVersion":1,"limitBytes":1,"freeBytes":1}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(head.encode() + body)
    held, _ = listener.accept()
    with held:
        ended.wait(120)
