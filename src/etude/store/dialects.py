"""Statements that SQLAlchemy spells differently for the two databases."""

from typing import TYPE_CHECKING

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite

from etude.store.work import UnitOfWork

if TYPE_CHECKING:  # only names for the type checker
    from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
    from sqlalchemy.dialects.sqlite import Insert as SqliteInsert


def insert_if_absent(work: UnitOfWork, table: Table) -> "SqliteInsert | PostgresInsert":
    """Return `INSERT … ON CONFLICT DO NOTHING` into `table` for the database of `work`."""
    return insert_for(work, table).on_conflict_do_nothing()


def insert_for(work: UnitOfWork, table: Table) -> "SqliteInsert | PostgresInsert":
    """Return `INSERT` into `table` for the database of `work`, which may get a conflict clause."""
    if work.database.dialect == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
