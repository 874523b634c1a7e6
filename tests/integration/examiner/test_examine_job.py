"""When reports are made, and that a kill anywhere makes none twice; on both databases."""

import asyncio
import hashlib
import importlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import RandomIds
from etude.errors import EtudeError
from etude.events.ndjson import decode_line
from etude.examiner import repository, revisions
from etude.examiner.enqueue import EXAMINE, recording_arrived, sessions_abandoned
from etude.examiner.examine_job import Examine
from etude.examiner.learner_data import all_learner_data
from etude.examiner.report import Report, read_report
from etude.examiner.repository import RevisionNote
from etude.examiner.rescoring import rescore
from etude.examiner.revisions import Expected, assign_rubric, rubric_of
from etude.examiner.shelf import RubricShelf
from etude.examiner.verify import verify
from etude.files import armed
from etude.jobs.claims import Claims
from etude.people.erasure import erase_learner
from etude.people.records import HOST, Principal
from etude.rubric.library import RubricLibrary, rubric_digest, rubric_json
from etude.rubric.model import Rubric
from etude.sessions import media
from etude.sessions import repository as sessions
from etude.sessions.export import first_lines
from etude.sessions.lifecycle import close_abandoned
from etude.store import Blobs, Database
from etude.testing.samples import sample_lines
from etude.testing.school import School, body

OPERATOR = Principal(kind="staff", key=1, id="o", scopes=frozenset(), token_key=1)


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


def crash_at(name: str) -> Any:
    def crash(reached: str) -> None:
        if reached == name:
            raise CrashError

    return armed(crash)


class Worker:
    """Carries out what is due, as the runner does, but when the test says so."""

    def __init__(self, school: School, folder: Path, **options: Any) -> None:
        self.school = school
        self.claims = Claims(
            school.database,
            school.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={EXAMINE: 10},
            periods_s={},
        )
        shelf = RubricShelf(folder)
        self.examine = Examine(school.database, shelf, school.clock, RandomIds(), **options)

    def work(self) -> int:
        """Carry out every job that is due; return how many."""

        async def carry_out() -> int:
            jobs = await self.claims.claim(100)
            for job in jobs:
                await self.examine(job)
                await self.claims.finish_rest(job)
            return len(jobs)

        done: int = self.school.run(carry_out())
        return done


@pytest.fixture
def school(database: Database, run: Any) -> School:
    made = School(database, run)
    run(made.furnish())
    return made


@pytest.fixture
def worker(school: School, tmp_path: Path) -> Worker:
    return Worker(school, tmp_path / "rubrics")


def violin(session_id: str, **common: Any) -> list[dict[str, Any]]:
    """The violin session with `seq` from 1."""
    lines = sample_lines("violin-3min")
    return [
        json.loads(line) | {"session_id": session_id, "seq": number} | common
        for number, line in enumerate(lines, 1)
    ]


def send(school: School, session_id: str, *events: dict[str, Any]) -> None:
    school.upload(school.device("toy-1"), session_id, body(*events))


def read(school: School, look: Callable[[AsyncConnection], Any]) -> Any:
    async def looked() -> Any:
        async with school.database.read() as connection:
            return await look(connection)

    return school.run(looked())


def notes(school: School, session_id: str) -> list[RevisionNote]:
    key = school.row(session_id).session_key
    found: list[RevisionNote] = read(school, lambda c: repository.revisions(c, key))
    return found


def report(school: School, session_id: str, number: int | None = None) -> Report:
    row = school.row(session_id)
    found = read(school, lambda c: revisions.load(c, row, number, school.clock.now()))
    return read_report(found.body)


def expected(school: School, session_id: str) -> tuple[str, int]:
    row = school.row(session_id)
    found: Expected = read(school, lambda c: revisions.load(c, row, None, school.clock.now()))
    return found.status, found.retry_after_s


def test_a_whole_session_is_examined_at_once(school: School, worker: Worker) -> None:
    """`session_end` without a gap: due now, once; open before, and nothing is asked for."""
    events = violin("s1")
    send(school, "s1", *events[:-1])
    assert (worker.work(), expected(school, "s1")) == (0, ("open", 60))
    send(school, "s1", events[-1])
    assert expected(school, "s1") == ("queued", 1)
    assert (worker.work(), worker.work()) == (1, 0)
    assert [one.revision for one in notes(school, "s1")] == [1]
    send(school, "s1", *events)  # duplicates are nothing new
    school.clock.advance(60)
    assert worker.work() == 0


