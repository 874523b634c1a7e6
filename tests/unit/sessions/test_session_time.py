from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.sessions.session_time import DeviceStart, place, read_device_start

RECEIVED = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)


def told(text: object) -> tuple[DeviceStart | None, bool]:
    return read_device_start(msgspec.json.encode({"started_at": text, "device": "x"}))


def test_a_start_with_an_offset_is_read_in_utc_and_keeps_its_zone() -> None:
    """RFC 3339 with an offset is the rule; the zone's offset is kept for day borders."""
    start, unreadable = told("2026-03-29T01:59:59.25+01:00")
    assert start == DeviceStart(
        at=datetime(2026, 3, 29, 0, 59, 59, 250_000, tzinfo=UTC), utc_offset_min=60
    )
    assert not unreadable


@pytest.mark.parametrize(
    "text", ["2026-03-29T01:59:59", "soon", "", 5, [], {}, "9999-12-31T23:59:59-23:00"]
)
def test_a_start_that_names_no_instant_is_unreadable(text: object) -> None:
    """A time without offset, of another type or beyond the calendar is no instant."""
    assert told(text) == (None, True)


@pytest.mark.parametrize("meta", [b"{}", b'{"started_at":null}'])
def test_an_absent_start_is_not_unreadable(meta: bytes) -> None:
    """Devices without a clock say nothing, which is no mistake."""
    assert read_device_start(meta) == (None, False)


@given(st.datetimes(timezones=st.just(UTC)), st.floats(min_value=0, allow_nan=False))
def test_a_session_never_begins_after_it_was_received(at: datetime, last_ts_s: float) -> None:
    """Whatever a device says, the corrected start is at most the tolerance after the receipt."""
    time = place(
        DeviceStart(at=at, utc_offset_min=0),
        unreadable=False,
        received=RECEIVED,
        last_ts_s=last_ts_s,
    )
    assert time.started <= RECEIVED + timedelta(minutes=10)
    assert time.estimated == (time.flag is not None)


def test_a_session_across_the_change_to_summer_time_keeps_its_seconds() -> None:
    """DST moves the offset, not the instant: 01:30+01:00 and 03:30+02:00 are an hour apart."""
    before, _ = told("2026-03-29T01:30:00+01:00")
    after, _ = told("2026-03-29T03:30:00+02:00")
    assert before is not None
    assert after is not None
    assert after.at - before.at == timedelta(hours=1)
