"""What must be visible as soon as events are: rows kept beside them, in the same transaction.

A projector says which types of events it is about and is asked only when such events were stored;
an upload without them costs nothing. Slow work is a job's (`docs/rules.md 46`). The processes'
roots pass projectors to `etude.sessions.ingest.Ingest`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

from etude.sessions.batch import SentEvent
from etude.store.work import UnitOfWork

Stored: TypeAlias = Mapping[int, Sequence[SentEvent]]
"""By session key: the events that this transaction stored for the first time."""


class Projector(Protocol):
    """Keeps rows that follow from events."""

    @property
    def event_types(self) -> Collection[str] | None:
        """The types of events that it wants to see; None = every one."""

    async def project(self, work: UnitOfWork, stored: Stored) -> None:
        """Take in new events of `event_types`, in the transaction that stores them.

        What it raises refuses the uploads of the whole transaction: it must fail only where the
        database does. The sessions are locked until the end.
        """


def chosen(stored: Stored, event_types: Collection[str] | None) -> Stored:
    """Return those events that are of one of the types; sessions without any are left out."""
    if event_types is None:
        return stored
    picked = {
        session_key: [sent for sent in events if sent.columns.event_type in event_types]
        for session_key, events in stored.items()
    }
    return {session_key: events for session_key, events in picked.items() if events}
