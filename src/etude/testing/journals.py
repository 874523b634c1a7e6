"""Journals for tests: so many numbered events, sealed or not."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from etude.edge.journal import Journal, SyncPolicy
from etude.events.model import Event

SEALED_AT: Final = datetime(2026, 3, 1, 9, tzinfo=UTC)


def numbered(number: int, session_id: str = "s-1", **others: Any) -> Event:  # noqa: ANN401 - any field
    """Return event `e<number>` with `seq` and `ts` of that number."""
    return Event(
        event_id=f"e{number:03}",
        session_id=session_id,
        ts=float(number),
        event_type="streak",
        signal="x",
        seq=number,
        **others,
    )


def write_journal(
    root: Path, session_id: str = "s-1", count: int = 3, *, seal: bool = True
) -> Path:
    """Write the journal of a session of `count` numbered events; return its folder."""
    with Journal.open(root, session_id, policy=SyncPolicy.OS) as journal:
        for number in range(1, count + 1):
            journal.append(numbered(number, session_id))
        if seal:
            journal.seal(SEALED_AT)
    return journal.folder
