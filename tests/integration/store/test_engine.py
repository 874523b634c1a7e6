import asyncio

import pytest
from sqlalchemy import insert, select

from etude.store import Database
from etude.store.tables import blob


def row(letter: str) -> dict[str, object]:
    return {"sha256": letter * 64, "size": 1, "created_us": 1}


async def stored(database: Database) -> set[str]:
    async with database.read() as connection:
        return {sha256[0] for sha256 in (await connection.scalars(select(blob.c.sha256))).all()}


def test_commit_is_seen_and_error_leaves_nothing(run, database):
    """A block that ends well is committed; one that raises leaves no trace."""

    async def main():
        async with database.transaction() as work:
            await work.connection.execute(insert(blob), [row("a")])
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as work:
                await work.connection.execute(insert(blob), [row("b")])
                raise ZeroDivisionError
        assert await stored(database) == {"a"}

    run(main())


def test_driver_connection_is_in_the_transaction(run, database):
    """What bulk code sends to the driver first of all is rolled back with the rest."""

    async def main():
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as work:
                statement = f"INSERT INTO blob VALUES ('{'a' * 64}', 1, 1)"  # noqa: S608 - constant
                await work.driver_connection.execute(statement)
                raise ZeroDivisionError
        assert await stored(database) == set()

    run(main())
