"""When a session is examined: asked for in the transaction of what calls for it.

The rules (`docs/rules.md 27`):

* `session_end` is there and no `seq` is missing: at once.
* It is there and some are missing: 10 s after the last upload.
* It never comes: when the session is given up.
* A session that has a report already: changes are gathered for 30 s into one revision.
* A recording that arrives later is a change too.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from etude.clock import Clock, from_us, to_us
from etude.examiner import repository
from etude.files import crash_point
from etude.jobs import ask_again
from etude.sessions import repository as sessions
from etude.sessions.instances import InstanceProjector
from etude.sessions.projectors import Projector, Stored
from etude.sessions.records import SessionRow
from etude.store.work import UnitOfWork

EXAMINE: Final = "examiner.examine"
REWORD: Final = "examiner.reword"
GAP_WAIT: Final = timedelta(seconds=10)
GATHER: Final = timedelta(seconds=30)


class ReportProjector:
    """Asks for a report when events say that one is due."""

    event_types: Collection[str] | None = None

    def __init__(self, clock: Clock) -> None:
        """`clock` says from when on the waits count."""
        self._clock = clock

    async def project(self, work: UnitOfWork, stored: Stored) -> None:
        """See `etude.sessions.projectors.Projector.project`."""
        rows = await sessions.by_keys(work.connection, stored.keys())
        reported = {
            key: head
            for key, head in (await repository.heads(work.connection, rows.keys())).items()
            if head.revision or head.refused
        }
        ended = [row for key, row in rows.items() if row.ended and key not in reported]
        now = self._clock.now()
        await ask(work, reported, now + GATHER, now)
        await ask(work, (row.session_key for row in ended if is_whole(row)), now, now)
        incomplete = (row.session_key for row in ended if not is_whole(row))
        await ask(work, incomplete, now + GAP_WAIT, now, postpone=True)


def projectors(clock: Clock) -> Sequence[Projector]:
    """Return all projectors of the product, in the order in which ingest asks them."""
    return (InstanceProjector(), ReportProjector(clock))


def is_whole(row: SessionRow) -> bool:
    """Say whether nothing is missing below the highest `seq` that has arrived."""
    return row.max_seq is None or row.watermark == row.max_seq


async def ask(
    work: UnitOfWork,
    session_keys: Iterable[int],
    run_after: datetime,
    now: datetime,
    *,
    postpone: bool = False,
) -> None:
    """Ask for revisions; their sessions are locked. `postpone` as for `ask_again`."""
    keys = sorted(session_keys)
    if not keys:
        return
    await repository.note_asked(work, keys, to_us(now))
    args = {str(key): {"session_key": key} for key in keys}
    await ask_again(work, EXAMINE, args, run_after=run_after, postpone=postpone, now=now)
    crash_point("examiner.examine.asked")


async def ask_to_reword(work: UnitOfWork, session_key: int, now: datetime) -> None:
    """Ask a model for other words, in the transaction that adds the revision; it is locked."""
    args = {str(session_key): {"session_key": session_key}}
    await ask_again(work, REWORD, args, run_after=now, now=now)


async def sessions_abandoned(work: UnitOfWork, session_keys: Sequence[int], now_us: int) -> None:
    """Ask for the reports of sessions that were just given up."""
    now = from_us(now_us)
    await ask(work, session_keys, now, now)


async def recording_arrived(work: UnitOfWork, session_key: int, now_us: int) -> None:
    """Ask for another revision of a session that has one; the first finds the recording anyway."""
    now = from_us(now_us)
    if (await repository.head(work.connection, session_key)).revision:
        await ask(work, [session_key], now + GATHER, now)
