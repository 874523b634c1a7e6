"""The unit of work: one transaction, and what is to happen once it is on the disk."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.store.failures import error_code, where

if TYPE_CHECKING:  # the engine makes units of work: a circle at run time
    from etude.store.engine import Database

Callback = Callable[[], Awaitable[object] | None]
_log = structlog.get_logger(__name__)


class UnitOfWork:
    """One open transaction. It commits when its `async with` block ends without an error.

    Attributes:
        database: where the transaction is open.
        connection: the SQLAlchemy connection to run statements on.
        driver_connection: the driver's own connection (aiosqlite or asyncpg) in the same
            transaction, for bulk statements.
    """

    def __init__(
        self,
        database: "Database",
        connection: AsyncConnection,
        driver_connection: Any,  # noqa: ANN401 - two drivers without a common type
    ) -> None:
        """Bind an open transaction; use `Database.transaction`."""
        self.database = database
        self.connection = connection
        self.driver_connection = driver_connection
        self._after_commit: list[Callback] = []

    def after_commit(self, callback: Callback) -> None:
        """Call or await `callback()` once the transaction is durable; never if it is not.

        Callbacks run in order, outside the transaction. A failing one is logged and undoes nothing:
        whatever must happen belongs into the transaction (as a job), not here.
        """
        self._after_commit.append(callback)

    async def run_callbacks(self) -> None:
        """Run what `after_commit` gathered; `Database.transaction` calls this."""
        for callback in self._after_commit:
            try:
                result = callback()
                if inspect.isawaitable(result):
                    await result
            except Exception as error:  # noqa: BLE001 - the transaction stands, whatever a callback does
                _log.warning(
                    "a callback after commit failed",
                    action="store.after_commit",
                    error_code=error_code(error),
                    where=where(error),
                )
