import json

from etude.events.ndjson import decode_line, encode_event
from etude.testing.builders import session
from etude.testing.samples import import_triple, read_sample, sample_lines


def test_every_line_of_the_example_session_means_the_same_again() -> None:
    """The 13 lines decode and encode to the same meaning; of `e008`'s two values the last stays."""
    lines = sample_lines("violin-3min")
    assert len(lines) == 13
    for line in lines:
        assert json.loads(encode_event(decode_line(line))) == json.loads(line)
    assert lines[7].count(b'"value"') == 2
    assert decode_line(lines[7]).value["edge_assessment"] == "possible_issue"


def test_samples_are_whole_lines() -> None:
    """Each sample ends with a line end, so that a journal can go on behind it."""
    assert read_sample("violin-3min").endswith(b"}\n")
    assert read_sample("phase-timeout").count(b"\n") == 1
    assert read_sample("triples").count(b"\n") == 3


def test_the_timeout_keeps_its_contradiction() -> None:
    """The printed tier `medium` at confidence 1.0 stays as sent."""
    timeout = decode_line(sample_lines("phase-timeout")[0])
    assert (timeout.alert_tier, timeout.confidence) == ("medium", 1.0)
    assert timeout.value["user_response"] == "continue"


def test_the_triple_is_imported() -> None:
    """The three printed steps become events of one correlation, in order, otherwise as printed."""
    printed = [json.loads(line) for line in sample_lines("triples")]
    events = [decode_line(line) for line in import_triple(sample_lines("triples"))]
    assert [one.event_type for one in events] == [one["event_type"] for one in printed]
    assert {one.correlation_id for one in events} == {"c-triple-1"}
    assert [one.ts for one in events] == [1.0, 2.0, 3.0]
    assert events[2].extra == {name: printed[2][name] for name in ("assertion", "coach_line")}
    assert {one.signal for one in events} == {"hand_position_check"}


def test_a_built_session_is_a_good_one() -> None:
    """A built session counts `seq` without gap, visits every phase and is the same each time."""
    events = session(200)
    assert [one.seq for one in events] == list(range(1, 201))
    assert list(dict.fromkeys(one.phase for one in events)) == [
        "preparation",
        "operation",
        "cleanup",
    ]
    assert (events[0].event_type, events[-1].event_type) == ("session_start", "session_end")
    assert any(one.is_doubtful for one in events)
    assert events == session(200)
