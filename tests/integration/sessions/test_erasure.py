import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from etude.examiner.learner_data import all_learner_data
from etude.files import armed
from etude.people.erasure import erase_learner
from etude.people.errors import LearnerErasedError
from etude.people.records import HOST
from etude.sessions import media
from etude.sessions.errors import SessionErasedError
from etude.store import Blobs
from etude.store.errors import BlobMissing
from etude.testing.school import School, body, event


@pytest.fixture
def blobs(school: School, tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", school.clock)


def erase(school: School, blobs: Blobs, learner_id: str) -> None:
    async def story() -> None:
        registry = all_learner_data(school.clock, blobs)
        async with school.database.transaction() as work:
            await erase_learner(work, registry, learner_id, actor=HOST, now=school.clock.now())

    school.run(story())


def record(school: School, blobs: Blobs, session_id: str, data: bytes) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield data

    sha256 = hashlib.sha256(data).hexdigest()
    school.run(
        media.put(
            school.database,
            blobs,
            school.clock,
            school.row(session_id),
            sha256=sha256,
            content_type="audio/wav",
            chunks=chunks(),
        )
    )
    return sha256


def test_an_erased_learners_sessions_are_gone_and_refused(school: School, blobs: Blobs) -> None:
    """Rows and recordings go, neighbours stay, the same session and new ones answer 410."""
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1), event("s1", 2)))
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1, ts=7.0)))
    school.upload(school.device("toy-2"), "s2", body(event("s2", 1)))
    voice = record(school, blobs, "s1", b"anna's voice")
    shared = record(school, blobs, "s1", b"the same clip")
    record(school, blobs, "s2", b"the same clip")

    erase(school, blobs, "anna")

    with pytest.raises(KeyError):
        school.row("s1")
    with pytest.raises(BlobMissing):
        school.run(blobs.read(voice))
    assert school.run(blobs.read(shared)) == b"the same clip"
    assert len(school.stored("s2")) == 1
    for sender in (school.device("toy-1"), school.device("toy-2")):
        with pytest.raises(SessionErasedError):
            school.upload(sender, "s1", body(event("s1", 1)))
    with pytest.raises(LearnerErasedError):
        school.upload(school.device("toy-1"), "s3", body(event("s3", 1)))
    with pytest.raises(LearnerErasedError):
        school.upload(school.learner("anna"), "s4", body(event("s4", 1)))


def test_nothing_of_an_erased_session_is_left_in_any_table(school: School, blobs: Blobs) -> None:
    """Every table of sessions but the tombstones is empty again, and the tombstone says nothing."""
    school.upload(school.device("toy-1"), "secret-id", body(event("secret-id", 1)))
    school.upload(school.device("toy-1"), "secret-id", body(event("secret-id", 1, ts=3.0)))
    record(school, blobs, "secret-id", b"x")
    erase(school, blobs, "anna")

    async def counts() -> dict[str, Any]:
        async with school.database.read() as connection:
            found = {}
            for name in ("session", "session_event", "session_quarantine", "session_media"):
                rows = await connection.exec_driver_sql(f"SELECT count(*) FROM {name}")  # noqa: S608 - names above
                found[name] = rows.scalar_one()
            (row,) = await connection.exec_driver_sql("SELECT * FROM session_tombstone")
            return found | {"tombstone": repr(tuple(row))}

    found = school.run(counts())
    assert "secret-id" not in found.pop("tombstone")
    assert found == dict.fromkeys(found, 0)


def test_a_killed_erasure_has_erased_all_or_nothing(school: School, blobs: Blobs) -> None:
    """At every crash point of an erasure the learner is whole or gone, never between."""

    class CrashError(Exception):
        pass

    reached: list[str] = []
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))
    school.upload(school.device("toy-1"), "s2", body(event("s2", 1)))
    count = 0
    while True:
        count += 1
        left = count

        def crash(name: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                reached.append(name)
                raise CrashError

        try:
            with armed(crash):
                erase(school, blobs, "anna")
        except CrashError:
            try:
                whole = school.row("s1").event_count + school.row("s2").event_count
            except KeyError:
                break
            assert whole == 2
        else:
            break
    assert "sessions.erasure.session_removed" in reached
    with pytest.raises(SessionErasedError):
        school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))


def test_an_export_holds_the_lines_as_sent_and_the_recordings(school: School, blobs: Blobs) -> None:
    """A learner's export has one folder a session, word for word."""
    sent = body(event("s1", 1), event("s1", 2))
    school.upload(school.device("toy-1"), "s1", sent)
    sha256 = record(school, blobs, "s1", b"voice")

    async def files() -> dict[str, bytes]:
        found = {}
        registry = all_learner_data(school.clock, blobs)
        async for file in registry.export_learner(school.database, school.learners["anna"]):
            found[file.path] = b"".join([chunk async for chunk in file.chunks])
        return found

    found = school.run(files())
    assert found["sessions/s1/events.jsonl"] == sent
    assert found[f"sessions/s1/media/{sha256}.wav"] == b"voice"
