import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.sessions.batch import MAX_LINES, read_batch
from etude.sessions.errors import NoValidLineError, TooManyLinesError
from etude.testing.school import body, event

GOOD = body(event("s1", 1))


def test_a_body_of_refused_lines_only_is_refused_with_the_first_twenty() -> None:
    """All lines bad: one error for the body that names the first 20 lines."""
    with pytest.raises(NoValidLineError) as caught:
        read_batch(b"x\n" * 30, "s1")
    assert caught.value.params["rejected"] == 30
    assert [part.params["line"] for part in caught.value.parts] == list(range(1, 21))


def test_blank_lines_are_numbered_and_count_nowhere() -> None:
    """CRLF, blank lines and a missing last line end are all read as they are meant."""
    batch = read_batch(b"\r\n  \n" + GOOD.replace(b"\n", b"\r\n") + b"oops", "s1")
    assert (len(batch.events), batch.rejected, batch.errors[0].line) == (1, 1, 4)
    assert batch.events[0].line + b"\n" == GOOD


def test_too_many_lines_refuse_the_whole_body() -> None:
    """20,000 lines pass; one more is a 413 for all of them."""
    read_batch(GOOD * MAX_LINES, "s1")
    with pytest.raises(TooManyLinesError):
        read_batch(GOOD * (MAX_LINES + 1), "s1")


def test_the_start_is_read_from_session_start_wherever_it_stands() -> None:
    """`meta.started_at` of the session's own start wins over other events' meta."""
    begin = event("s1", 7, event_type="session_start", meta={"started_at": "2026-01-01T00:00:00Z"})
    batch = read_batch(
        body(event("s1", 1, meta={"started_at": "2020-01-01T00:00:00Z"}), begin), "s1"
    )
    assert batch.device_start is not None
    assert batch.device_start.at.year == 2026


def test_a_device_cannot_say_that_the_server_made_an_event() -> None:
    """`meta.producer: server` is the server's own word: such a line is refused by itself."""
    forged = event("s1", 2, meta={"producer": "server"})
    honest = event("s1", 3, meta={"producer": "edge", "device": "toy"})
    batch = read_batch(body(event("s1", 1), forged, honest), "s1")
    assert [sent.columns.event_id for sent in batch.events] == ["e00001", "e00003"]
    assert (batch.errors[0].code, batch.errors[0].params["field"]) == ("bad_type", "meta.producer")


@given(st.lists(st.one_of(st.just(GOOD.strip()), st.binary(max_size=40))))
def test_every_line_that_is_not_blank_is_received_or_rejected(lines: list[bytes]) -> None:
    """`lines = received + rejected`, whatever the bytes are."""
    sent = b"\n".join(lines)
    count = sum(1 for line in sent.split(b"\n") if line.strip())
    assert _received_and_rejected(sent) == count


def _received_and_rejected(sent: bytes) -> int | str | float:
    try:
        batch = read_batch(sent, "s1")
    except NoValidLineError as error:
        return error.params["rejected"]
    return len(batch.events) + batch.rejected
