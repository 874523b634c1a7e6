"""When a session took place, from three clocks of which none is trusted alone.

`ts` is the device's monotonic time, `meta.started_at` its wall clock, the time of receipt ours
(`docs/sessions.md §When it was`). None is ever rewritten: what is worked out here goes into derived
columns. A start that cannot be true is flagged and replaced by an estimate: received minus what the
session lasted.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

# Devices drift, and a request takes time: a start this little after its receipt is believed.
TOLERANCE: Final = timedelta(minutes=10)
# No session is older than the format; a device without a battery wakes up in 1970.
EARLIEST: Final = datetime(2024, 1, 1, tzinfo=UTC)
# A longer "session" is a broken counter, useless for an estimate.
LONGEST: Final = timedelta(days=31)


class DeviceStart(msgspec.Struct, frozen=True, kw_only=True):
    """`meta.started_at` as the device told it: `at` in UTC, and its zone's distance from UTC."""

    at: datetime
    utc_offset_min: int


class SessionTime(msgspec.Struct, frozen=True, kw_only=True):
    """The start to order and count by. `flag`: `ahead`, `behind`, `unreadable` or None."""

    started: datetime
    estimated: bool
    flag: str | None


class _Meta(msgspec.Struct):
    started_at: msgspec.Raw = msgspec.Raw(b"null")


def read_device_start(meta: bytes) -> tuple[DeviceStart | None, bool]:
    """Read `started_at` out of a `meta` object; the second value says that it was unreadable.

    RFC 3339 with an offset is the rule; a time without one says nothing about when it was.
    """
    try:
        told = msgspec.json.decode(
            msgspec.json.decode(meta, type=_Meta).started_at, type=str | None
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, True
    if told is None:
        return None, False
    try:
        at = datetime.fromisoformat(told)
        offset = at.utcoffset()
        if offset is None:
            return None, True
        return DeviceStart(
            at=at.astimezone(UTC), utc_offset_min=round(offset / timedelta(minutes=1))
        ), False
    except (ValueError, OverflowError):
        return None, True


def place(
    device: DeviceStart | None, *, unreadable: bool, received: datetime, last_ts_s: float
) -> SessionTime:
    """Decide when a session began that was first `received` then and lasted to `last_ts_s`."""
    lasted = timedelta(seconds=last_ts_s) if last_ts_s <= LONGEST.total_seconds() else timedelta()
    if device is None:
        flag = "unreadable" if unreadable else None
    elif device.at > received + TOLERANCE:
        flag = "ahead"
    elif device.at < EARLIEST:
        flag = "behind"
    else:
        return SessionTime(started=device.at, estimated=False, flag=None)
    return SessionTime(started=received - lasted, estimated=True, flag=flag)
