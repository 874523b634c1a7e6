"""Uploads and an erasure of the same learner at the same time."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from etude.examiner.learner_data import all_learner_data
from etude.files import armed
from etude.people.erasure import erase_learner
from etude.people.errors import LearnerErasedError
from etude.people.holders import hold_device
from etude.people.learners import get_learner
from etude.people.records import HOST
from etude.sessions import media
from etude.store import Blobs, Database
from etude.store.errors import StoreBusy
from etude.store.work import UnitOfWork
from etude.testing.school import School, body, event

PATIENCE_S = 30.0


async def erase(school: School, work: UnitOfWork, folder: Path, learner_id: str) -> None:
    registry = all_learner_data(school.clock, Blobs(folder, school.clock))
    await erase_learner(work, registry, learner_id, actor=HOST, now=school.clock.now())


def test_no_upload_of_an_erased_learner_is_answered_as_stored(
    school: School, tmp_path: Path
) -> None:
    """Uploads that share a transaction and would have opened the same session are all refused."""

    async def story() -> list[Any]:
        async with school.database.transaction() as work:
            await erase(school, work, tmp_path, "anna")
        return await asyncio.gather(
            *(
                school.send(school.learner("anna"), "s1", body(event("s1", number)))
                for number in (1, 2, 3)
            ),
            school.send(school.learner("ben"), "s1", body(event("s1", 4))),
            return_exceptions=True,
        )

    *refused, stored = school.run(story())
    assert [type(one) for one in refused] == [LearnerErasedError] * 3
    assert stored.events_received == 1
    assert school.row("s1").learner_key == school.learners["ben"]


def test_a_session_is_not_given_to_a_learner_who_is_being_erased(
    school: School, tmp_path: Path
) -> None:
    """A late session_start that names the time of an erased learner is refused, not settled."""
    now = school.clock.now()
    school.upload(school.device("toy-1"), "s1", body(event("s1", 2)))
    start = event(
        "s1",
        1,
        event_type="session_start",
        signal="session_begin",
        meta={"started_at": (now - timedelta(days=40)).isoformat()},
    )

    async def story() -> Any:
        async with school.database.transaction() as work:
            await hold_device(
                work.connection,
                device_id="toy-1",
                learner_id="ben",
                starts_at=now - timedelta(days=50),
                ends_at=now - timedelta(days=31),
            )
        async with school.database.transaction() as work:
            await erase(school, work, tmp_path, "ben")
            upload = asyncio.create_task(school.send(school.device("toy-1"), "s1", body(start)))
            await asyncio.wait({upload}, timeout=0.5)
        return (await asyncio.gather(upload, return_exceptions=True))[0]

    assert isinstance(school.run(story()), LearnerErasedError)
    assert school.row("s1").learner_key == school.learners["anna"]
    assert school.row("s1").event_count == 1


def test_a_recording_whose_bytes_are_erased_meanwhile_is_to_be_sent_again(
    school: School, tmp_path: Path
) -> None:
    """Somebody else's equal bytes go between receipt and commit: 503, which is retried, not 404."""
    data = b"the same clip"
    sha256 = hashlib.sha256(data).hexdigest()
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))
    record = school.row("s1")
    blobs = Blobs(tmp_path, school.clock)

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    async def send() -> bool:
        return await media.put(
            school.database,
            blobs,
            school.clock,
            record,
            sha256=sha256,
            content_type="audio/wav",
            chunks=chunks(),
        )

    def erase_bytes(name: str) -> None:
        if name == "sessions.media.stored":
            next(tmp_path.glob(f"*/*/{sha256}")).unlink()

    with armed(erase_bytes), pytest.raises(StoreBusy):
        school.run(send())
    assert school.run(send())


@pytest.fixture
def postgres(postgres_url: str, run: Any) -> Iterator[School]:
    database = run(Database.open(postgres_url))
    school = School(database, run)
    run(school.furnish())
    yield school
    run(database.close())


def test_an_upload_that_holds_a_session_does_not_wait_for_a_learner(postgres: School) -> None:
    """An erasure takes the learner, then the sessions: uploads never block it the other way."""
    school = postgres
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 1)))

    async def events_of_s1() -> int:
        async with school.database.read() as connection:
            rows = await connection.exec_driver_sql("SELECT event_count FROM session")
            return int(rows.scalars().one())

    async def story() -> list[Any]:
        async with school.database.transaction() as work:
            await get_learner(work.connection, "anna", lock=True)
            uploads = asyncio.gather(
                school.send(toy, "s1", body(event("s1", 2))),
                school.send(toy, "s2", body(event("s2", 1))),
            )
            async with asyncio.timeout(PATIENCE_S):
                while await events_of_s1() < 2:  # noqa: ASYNC110 - only the database knows
                    await asyncio.sleep(0.01)
        return await uploads

    assert [answer.events_received for answer in school.run(story())] == [1, 1]
