"""The revision that makes the table of assignments anew, on a database that has some."""

from collections.abc import Callable
from typing import Any

import pytest
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.store import migrations, upgrade
from etude.store.migrations.running import scripts as chain

Run = Callable[..., Any]
BEFORE = "0012_courses"
ADD = """
INSERT INTO assignment (assignment_id, {holder}_key, app_id, task_id, lesson_id, starts_us,
    created_us, courseware_id, courseware_version, content_hash, scene_id)
VALUES (:id, :key, 'app', 'task', 'lesson', 5, 6, 'c', 2, 'h', 's')
"""


def to_before(connection: Connection) -> None:
    """Bring an empty database to the schema before the revision."""
    scripts = chain()

    def pending(revision: Any, _: object) -> Any:
        return scripts._upgrade_revs(BEFORE, revision)

    with EnvironmentContext(Config(), scripts, fn=pending, destination_rev=BEFORE) as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        environment.run_migrations()


async def furnish(connection: AsyncConnection) -> None:
    """Leave two assignments; the newest of three has been removed."""
    await connection.execute(
        text("INSERT INTO device (device_id, name, created_us) VALUES ('toy', 'Toy', 1)")
    )
    for assignment_id in ("one", "two", "three"):
        await connection.execute(text(ADD.format(holder="device")), {"id": assignment_id, "key": 1})
    await connection.execute(text("DELETE FROM assignment WHERE assignment_id = 'three'"))


def test_assignments_are_the_same_afterwards(run: Run, empty_database_url: str) -> None:
    """Rows, keys and pins stay, no key is used twice, and one is of exactly one holder."""

    async def main() -> None:
        async with migrations._open_locked(empty_database_url) as connection:
            await connection.run_sync(to_before)
            await furnish(connection)
            await connection.commit()
        await upgrade(empty_database_url)
        async with migrations._open_locked(empty_database_url) as connection:
            add = text(ADD.format(holder="class"))
            school_class = (
                "INSERT INTO school_class (class_id, name, created_us) VALUES ('c','C',1)"
            )
            await connection.execute(text(school_class))
            await connection.execute(add, {"id": "four", "key": 1})
            rows = await connection.execute(
                text(
                    "SELECT assignment_key, assignment_id, device_key, class_key, scene_id"
                    " FROM assignment ORDER BY assignment_key"
                )
            )
            assert [tuple(row) for row in rows] == [
                (1, "one", 1, None, "s"),
                (2, "two", 1, None, "s"),
                (4, "four", None, 1, "s"),
            ]
            both = text("UPDATE assignment SET device_key = 1, class_key = 1")
            with pytest.raises(IntegrityError, match="one_holder"):
                await connection.execute(both)

    run(main())
