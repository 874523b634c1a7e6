"""Time and identifiers, as values that come in from outside.

Domain code takes a `Clock` or an `Ids`; only the composition roots (web, cli) make the real ones.
All wall-clock times are aware and in UTC; monotonic time is in seconds and has no zero.
"""

import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Clock(Protocol):
    """Where code learns what time it is."""

    def now(self) -> datetime:
        """Wall-clock time: aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""


class Ids(Protocol):
    """Where code gets identifiers that nobody else has."""

    def new(self) -> str:
        """Return a fresh identifier: 36 characters, UUID."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Wall-clock time: aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


class RandomIds:
    """UUIDv4 (`docs/events.md §Fields`: what producers mint)."""

    def new(self) -> str:
        """Return a fresh UUIDv4 in its 36-character form."""
        return str(uuid.uuid4())


def to_us(moment: datetime) -> int:
    """Whole microseconds since 1970 of an aware time: how both databases keep an instant."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(moment_us: int) -> datetime:
    """Aware UTC time of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=moment_us)