def test_a_lesson_is_examined_by_the_very_rubric_that_came_with_it(
    school: School, worker: Worker
) -> None:
    """By its digest: not by the one of that name at hand; one that is not here is no other one."""
    shipped = RubricLibrary.load().get("violin-basic")
    own = msgspec.structs.replace(shipped, locale={"en": "Violin of this course"})
    named = {"id": own.id, "version": own.version, "digest": rubric_digest(own)}

    async def keep() -> None:
        async with school.database.transaction() as work:
            await repository.keep_rubric(work, rubric_json(own), school.clock.now())

    school.run(keep())
    for session_id, pin in (("s1", named), ("s2", {**named, "digest": "0" * 64})):
        first, *others = violin(session_id)
        meta = {**first.get("meta", {}), "rubric": pin}
        send(school, session_id, {**first, "meta": meta}, *others)
    assert worker.work() == 2
    found = report(school, "s1")
    assert (found.rubric_title, found.inputs.rubric.digest) == (
        "Violin of this course",
        named["digest"],
    )
    with pytest.raises(EtudeError) as raised:
        report(school, "s2")
    assert raised.value.code == "RUBRIC_UNKNOWN"


def test_a_session_with_a_gap_waits_for_ten_seconds_of_silence(
    school: School, worker: Worker
) -> None:
    """Each upload begins the wait anew; what is missing then is named in the report."""
    events = violin("s1")
    send(school, "s1", *events[:4], events[-1])
    school.clock.advance(9)
    send(school, "s1", events[6])
    school.clock.advance(9)
    assert worker.work() == 0
    school.clock.advance(1)
    assert worker.work() == 1
    assert [(gap.first, gap.last) for gap in report(school, "s1").gaps] == [(5, 6), (8, 12)]


def test_what_completes_a_gap_is_examined_at_once(school: School, worker: Worker) -> None:
    """Nobody waits for silence once nothing is missing."""
    events = violin("s1")
    send(school, "s1", *events[:4], events[-1])
    send(school, "s1", *events[4:-1])
    assert worker.work() == 1


def test_a_session_that_is_given_up_is_examined(school: School, worker: Worker) -> None:
    """Without `session_end`, at the moment when it counts as abandoned."""
    send(school, "s1", *violin("s1")[:-1])
    school.clock.advance(25 * 3600)
    closed = school.run(close_abandoned(school.database, school.clock, sessions_abandoned))
    assert (closed, worker.work()) == (1, 1)
    assert len(notes(school, "s1")) == 1


def test_later_changes_are_gathered_into_one_revision(school: School, worker: Worker) -> None:
    """Thirty seconds from the first change, however many follow; the old revision stays."""
    events = violin("s1")
    send(school, "s1", *events)
    worker.work()
    before = report(school, "s1")
    for number in range(3):
        send(school, "s1", events[5] | {"event_id": f"late-{number}", "seq": 14 + number})
        school.clock.advance(9)
        assert worker.work() == 0
    school.clock.advance(3)
    assert worker.work() == 1
    assert [one.revision for one in notes(school, "s1")] == [1, 2]
    assert report(school, "s1").inputs.event_count == 16
    assert report(school, "s1", 1) == before


def test_an_old_revision_verifies_although_events_and_rubric_have_changed(
    school: School, worker: Worker, tmp_path: Path
) -> None:
    """Its events are those that came first, its rubric the one that was kept."""
    send(school, "s1", *violin("s1"))
    worker.work()
    folder = tmp_path / "rubrics"
    folder.mkdir()
    shipped = files("etude.rubric").joinpath("rubrics/violin-basic.yaml").read_text("utf-8")
    (folder / "mine.yaml").write_text(shipped.replace("threshold_s: 60", "threshold_s: 61"))
    send(school, "s1", violin("s1")[5] | {"event_id": "late", "seq": 14})
    school.clock.advance(30)
    worker.work()
    key = school.row("s1").session_key
    digests = set()
    for number in (1, 2):
        row = read(school, lambda c, n=number: repository.revision(c, key, n))
        made = read_report(row.body)
        lines = read(school, lambda c, m=made: first_lines(c, key, m.inputs.event_count))
        rubric = read(school, lambda c, r=row: rubric_of(c, r))
        digests.add(row.rubric_digest)
        assert hashlib.sha256(rubric_json(rubric)).hexdigest() == row.rubric_digest
        assert verify(made, [decode_line(line) for line in lines], rubric).differences == ()
    assert len(digests) == 2


