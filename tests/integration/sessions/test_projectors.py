import asyncio
import importlib
from collections.abc import Collection
from typing import Any

import pytest
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from etude.files import armed
from etude.sessions.ingest import Ingest
from etude.sessions.projectors import Stored, chosen
from etude.store.work import UnitOfWork
from etude.testing.school import School, body, event

TASK = {"app_id": "reading", "task_id": "follow"}


class Noting:
    """A projector that notes what it is shown."""

    event_types: Collection[str] = ("streak", "session_end")

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    async def project(self, work: UnitOfWork, stored: Stored) -> None:
        assert work.connection.in_transaction()
        self.seen.append([sent.columns.event_id for events in stored.values() for sent in events])


def start(session_id: str, number: int = 1, **value: Any) -> dict[str, Any]:
    return event(session_id, number, event_type="session_start", value=value)


def instances_in(school: School) -> int:
    async def count() -> int:
        async with school.database.read() as connection:
            rows = await connection.exec_driver_sql("SELECT count(*) FROM task_instance")
            return int(rows.scalar_one())

    found: int = school.run(count())
    return found


def test_a_projector_sees_new_events_of_its_types_once(school: School) -> None:
    """Duplicates, conflicts and other types are not shown; without any it is not asked at all."""
    noting = Noting()
    school.ingest = Ingest(school.database, school.clock, projectors=[noting])
    toy = school.device("toy-1")
    streak = event("s1", 2, event_type="streak")
    school.upload(toy, "s1", body(event("s1", 1)))
    assert noting.seen == []
    school.upload(toy, "s1", body(event("s1", 1), streak, event("s1", 3)))
    school.upload(toy, "s1", body(streak))
    school.upload(toy, "s1", body(streak | {"ts": 9.0}, event("s1", 4, event_type="session_end")))
    assert noting.seen == [["e00002"], ["e00004"]]


def test_what_is_chosen_keeps_its_session_and_order() -> None:
    """A session without events of the types is left out."""
    assert chosen({}, {"streak"}) == {}


def test_only_tasks_get_a_row_and_one_each(school: School) -> None:
    """Music and nameless starts are no tasks; a task that starts twice is one."""
    toy = school.device("toy-1")
    school.upload(toy, "music", body(start("music", instrument="violin")))
    school.upload(toy, "odd", body(start("odd", task_id="t", app_id=None)))
    assert instances_in(school) == 0
    school.upload(toy, "s1", body(start("s1", **TASK), start("s1", 2, **TASK)))
    school.upload(toy, "s1", body(start("s1", 3, **TASK)))
    school.upload(toy, "s2", body(start("s2", **TASK)))
    assert instances_in(school) == 2


@pytest.mark.parametrize(
    ("point", "stored"),
    [("sessions.ingest.before_commit", 0), ("store.transaction.committed", 1)],
)
def test_a_kill_leaves_events_and_row_or_neither(school: School, point: str, stored: int) -> None:
    """The row is of the same transaction as the events; sent again, both are there once."""

    class CrashError(BaseException):
        pass

    def crash(reached: str) -> None:
        if reached == point:
            raise CrashError

    async def quiet() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    school.run(quiet())
    toy = school.device("toy-1")
    with armed(crash), pytest.raises(CrashError):
        school.upload(toy, "s1", body(start("s1", **TASK)))
    assert instances_in(school) == stored
    school.restart()
    assert school.upload(toy, "s1", body(start("s1", **TASK))).duplicates_skipped == stored
    assert instances_in(school) == 1


def test_an_upgrade_finds_the_tasks_that_were_stored_before(school: School) -> None:
    """Sessions of the schema before have their instances at once, and music has none."""
    toy = school.device("toy-1")
    music = (start("music", number, instrument="violin") for number in range(1, 1_100))
    school.upload(toy, "music", body(*music))
    for name in ("s1", "s2"):
        school.upload(toy, name, body(start(name, **TASK), start(name, 2, **TASK)))
    school.upload(toy, "odd", body(start("odd") | {"value": [1]}))

    def migrate(connection: Connection) -> None:
        connection.exec_driver_sql("DROP TABLE task_instance")
        with Operations.context(MigrationContext.configure(connection)):
            importlib.import_module("etude.store.migrations.versions.0005_task_instances").upgrade()

    async def run() -> None:
        async with school.database.transaction() as work:
            await work.connection.run_sync(migrate)

    school.run(run())
    assert instances_in(school) == 2
