"""Who keeps data of learners: every context registers what it exports and how it erases it.

The registry is a value that the composition root makes and passes on. `uncovered_tables` is how a
test finds a table that leads to a learner and that nobody has answered for.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final

import msgspec
from sqlalchemy import MetaData, Table

from etude.store import Database, UnitOfWork

LEARNER_COLUMN: Final = "learner_key"


class ExportFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an export: a relative path, and its bytes as they are read."""

    path: str
    chunks: AsyncIterator[bytes]
    compressed: bool = False  # already: stored as it is


ExportLearner = Callable[[Database, int], AsyncIterator[ExportFile]]
EraseLearner = Callable[[UnitOfWork, int], Awaitable[None]]


class LearnerData(msgspec.Struct, frozen=True, kw_only=True):
    """What one context keeps of learners.

    Attributes:
        context: its name.
        tables: those of its tables that hold a learner's data: rewritten after an erasure.
        export_learner: yields the files of one learner (surrogate key), each read before the next.
        erase_learner: removes what is the learner's, in the given transaction; files go through
            the blobs' references. It runs before the learner's own row becomes a tombstone.
        keys_only: tables that lead to a learner and hold surrogate keys, times and code words
            only; an erasure leaves them as they are.
    """

    context: str
    tables: tuple[Table, ...]
    export_learner: ExportLearner
    erase_learner: EraseLearner
    keys_only: tuple[Table, ...] = ()


class LearnerDataRegistry:
    """Every context's `LearnerData`, in the order of registration."""

    def __init__(self) -> None:
        """Begin empty."""
        self._registered: dict[str, LearnerData] = {}

    def __iter__(self) -> Iterator[LearnerData]:
        """Yield what was registered."""
        return iter(self._registered.values())

    def register(self, data: LearnerData) -> None:
        """Add a context; `ValueError` if it is there already."""
        if data.context in self._registered:
            raise ValueError(data.context)
        self._registered[data.context] = data

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables that hold a learner's data."""
        return tuple(table for data in self for table in data.tables)

    @property
    def answered_for(self) -> frozenset[str]:
        """Names of all tables that some context has answered for."""
        return frozenset(table.name for data in self for table in (*data.tables, *data.keys_only))

    async def export_learner(
        self, database: Database, learner_key: int
    ) -> AsyncIterator[ExportFile]:
        """Yield every context's files of one learner."""
        for data in self:
            async for file in data.export_learner(database, learner_key):
                yield file

    async def erase_learner(self, work: UnitOfWork, learner_key: int) -> None:
        """Let every context remove what is the learner's, the last registered first."""
        for data in reversed(self._registered.values()):
            await data.erase_learner(work, learner_key)


def tables_of_learners(metadata: MetaData) -> frozenset[str]:
    """Return the names of all tables with a path to a learner.

    A table has one if it has a column `learner_key`, a foreign key to such a table, or a column
    named like the single primary key of such a table (bulk tables do without the foreign key).
    """
    found: set[str] = set()
    while True:
        keys = {LEARNER_COLUMN} | {
            column.name
            for name in found
            for column in metadata.tables[name].primary_key
            if len(metadata.tables[name].primary_key) == 1
        }
        more = {
            table.name
            for table in metadata.sorted_tables
            if table.name not in found
            and (
                keys & set(table.columns.keys())
                or any(key.column.table.name in found for key in table.foreign_keys)
            )
        }
        if not more:
            return frozenset(found)
        found |= more


def uncovered_tables(metadata: MetaData, registry: LearnerDataRegistry) -> frozenset[str]:
    """Return the tables with a path to a learner that no context has registered."""
    return tables_of_learners(metadata) - registry.answered_for