def test_a_recording_that_arrives_later_makes_a_revision(
    school: School, worker: Worker, tmp_path: Path
) -> None:
    """Missing in the first report, there in the second; once more it changes nothing."""
    data = b"RIFF"
    sha256 = hashlib.sha256(data).hexdigest()
    events = violin("s1")
    events[5]["meta"] = {"media": [{"sha256": sha256}]}
    send(school, "s1", *events)
    worker.work()
    assert len(report(school, "s1").recordings.missing or ()) == 1

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    async def put() -> bool:
        return await media.put(
            school.database,
            Blobs(tmp_path / "blobs", school.clock),
            school.clock,
            row,
            sha256=sha256,
            content_type="audio/wav",
            chunks=chunks(),
            on_new=recording_arrived,
        )

    row = school.row("s1")
    assert school.run(put())
    school.clock.advance(30)
    assert worker.work() == 1
    assert report(school, "s1").recordings.missing == ()
    assert not school.run(put())
    school.clock.advance(30)
    assert worker.work() == 0


def test_the_first_report_waits_for_metrics_but_not_for_ever(
    school: School, tmp_path: Path
) -> None:
    """At most fifteen seconds while they are being made; then without them."""
    making = [True]

    async def pending(_connection: AsyncConnection, _session_key: int) -> bool:
        return making[0]

    worker = Worker(school, tmp_path / "rubrics", pending=pending)
    send(school, "s1", *violin("s1"))
    send(school, "s2", *violin("s2"))
    for _ in range(14):
        worker.work()
        school.clock.advance(1)
    assert notes(school, "s1") == []
    making[0] = False
    worker.work()
    assert len(notes(school, "s1")) == 1
    making[0] = True
    send(school, "s3", *violin("s3"))
    for _ in range(16):
        worker.work()
        school.clock.advance(1)
    assert len(notes(school, "s3")) == 1


def test_the_same_inputs_make_no_second_revision(school: School, worker: Worker) -> None:
    """Asked for again without a change, nothing is added; a rubric chosen and taken back is."""
    send(school, "s1", *violin("s1"))
    worker.work()
    for name in ("violin-basic", "violin-basic", "cpr-bls", "violin-basic"):
        school.run(_choose(school, "s1", name))
        worker.work()
    rubrics = [report(school, "s1", number).inputs.rubric.id for number in (1, 2, 3)]
    assert rubrics == ["violin-basic", "cpr-bls", "violin-basic"]
    assert len(notes(school, "s1")) == 3


async def _choose(school: School, session_id: str, name: str) -> None:
    rubric = RubricLibrary.load().get(name)
    async with school.database.transaction() as work:
        session = (await sessions.lock(work, [session_id]))[session_id]
        await assign_rubric(work, session, rubric, OPERATOR, school.clock.now())


def test_a_session_without_a_known_rubric_is_refused_until_one_is_chosen(
    school: School, worker: Worker
) -> None:
    """`RUBRIC_UNKNOWN`; the choice is audited by code words."""
    events = violin("s1")
    events[0]["value"] = {"instrument": "kazoo"}
    send(school, "s1", *events)
    worker.work()
    with pytest.raises(EtudeError) as refused:
        report(school, "s1")
    assert refused.value.code == "RUBRIC_UNKNOWN"
    school.run(_choose(school, "s1", "violin-basic"))
    assert worker.work() == 1
    assert report(school, "s1").rubric_key.startswith("violin-basic@")


@pytest.fixture
def quiet_loop(school: School) -> None:
    async def quiet() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    school.run(quiet())


@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize(
    "point",
    [
        "examiner.examine.made",
        "examiner.examine.revised",
        "store.transaction.before_commit",
        "store.transaction.committed",
    ],
)
def test_a_kill_anywhere_makes_exactly_one_revision_of_each_state(
    school: School, tmp_path: Path, point: str, *, change: bool
) -> None:
    """Another worker takes over when the lease is over; what was committed is not made again."""
    send(school, "s1", *violin("s1"))
    states = 1
    if change:
        Worker(school, tmp_path).work()
        send(school, "s1", violin("s1")[5] | {"event_id": "late", "seq": 14})
        school.clock.advance(30)
        states = 2
    dying = Worker(school, tmp_path)
    jobs = school.run(dying.claims.claim(10))
    assert len(jobs) == 1
    with crash_at(point), pytest.raises(CrashError):
        school.run(dying.examine(jobs[0]))
    for _ in range(4):
        school.clock.advance(31)
        Worker(school, tmp_path).work()
    found = notes(school, "s1")
    assert [one.revision for one in found] == list(range(1, states + 1))
    assert len({one.digest for one in found}) == states


