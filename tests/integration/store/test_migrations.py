import ast
import asyncio
import importlib.util
import itertools
import pkgutil
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

import etude
from etude.store import Database, check, current_revision, metadata, newest_revision, upgrade
from etude.store.errors import SchemaAhead, SchemaBehind
from etude.store.migrations import __file__ as migrations_file
from etude.testing.waiting import run_bounded

Run = Callable[..., Any]
VERSIONS = sorted((Path(migrations_file).parent / "versions").glob("*.py"))
UPGRADE = """
import asyncio, sys
from etude.files import arm_from_environment
from etude.store import upgrade
arm_from_environment()
asyncio.run(upgrade(sys.argv[1]))
"""


def import_all_tables() -> None:
    for package in pkgutil.walk_packages(etude.__path__, "etude."):
        if package.name.endswith(".tables"):
            importlib.import_module(package.name)


def differences(connection: Connection) -> list[Any]:
    options = {"compare_type": True, "compare_server_default": True}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, metadata))


def test_schema_is_the_sum_of_the_migrations(run: Run, database: Database) -> None:
    """What the revisions make is what the tables of all contexts say, on both databases."""
    import_all_tables()
    assert {"blob", "job"} <= set(metadata.tables)

    async def main() -> list[Any]:
        async with database.read() as connection:
            return await connection.run_sync(differences)

    assert run(main()) == []


def test_comparison_sees_a_missing_column(run: Run, database: Database) -> None:
    """The comparison is no formality: a column taken away shows."""

    async def main() -> list[Any]:
        async with database.transaction() as work:
            await work.connection.exec_driver_sql("ALTER TABLE blob DROP COLUMN created_us")
        async with database.read() as connection:
            return await connection.run_sync(differences)

    assert "add_column" in str(run(main()))


def test_upgrade_reaches_the_newest_revision_and_stays(run: Run, empty_database_url: str) -> None:
    """An empty database is behind; upgraded it fits; a second upgrade changes nothing."""

    async def main() -> None:
        assert await current_revision(empty_database_url) is None
        with pytest.raises(SchemaBehind):
            await check(empty_database_url)
        for _ in range(2):
            await upgrade(empty_database_url)
            assert await current_revision(empty_database_url) == newest_revision()
            await check(empty_database_url)

    run(main())


def test_database_of_a_newer_version_is_left_alone(run: Run, database_url: str) -> None:
    """A revision that this version does not know is `SCHEMA_AHEAD`, for check and upgrade."""

    async def main() -> None:
        async with await Database.open(database_url) as database, database.transaction() as work:
            await work.connection.exec_driver_sql(
                "UPDATE alembic_version SET version_num = '9999_later'"
            )
        for refuse in (check, upgrade):
            with pytest.raises(SchemaAhead) as caught:
                await refuse(database_url)
            assert caught.value.params["found"] == "9999_later"

    run(main())


def test_upgrades_at_once_do_not_meet(empty_database_url: str) -> None:
    """Three processes that upgrade the same empty database at once all succeed."""
    command = [sys.executable, "-c", UPGRADE, empty_database_url]
    with ThreadPoolExecutor(3) as threads:
        upgrades = [threads.submit(run_bounded, command) for _ in range(3)]
    assert [upgrade.result().returncode for upgrade in upgrades] == [0, 0, 0]
    asyncio.run(check(empty_database_url))


def test_upgrade_killed_before_its_commit_leaves_the_old_schema(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before the commit leaves nothing of the upgrade; the next run is whole."""
    command = [sys.executable, "-c", UPGRADE, empty_database_url]
    monkeypatch.setenv("ETUDE_CRASH_AT", "store.migration.before_commit")
    assert run_bounded(command).returncode == -signal.SIGKILL
    assert asyncio.run(current_revision(empty_database_url)) is None
    monkeypatch.setenv("ETUDE_CRASH_AT", "store.migration.committed")
    assert run_bounded(command).returncode == -signal.SIGKILL
    asyncio.run(check(empty_database_url))


@pytest.mark.parametrize("file", VERSIONS, ids=lambda path: path.stem)
def test_revision_is_plain(file: Path) -> None:
    """A revision imports nothing of Etude, is named as its file and only goes forward."""
    tree = ast.parse(file.read_text("utf-8"))
    imported = [
        name.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    ]
    assert not [name for name in imported if name.partition(".")[0] == "etude"]
    assigned = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    assert f"revision = '{file.stem}'" in assigned
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "upgrade" in functions
    assert "downgrade" not in functions


def test_revisions_are_one_chain() -> None:
    """Numbers count up by one, and each revision follows the one before it."""
    assert [file.stem[:4] for file in VERSIONS] == [
        f"{number:04}" for number in range(1, len(VERSIONS) + 1)
    ]
    for before, file in itertools.pairwise(VERSIONS):
        assert f'down_revision = "{before.stem}"' in file.read_text("utf-8")
