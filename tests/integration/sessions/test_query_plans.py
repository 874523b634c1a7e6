from typing import Any, Self

import pytest
import sqlalchemy as sa

from etude.sessions import instances, lifecycle, media, reading, repository
from etude.sessions.erasure import sessions_of
from etude.sessions.export import events_digest
from etude.store import Database
from etude.testing.school import School, body, event

BIG_TABLES = (
    "session",
    "session_event",
    "session_quarantine",
    "session_media",
    "session_tombstone",
    "task_instance",
)


class Statements:
    """What SQLAlchemy sends to SQLite while this is open, with its values."""

    def __init__(self, database: Database) -> None:
        self._engines = {engine.sync_engine for engine in (database._reader, database._writer)}
        self.seen: list[tuple[str, Any]] = []

    def _note(self, *arguments: Any) -> None:
        _connection, _cursor, statement, values, _context, many = arguments
        self.seen.append((statement, values[0] if many else values))

    def __enter__(self) -> Self:
        for engine in self._engines:
            sa.event.listen(engine, "before_cursor_execute", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for engine in self._engines:
            sa.event.remove(engine, "before_cursor_execute", self._note)


@pytest.fixture
def database(run: Any, sqlite_url: str) -> Any:
    """Plans are looked at on SQLite, whose planner does not depend on how full a table is."""
    opened = run(Database.open(sqlite_url))
    yield opened
    run(opened.close())


async def everything(school: School) -> None:
    """Every statement on sessions that a request or a job sends."""
    toy = school.device("toy-1")
    for events in ([3], [1, 2, 3], [9]):
        await school.send(toy, "s1", body(*(event("s1", number) for number in events)))
    await school.send(toy, "s1", body(event("s1", 1, ts=8.0)))
    async with school.database.read() as connection:
        record = await repository.find(connection, "s1")
        assert record is not None
        await repository.missing(connection, record)
        await repository.tombstones(connection, ["s1"])
        await reading.quarantined(connection, record.session_key)
        await reading.count_quarantined(connection, record.session_key)
        await media.listed(connection, record.session_key)
        keys = [record.session_key]
        await media.recorded_among(connection, keys)
        assert [
            each async for each in reading.lines_of_type(connection, keys, "signal_observation")
        ] == []
        await sessions_of(connection, school.learners["anna"])
        await events_digest(connection, record.session_key)
        for wanted in (
            reading.Filter(),
            reading.Filter(learner_key=school.learners["anna"]),
            reading.Filter(device_key=school.devices["toy-1"]),
        ):
            await reading.listed(connection, wanted, after_key=0, limit=10)
            await instances.listed(connection, wanted, after_key=0, limit=10)
        await instances.load(connection, record)
    await lifecycle.close_abandoned(school.database, school.clock)


def test_no_statement_reads_a_whole_table_of_sessions(school: School) -> None:
    """Each statement that a request or a job sends finds its rows by a key or an index."""
    with Statements(school.database) as statements:
        school.run(everything(school))

    async def plans() -> dict[str, list[str]]:
        found = {}
        async with school.database.read() as connection:
            for statement, values in statements.seen:
                if statement.split()[0] in {"SELECT", "UPDATE", "DELETE"}:
                    rows = await connection.exec_driver_sql(
                        f"EXPLAIN QUERY PLAN {statement}", values
                    )
                    found[statement] = [row[3] for row in rows]
        return found

    found = school.run(plans())
    assert len(found) >= 15
    for statement, steps in found.items():
        for step in steps:
            words = step.split()
            reads_all = words[0] == "SCAN" and words[1] in BIG_TABLES and "USING" not in words
            assert not reads_all, f"{step} in:\n{statement}"
    listing = {s: steps for s, steps in found.items() if "session.session_key > ?" in s}
    tasks = [steps[0] for statement, steps in listing.items() if "task_instance" in statement]
    assert sorted(step.split()[1] for step in tasks) == ["session", "session", "task_instance"]
    lists = [steps for statement, steps in listing.items() if "task_instance" not in statement]
    used = {step.partition(" USING ")[2] for steps in lists for step in steps}
    assert used == {
        "INTEGER PRIMARY KEY (rowid>?)",
        "INDEX ix_session_learner_key (learner_key=? AND session_key>?)",
        "INDEX ix_session_device_key (device_key=? AND session_key>?)",
    }