def test_what_arrives_while_a_report_is_made_is_not_forgotten(
    school: School, worker: Worker
) -> None:
    """The upload finds the job running and leaves it alone; the run sees it and comes again."""
    send(school, "s1", *violin("s1"))
    late = violin("s1")[5] | {"event_id": "late", "seq": 14}

    def upload(reached: str) -> None:
        if reached == "examiner.examine.made":
            sending = school.send(school.device("toy-1"), "s1", body(late))
            arrived.append(asyncio.ensure_future(sending))

    arrived: list[Any] = []
    real = worker.examine._store

    async def store(*args: Any) -> None:
        await asyncio.gather(*arrived)
        await real(*args)

    worker.examine._store = store  # type: ignore[method-assign]  # a step in between, for this test
    with armed(upload):
        assert worker.work() == 1
    assert report(school, "s1").inputs.event_count == 13
    arrived.clear()
    school.clock.advance(30)
    assert worker.work() == 1
    assert report(school, "s1").inputs.event_count == 14


def test_an_erasure_while_a_report_is_made_leaves_nothing(
    school: School, worker: Worker, tmp_path: Path
) -> None:
    """The run finds no session and writes nothing."""
    send(school, "s1", *violin("s1"))
    key = school.row("s1").session_key
    registry = all_learner_data(school.clock, Blobs(tmp_path / "blobs", school.clock))
    real = worker.examine._store

    async def store(*args: Any) -> None:
        async with school.database.transaction() as work:
            await erase_learner(work, registry, "anna", actor=HOST, now=school.clock.now())
        await real(*args)

    worker.examine._store = store  # type: ignore[method-assign]  # a step in between, for this test
    assert worker.work() == 1
    assert read(school, lambda c: repository.revisions(c, key)) == []
    assert read(school, lambda c: repository.heads(c, [key])) == {}
    assert worker.work() == 0


def test_a_journey_is_ones_own(school: School, worker: Worker) -> None:
    """Earlier sessions of the same learner count, the newest fifty; nobody else's do."""
    journey = {"journey_id": "j1"}
    send(school, "s1", *violin("s1", **journey))
    school.upload(school.device("toy-2"), "s2", body(*violin("s2", **journey)))
    worker.work()
    school.clock.advance(3600)
    send(school, "s3", *violin("s3", **journey))
    worker.work()
    context = report(school, "s3").journey_context
    assert [one.session_id for one in context.sessions] == ["s1"]
    assert [one.session_id for one in report(school, "s1").journey_context.sessions] == []
    assert msgspec.to_builtins(report(school, "s3").inputs)["history"][0]["session_id"] == "s1"


def test_sessions_from_before_there_were_reports_get_theirs(school: School, worker: Worker) -> None:
    """The upgrade asks for every session that is over, and for no open one."""
    send(school, "s1", *violin("s1"))
    send(school, "s2", *violin("s2")[:-1])
    ask = importlib.import_module("etude.store.migrations.versions.0008_reports")._ASK

    async def upgrade() -> None:
        async with school.database.transaction() as work:
            await work.connection.execute(text("DELETE FROM report"))
            await work.connection.execute(text("DELETE FROM job"))
            await work.connection.execute(text(ask))

    school.run(upgrade())
    assert worker.work() == 1
    assert len(notes(school, "s1")) == 1


def test_stored_sessions_are_examined_anew_by_another_rubric(
    school: School, worker: Worker
) -> None:
    """Those that are over and began since then; each gets a revision, once, and keeps the old."""
    for name in ("s1", "s2"):
        send(school, name, *violin(name))
    send(school, "s3", *violin("s3")[:-1])
    worker.work()
    now = school.clock.now()
    other = RubricLibrary.load().get("cpr-bls")

    def anew(since: datetime, rubric: Rubric | None = None) -> int:
        asked: int = school.run(rescore(school.database, school.clock, since=since, rubric=rubric))
        return asked

    assert anew(now + timedelta(days=1), other) == 0
    assert anew(now - timedelta(days=1), other) == 2
    assert worker.work() == 2
    assert report(school, "s1").inputs.rubric.id == "cpr-bls"
    assert report(school, "s1", 1).inputs.rubric.id == "violin-basic"
    assert anew(now - timedelta(days=1)) == 2
    worker.work()
    assert len(notes(school, "s1")) == 2
