import asyncio
import io
import json
import logging
import zipfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.engine import make_url

from etude.clock import SystemClock
from etude.files import armed
from etude.jobs import JobState, Pace, Runner, jobs_in
from etude.people import audit, tokens
from etude.people.erasure import (
    SCRUB,
    erase_learner,
    principal_tombstone,
    scrub_files,
    scrub_handler,
)
from etude.people.errors import LearnerErasedError, LearnerUnknownError
from etude.people.export import export_archive
from etude.people.learner_data import ExportFile, LearnerData, LearnerDataRegistry
from etude.people.learners import get_learner
from etude.people.own_data import people_data
from etude.people.records import HOST
from etude.store import Blobs, Database, UnitOfWork
from etude.testing.clocks import ManualClock
from etude.testing.waiting import within

HOUR = timedelta(hours=1)
NAME = "Ottilie-Mustermann-7391"
LABEL = "Ottilies-Tablet-7391"


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def registry() -> LearnerDataRegistry:
    registered = LearnerDataRegistry()
    registered.register(people_data(ManualClock()))
    return registered


def erase(school: Any, registry: LearnerDataRegistry, learner_id: str) -> int:
    async def run() -> int:
        async with school.database.transaction() as work:
            return await erase_learner(work, registry, learner_id, actor=HOST, now=school.now)

    return school.run(run())


def tombstone(school: Any, **named: Any) -> None:
    async def ask() -> None:
        async with school.database.read() as connection:
            await principal_tombstone(connection, **named)

    school.run(ask())


def furnished(school: Any) -> Any:
    """A learner with everything that people keeps of one."""
    learner, device = school.learner(NAME), school.device()
    school.hold(device, learner, school.now)
    token = school.token("learner", learner.learner_id, label=LABEL)
    return learner, device, token


def stored_bytes(database: Database, url: str, run: Any) -> bytes:
    """Return every byte that the database keeps in its files (PostgreSQL: of people's tables)."""
    if database.dialect == "sqlite":
        path = Path(make_url(url).database or "")
        return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))

    async def read() -> bytes:
        async with database.transaction() as work:
            await work.connection.execute(text("CHECKPOINT"))
            statement = """
                SELECT pg_read_binary_file(pg_relation_filepath(c.oid))
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'public' AND c.relkind IN ('r', 'i')
            """
            return b"".join(row[0] for row in await work.connection.execute(text(statement)))

    return run(read())


def test_after_the_scrub_nothing_of_the_learner_is_in_the_files(
    school: Any, registry: LearnerDataRegistry, database_url: str, tmp_path: Path
) -> None:
    """Name, label and id are in the database's bytes before, and in none of them after."""
    learner, _, token = furnished(school)
    marks = [mark.encode() for mark in (NAME, LABEL, learner.learner_id)]
    before = stored_bytes(school.database, database_url, school.run)
    assert all(mark in before for mark in marks)
    assert token.text.encode() not in before
    erase(school, registry, learner.learner_id)
    blobs = Blobs(tmp_path / "blobs", SystemClock())
    school.run(scrub_files(school.database, blobs, registry))
    after = stored_bytes(school.database, database_url, school.run)
    assert len(after) > 10_000
    assert not [mark for mark in marks if mark in after]


def test_an_erasure_enqueues_its_scrub_with_the_surrogate_key_only(
    school: Any, registry: LearnerDataRegistry
) -> None:
    """The clean-up is a durable job of the same transaction that knows no name."""
    learner, _, _ = furnished(school)
    key = erase(school, registry, learner.learner_id)

    async def queued() -> Any:
        async with school.database.read() as connection:
            return await jobs_in(connection, JobState.QUEUED)

    assert [(job.kind, job.key) for job in school.run(queued())] == [(SCRUB, str(key))]
    assert key == learner.learner_key


def test_a_worker_clears_the_files(
    school: Any, registry: LearnerDataRegistry, database_url: str, tmp_path: Path
) -> None:
    """The enqueued job, carried out by a worker, leaves nothing of the learner and is done."""
    learner, _, _ = furnished(school)
    erase(school, registry, learner.learner_id)
    blobs = Blobs(tmp_path / "blobs", SystemClock())
    handler = scrub_handler(school.database, blobs, registry)

    async def work() -> None:
        runner = Runner(school.database, {SCRUB: handler}, pace=Pace(poll_s=0.01))
        await runner.start()
        try:
            while True:
                async with school.database.read() as connection:
                    if await jobs_in(connection, JobState.DONE):
                        return
                await asyncio.sleep(0.01)
        finally:
            await runner.stop()

    school.run(asyncio.wait_for(work(), timeout=60))
    assert NAME.encode() not in stored_bytes(school.database, database_url, school.run)


