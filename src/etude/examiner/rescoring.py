"""Examining many stored sessions anew, by their own rubrics or by another one (`docs/rules.md 30`).

Nothing is scored here: each session's job is asked for, and adds a revision where it finds
something to say that the latest one does not.
"""

from datetime import datetime
from typing import Final

from etude.clock import Clock
from etude.examiner.enqueue import ask
from etude.examiner.revisions import assign_rubric
from etude.people.records import HOST
from etude.rubric.model import Rubric
from etude.sessions import reading, repository
from etude.sessions.records import SessionRow
from etude.store.engine import Database

_PAGE: Final = 500


async def rescore(
    database: Database, clock: Clock, *, since: datetime, rubric: Rubric | None = None
) -> int:
    """Ask for a revision of every session that began at `since` or later and is over.

    Args:
        database: where the sessions are.
        clock: the time of asking.
        since: an instant, aware.
        rubric: by which one from now on; None = as before.

    Returns:
        How many were asked for.
    """
    after_key, asked = 0, 0
    while True:
        async with database.read() as connection:
            page = await reading.listed(
                connection, reading.Filter(since=since), after_key=after_key, limit=_PAGE
            )
        for session in page:
            asked += session.status != "open" and await _asked(database, clock, session, rubric)
        if len(page) < _PAGE:
            return asked
        after_key = page[-1].session_key


async def _asked(
    database: Database, clock: Clock, found: SessionRow, rubric: Rubric | None
) -> bool:
    """Ask for one session's revision; False if it was erased meanwhile."""
    now = clock.now()
    async with database.transaction() as work:
        session = (await repository.lock(work, [found.session_id])).get(found.session_id)
        if session is None:
            return False
        if rubric is None:
            await ask(work, [session.session_key], now, now)
        else:
            await assign_rubric(work, session, rubric, HOST, now)
    return True
