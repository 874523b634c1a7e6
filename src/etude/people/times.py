"""Which times a person may name."""

from datetime import UTC, datetime
from typing import Final

from etude.people.errors import TimeOutOfRangeError

FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)


def check_time(at: datetime) -> datetime:
    """Return an aware time in UTC.

    Raises `TimeOutOfRangeError` before 1970, after 9998, and for a time without an offset from
    UTC, which names no instant.
    """
    if at.utcoffset() is None or not FIRST <= at < LAST:
        raise TimeOutOfRangeError(at=at.isoformat())
    return at.astimezone(UTC)