def test_an_erasure_is_audited_by_key(school: Any, registry: LearnerDataRegistry) -> None:
    """The log says that somebody was erased, when and by whom, and not who it was."""
    learner, _, _ = furnished(school)
    erase(school, registry, learner.learner_id)

    async def listed() -> Any:
        async with school.database.read() as connection:
            return await audit.list_audit(connection, subject=("learner", learner.learner_key))

    (entry,) = school.run(listed()).items
    assert (entry.action, entry.actor, entry.detail) == ("learner.erased", HOST, {})


def test_erasing_twice_or_nobody_is_told(school: Any, registry: LearnerDataRegistry) -> None:
    """A second erasure is 410, of an unknown learner 404; neither changes anything."""
    learner, _, _ = furnished(school)
    erase(school, registry, learner.learner_id)
    with pytest.raises(LearnerErasedError):
        erase(school, registry, learner.learner_id)
    with pytest.raises(LearnerUnknownError):
        erase(school, registry, "nobody")


def test_what_comes_late_from_the_learner_is_refused(
    school: Any, registry: LearnerDataRegistry
) -> None:
    """The learner's token, key, and the device in their hands at the time: all are 410."""
    learner, device, token = furnished(school)
    other = school.learner("Ben")
    tombstone(school, learner_key=learner.learner_key)
    tombstone(school, device_key=device.device_key, at=school.now)
    erase(school, registry, learner.learner_id)
    for named in (
        {"learner_key": learner.learner_key},
        {"device_key": device.device_key, "at": school.now},
        {"device_key": device.device_key, "at": school.now + 1000 * HOUR},
    ):
        with pytest.raises(LearnerErasedError):
            tombstone(school, **named)

    async def ask() -> None:
        async with school.database.read() as connection:
            await tokens.authenticate(connection, token.text, school.now)

    with pytest.raises(LearnerErasedError):
        school.run(ask())
    # From the hour in which somebody else gets the device it is welcome again; before, never.
    school.hold(device, other, school.now + HOUR)
    tombstone(school, device_key=device.device_key, at=school.now + HOUR)
    assert school.holder_at(device, school.now + HOUR) == other.learner_key
    with pytest.raises(LearnerErasedError):
        school.holder_at(device, school.now)


def test_nobody_is_no_tombstone(school: Any) -> None:
    """What has no known learner is not refused."""
    device = school.device()
    tombstone(school)
    tombstone(school, device_key=device.device_key)
    tombstone(school, device_key=device.device_key, at=school.now)


def test_an_upload_under_way_is_seen_by_the_erasure(
    school: Any, registry: LearnerDataRegistry
) -> None:
    """The erasure waits for an upload that holds the learner, and so sees all of its rows."""
    learner, _, _ = furnished(school)
    order: list[str] = []

    async def upload(locked: asyncio.Event) -> None:
        async with school.database.transaction() as work:
            await principal_tombstone(work.connection, learner_key=learner.learner_key, lock=True)
            locked.set()
            await asyncio.sleep(0.05)  # the erasure has every chance to overtake
            order.append("upload")

    async def erasure(locked: asyncio.Event) -> None:
        await within(locked.wait(), "the upload's lock")
        async with school.database.transaction() as work:
            await erase_learner(work, registry, learner.learner_id, actor=HOST, now=school.now)
            order.append("erasure")

    async def both() -> None:
        locked = asyncio.Event()
        await asyncio.gather(upload(locked), erasure(locked))

    school.run(both())
    assert order == ["upload", "erasure"]
    with pytest.raises(LearnerErasedError):
        school.run(upload(asyncio.Event()))


@pytest.mark.parametrize(
    "instant",
    ["people.erasure.rows_removed", "people.erasure.enqueued", "store.transaction.before_commit"],
)
def test_an_erasure_that_is_cut_off_has_not_begun(
    school: Any, registry: LearnerDataRegistry, instant: str
) -> None:
    """Before the commit a kill leaves the learner whole: data, tokens and no job."""
    learner, _, token = furnished(school)

    def kill(reached: str) -> None:
        if reached == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        erase(school, registry, learner.learner_id)

    async def look() -> Any:
        async with school.database.read() as connection:
            return (
                await get_learner(connection, learner.learner_id),
                await tokens.authenticate(connection, token.text, school.now),
                await jobs_in(connection, JobState.QUEUED),
            )

    found, principal, jobs = school.run(look())
    assert (found, principal.key, jobs) == (learner, learner.learner_key, [])


