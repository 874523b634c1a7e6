import json
from datetime import UTC, datetime

import msgspec
from hypothesis import given

from etude.events.cloudevents import to_cloudevent
from etude.events.ndjson import decode_line
from etude.testing.builders import event
from etude.testing.samples import sample_lines

from .strategies import objects

STARTED = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def encoded(line: bytes, started_at: datetime | None) -> dict[str, object]:
    made = msgspec.json.encode(to_cloudevent(decode_line(line), started_at))
    decoded: dict[str, object] = json.loads(made)
    return decoded


def test_the_mapping() -> None:
    """Each attribute comes from the field that the documentation names."""
    line = sample_lines("violin-3min")[1]
    assert encoded(line, STARTED) == {
        "specversion": "1.0",
        "id": "e002",
        "source": "/api/v1/sessions/s-abc-123",
        "type": "etude.event.session_focus",
        "subject": "focus_completed",
        "time": "2026-03-01T08:00:02.500000Z",
        "datacontenttype": "application/json",
        "data": json.loads(line),
    }


def test_no_time_is_made_up() -> None:
    """Without a known begin, or with a `ts` beyond any date, there is no `time`."""
    assert "time" not in encoded(sample_lines("violin-3min")[1], None)
    far = to_cloudevent(event(ts=1e300), STARTED)
    assert "time" not in json.loads(msgspec.json.encode(far))


def test_a_session_id_is_escaped_in_the_source() -> None:
    """`source` is a URI reference whatever the session's id."""
    assert to_cloudevent(event(session_id="练习%1")).source.endswith("/%E7%BB%83%E4%B9%A0%251")


@given(objects())
def test_nothing_is_lost(fields: dict[str, object]) -> None:
    """`data` is the event as sent."""
    assert encoded(json.dumps(fields).encode(), STARTED)["data"] == fields
