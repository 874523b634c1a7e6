"""When a session's turns are assessed: asked for in the transaction of what calls for it.

* A recording arrives: soon (the live lane; best effort, a few turns at a time).
* `session_end` arrives, or the session is given up: at once (the sweep, which leaves none out).
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from etude.clock import Clock, from_us
from etude.files import crash_point
from etude.jobs import ask_again
from etude.sessions.projectors import Stored
from etude.store.work import UnitOfWork

ASSESS: Final = "assess.turns"
SOON: Final = timedelta(seconds=1)


class AssessProjector:
    """Asks for assessment when a session has ended, or a turn came after its end."""

    event_types: Collection[str] | None = frozenset({"session_end", "signal_observation"})

    def __init__(self, clock: Clock) -> None:
        """`clock` says from when on."""
        self._clock = clock

    async def project(self, work: UnitOfWork, stored: Stored) -> None:
        """See `etude.sessions.projectors.Projector.project`."""
        now = self._clock.now()
        ended = {
            key
            for key, events in stored.items()
            if any(sent.columns.event_type == "session_end" for sent in events)
        }
        await ask(work, ended, now, now)
        await ask(work, stored.keys() - ended, now + SOON, now)


async def ask(
    work: UnitOfWork, session_keys: Iterable[int], run_after: datetime, now: datetime
) -> None:
    """Ask for the assessment of what sessions hold; they are locked."""
    args = {str(key): {"session_key": key} for key in session_keys}
    if not args:
        return
    await ask_again(work, ASSESS, args, run_after=run_after, now=now)
    crash_point("assess.turns.asked")


async def sessions_abandoned(work: UnitOfWork, session_keys: Sequence[int], now_us: int) -> None:
    """Ask for sessions that were just given up."""
    await ask(work, session_keys, from_us(now_us), from_us(now_us))


async def recording_arrived(work: UnitOfWork, session_key: int, now_us: int) -> None:
    """Ask for the session of a recording: its turn could not be heard before."""
    now = from_us(now_us)
    await ask(work, [session_key], now + SOON, now)
