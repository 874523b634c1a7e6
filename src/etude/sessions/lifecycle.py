"""What happens to a session besides events coming in: it is given up, or given to its learner."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, update

from etude.clock import Clock, to_us
from etude.files import crash_point
from etude.people import audit
from etude.people.learners import get_learner
from etude.people.records import Principal
from etude.sessions.records import SessionRow
from etude.sessions.tables import session
from etude.store.engine import Database
from etude.store.work import UnitOfWork

ABANDONED_AFTER: Final = timedelta(hours=24)


OnClosed = Callable[[UnitOfWork, Sequence[int], int], Awaitable[None]]
"""Is told, in the same transaction, which sessions (keys) were given up, and when (µs)."""


async def close_abandoned(
    database: Database, clock: Clock, on_closed: OnClosed | None = None
) -> int:
    """Mark open sessions without `session_end` whose last event came 24 h ago; return how many.

    Later events open them again (`docs/sessions.md §What becomes of it`).
    """
    limit = to_us(clock.now() - ABANDONED_AFTER)
    # In the order in which uploads lock them; one that is locked is being written to just now.
    quiet = (
        select(session.c.session_key)
        .where(session.c.status == "open", session.c.last_received_us < limit)
        .order_by(session.c.session_key)
        .with_for_update(skip_locked=True)
    )
    async with database.transaction() as work:
        changed = await work.connection.scalars(
            update(session)
            .where(session.c.session_key.in_(quiet))
            .values(status="abandoned")
            .returning(session.c.session_key)
        )
        closed = sorted(changed)
        if on_closed is not None and closed:
            await on_closed(work, closed, to_us(clock.now()))
        crash_point("sessions.abandoned.before_commit")
    return len(closed)


async def assign(
    work: UnitOfWork,
    record: SessionRow,
    learner_id: str | None,
    principal: Principal,
    now: datetime,
) -> None:
    """Correct whose session it is; the change is audited and stands against every later upload.

    Raises:
        LearnerUnknownError, LearnerErasedError: there is no such learner (any more).
    """
    learner_key = None
    if learner_id is not None:
        learner_key = (await get_learner(work.connection, learner_id, lock=True)).learner_key
    await work.connection.execute(
        update(session)
        .where(session.c.session_key == record.session_key)
        .values(learner_key=learner_key, owner_basis="staff")
    )
    await audit.record(
        work,
        principal,
        "session.assigned",
        subject=("session", record.session_key),
        now=now,
        detail={"from": record.learner_key or 0, "to": learner_key or 0},
    )
