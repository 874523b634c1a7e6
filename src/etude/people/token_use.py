"""When tokens were last used, kept off the request's path.

A request notes its token in memory; a timer of the process writes what was gathered, once a minute
or so. A crash loses at most that minute, which nothing depends on.
"""

from datetime import datetime

from sqlalchemy import bindparam, or_, update

from etude.clock import to_us
from etude.people.tables import token
from etude.store import Database


class TokenUse:
    """What was used since the last `flush`. Lives as long as the process, on one event loop."""

    def __init__(self) -> None:
        """Begin with nothing gathered."""
        self._last_us: dict[int, int] = {}

    def note(self, token_key: int, now: datetime) -> None:
        """Remember that the token was used; touches no database."""
        self._last_us[token_key] = max(to_us(now), self._last_us.get(token_key, 0))

    async def flush(self, database: Database) -> int:
        """Write what was gathered and return how many tokens that were; never moves a time back."""
        gathered, self._last_us = self._last_us, {}
        if not gathered:
            return 0
        statement = (
            update(token)
            .where(
                token.c.token_key == bindparam("used_key"),
                token.c.scopes != "",  # a tombstone stays as it is
                or_(token.c.last_used_us.is_(None), token.c.last_used_us < bindparam("used_us")),
            )
            .values(last_used_us=bindparam("used_us"))
        )
        # Sorted: two processes that write the same rows may not lock them the other way round.
        rows = [{"used_key": key, "used_us": at_us} for key, at_us in sorted(gathered.items())]
        async with database.transaction() as work:
            await work.connection.execute(statement, rows)
        return len(rows)
