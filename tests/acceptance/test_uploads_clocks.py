"""Device clocks that are wrong, and sessions on days that have 23 or 25 hours."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from etude.testing.school import body, event

NDJSON = {"Content-Type": "application/x-ndjson"}
NOW = datetime.now(UTC)


def started(session_id: str, at: datetime | str) -> bytes:
    """A session that its device says began `at`; 20 s, written in an order that is not its own."""
    told = at if isinstance(at, str) else at.isoformat()
    start = event(
        session_id, 1, event_type="session_start", signal="session_begin", ts=0.0,
        meta={"started_at": told},
    )  # fmt: skip
    end = event(session_id, 3, event_type="session_end", signal="session_complete", ts=20.0)
    return body(end, event(session_id, 2, ts=10.0), start)


def uploaded(client: httpx2.Client, session_id: str, content: bytes) -> dict[str, Any]:
    answer = client.post(f"/api/v1/sessions/{session_id}/events", content=content, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["events_received"] == content.count(b"\n")
    shown: dict[str, Any] = client.get(f"/api/v1/sessions/{session_id}").json()
    return shown


@pytest.mark.parametrize(
    ("told", "flag"),
    [
        (datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC), "behind"),
        (NOW + timedelta(days=14), "ahead"),
        (NOW + timedelta(days=365 * 40), "ahead"),
        ("yesterday after lunch", "unreadable"),
        ("2026-03-01T08:00:00", "unreadable"),  # without a zone it says nothing
    ],
    ids=["1970", "two_weeks_ahead", "forty_years_ahead", "no_time", "no_zone"],
)
def test_a_wrong_clock_is_accepted_and_flagged(
    toy: httpx2.Client, session_id: str, told: datetime | str, flag: str
) -> None:
    """Stored as sent; the start is estimated from the receipt, flagged; the owner still found."""
    content = started(session_id, told)
    shown = uploaded(toy, session_id, content)
    assert (shown["clock_flag"], shown["started_estimated"]) == (flag, True)
    received = datetime.fromisoformat(shown["first_received_at"])
    estimated = datetime.fromisoformat(shown["started_at"])
    assert received - estimated == timedelta(seconds=20)
    assert (shown["learner_id"], shown["owner_basis"]) == ("anna", "receipt_time")
    lines = toy.get(f"/api/v1/sessions/{session_id}/events").content.splitlines()
    assert lines == sorted(content.splitlines(), key=lambda line: line[:24])
    if isinstance(told, datetime):
        assert datetime.fromisoformat(shown["device_started_at"]) == told


@pytest.mark.parametrize("hours", [-11, 5.5, 8, 14])
def test_another_zone_is_no_fault(toy: httpx2.Client, session_id: str, hours: float) -> None:
    """The instant counts; the zone's distance is kept for whoever shows it."""
    zone = timezone(timedelta(hours=hours))
    at = (NOW - timedelta(hours=3)).astimezone(zone).replace(microsecond=0)
    shown = uploaded(toy, session_id, started(session_id, at))
    assert (shown["clock_flag"], shown["started_estimated"]) == (None, False)
    assert datetime.fromisoformat(shown["started_at"]) == at
    assert shown["utc_offset_min"] == hours * 60
    assert shown["owner_basis"] == "session_time"


@pytest.mark.parametrize(
    ("before", "after", "apart_min"),
    [
        # 2025-10-26: 02:30 twice. 2025-03-30: from 01:59 on to 03:00.
        ("2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+01:00", 60),
        ("2025-03-30T01:45:00+01:00", "2025-03-30T03:15:00+02:00", 30),
    ],
    ids=["hour_twice", "hour_missing"],
)
def test_sessions_across_a_change_of_the_clocks_keep_their_order(
    toy: httpx2.Client, before: str, after: str, apart_min: int
) -> None:
    """Two starts around it are as far apart as they were; no event is flagged or out of order."""
    starts = []
    for told in (after, before):  # the later one is uploaded first
        session_id = f"s-{uuid4()}"
        shown = uploaded(toy, session_id, started(session_id, told))
        assert (shown["clock_flag"], shown["started_estimated"]) == (None, False)
        starts.append(datetime.fromisoformat(shown["started_at"]))
        lines = toy.get(f"/api/v1/sessions/{session_id}/events").content.splitlines()
        assert [line[14:20] for line in lines] == [b"e00001", b"e00002", b"e00003"]
    assert starts[0] - starts[1] == timedelta(minutes=apart_min)


def test_time_running_backwards_keeps_the_order_of_seq(toy: httpx2.Client, session_id: str) -> None:
    """`ts` need not be monotone: `seq` orders, and `ts` comes back as it was sent."""
    events = [event(session_id, number, ts=100.0 - number) for number in (1, 2, 3)]
    uploaded(toy, session_id, body(*reversed(events)))
    back = toy.get(f"/api/v1/sessions/{session_id}/events").content
    assert back == body(*events)


def test_without_seq_the_device_time_orders(toy: httpx2.Client, session_id: str) -> None:
    """`ts`, then `event_id`; never the order of arrival."""
    events = [event(session_id, number, ts=ts) for number, ts in ((1, 1.0), (3, 2.0), (2, 5.0))]
    events = [{k: v for k, v in each.items() if k != "seq"} for each in events]
    uploaded(toy, session_id, body(events[2], events[0], events[1]))
    assert toy.get(f"/api/v1/sessions/{session_id}/events").content == body(*events)


def test_a_late_start_settles_the_time(toy: httpx2.Client, session_id: str) -> None:
    """The first part estimates; `session_start` in a later upload corrects it, once."""
    first = uploaded(toy, session_id, body(event(session_id, 2)))
    assert first["started_estimated"]
    at = NOW - timedelta(days=2)
    content = started(session_id, at).splitlines(keepends=True)[2]
    settled = uploaded(toy, session_id, content)
    assert (settled["started_estimated"], settled["owner_basis"]) == (False, "session_time")
    assert datetime.fromisoformat(settled["started_at"]) == at