@pytest.mark.parametrize("instant", ["people.scrub.before", "people.scrub.rewritten"])
def test_a_scrub_that_is_cut_off_is_done_again(
    school: Any, registry: LearnerDataRegistry, tmp_path: Path, instant: str
) -> None:
    """The job can be repeated from any instant and ends clean."""
    learner, _, _ = furnished(school)
    erase(school, registry, learner.learner_id)
    blobs = Blobs(tmp_path / "blobs", SystemClock())

    def kill(reached: str) -> None:
        if reached == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        school.run(scrub_files(school.database, blobs, registry))
    school.run(scrub_files(school.database, blobs, registry))


def test_contexts_erase_in_reverse_order_of_registration(
    school: Any, registry: LearnerDataRegistry
) -> None:
    """What refers to a learner goes before the learner does, in one transaction."""
    learner, _, _ = furnished(school)
    seen: list[str] = []

    async def no_files(_database: Database, _key: int) -> AsyncIterator[ExportFile]:
        return
        yield

    def noting(name: str) -> Any:
        async def note(work: UnitOfWork, key: int) -> None:
            assert key == learner.learner_key
            await get_learner(work.connection, learner.learner_id)  # still there
            seen.append(name)

        return note

    for name in ("sessions", "reports"):
        registry.register(
            LearnerData(
                context=name, tables=(), export_learner=no_files, erase_learner=noting(name)
            )
        )
    erase(school, registry, learner.learner_id)
    assert seen == ["reports", "sessions"]


def test_an_export_holds_everything_people_keeps(
    school: Any, registry: LearnerDataRegistry
) -> None:
    """Learner, devices, tokens without hashes, and who read the record: all of it, readable."""
    learner, device, token = furnished(school)

    async def read_often() -> None:
        async with school.database.transaction() as work:
            for _ in range(450):  # more than two pages of the log
                await audit.record(
                    work, HOST, "learner.read", subject=("learner", learner.learner_key),
                    now=school.now,
                )  # fmt: skip

    async def gathered() -> bytes:
        made = export_archive(school.database, registry, learner.learner_key, school.now)
        return b"".join([piece async for piece in made])

    school.run(read_often())
    archive = zipfile.ZipFile(io.BytesIO(school.run(gathered())))
    assert archive.testzip() is None
    assert json.loads(archive.read("manifest.json"))["contexts"] == ["people"]
    assert json.loads(archive.read("learner.json"))["display_name"] == NAME
    held = [json.loads(line) for line in archive.read("devices.jsonl").splitlines()]
    assert [one["device_id"] for one in held] == [device.device_id]
    (shown,) = [json.loads(line) for line in archive.read("tokens.jsonl").splitlines()]
    assert (shown["public_id"], shown["label"]) == (token.token.public_id, LABEL)
    assert len(archive.read("audit.jsonl").splitlines()) == 450
    everything = b"".join(archive.read(name) for name in archive.namelist())
    assert token.text[-64:].encode() not in everything
    assert b"sha256" not in everything


def test_no_export_of_the_erased(school: Any, registry: LearnerDataRegistry) -> None:
    """After an erasure there is nothing to export."""
    learner, _, _ = furnished(school)
    erase(school, registry, learner.learner_id)

    async def gathered() -> list[bytes]:
        made = export_archive(school.database, registry, learner.learner_key, school.now)
        return [piece async for piece in made]

    with pytest.raises(LearnerErasedError):
        school.run(gathered())


def test_an_erasure_logs_nothing_of_the_learner(
    school: Any, registry: LearnerDataRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither name nor id nor token gets into a log on the way out."""
    learner, _, token = furnished(school)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("aiosqlite").setLevel(logging.WARNING)  # the driver logs every parameter
    with structlog.testing.capture_logs() as logged:
        erase(school, registry, learner.learner_id)
        blobs = Blobs(tmp_path / "blobs", SystemClock())
        school.run(scrub_files(school.database, blobs, registry))
        with pytest.raises(LearnerErasedError) as refused:
            erase(school, registry, learner.learner_id)
        logging.getLogger("test").warning("refused", exc_info=refused.value)
    written = f"{caplog.text} {logged}"
    assert "refused" in written
    for secret in (NAME, LABEL, learner.learner_id, token.text):
        assert secret not in written
