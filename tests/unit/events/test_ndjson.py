import itertools
import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.events import ndjson, strict
from etude.events.errors import LineError, NotEncodableError
from etude.events.model import Event
from etude.events.ndjson import Scanned, decode_line, encode_event, scan_line, split_lines

from .strategies import hostile_lines, objects

GOOD = {"event_id": "e1", "session_id": "s1", "ts": 1.5, "event_type": "streak", "signal": "x"}


def line_of(**changes: Any) -> bytes:
    fields = GOOD | changes
    return json.dumps({k: v for k, v in fields.items() if v is not ...}, ensure_ascii=False).encode(
        errors="surrogatepass"
    )


def refusal(line: bytes, session_id: str | None = None) -> tuple[str, object]:
    with pytest.raises(LineError) as scanned:
        scan_line(line, 7, session_id)
    with pytest.raises(LineError) as decoded:
        decode_line(line, 7, session_id)
    assert type(scanned.value) is type(decoded.value)
    assert scanned.value.params == decoded.value.params
    assert scanned.value.line == 7
    return scanned.value.code, scanned.value.params.get("field")


@given(objects())
def test_a_line_decoded_and_encoded_again_means_the_same(fields: dict[str, object]) -> None:
    """Aliases, nulls, key order and unknown fields survive decoding and encoding."""
    again = json.loads(encode_event(decode_line(json.dumps(fields).encode())))
    assert again == fields
    assert list(again) == list(fields)


@given(hostile_lines())
@example(line_of(detail=10**20))
@example(b'{"a":"\xff"}')
def test_the_fast_and_the_full_path_agree(line: bytes) -> None:
    """What a line says, and what is wrong with it, does not depend on which path read it."""
    verdicts = []
    for read in (scan_line, ndjson._scan_fully):
        try:
            scanned = read(line, 1, None)
            verdicts.append([getattr(scanned, name) for name in COLUMNS] + [meta_of(scanned)])
        except LineError as error:
            verdicts.append((error.code, error.params))
    assert verdicts[0] == verdicts[1]


COLUMNS = [name for name in ndjson.Scanned.__struct_fields__ if name not in {"meta", "signal_id"}]


def meta_of(scanned: Scanned) -> object:
    raw = scanned.meta
    return None if raw is msgspec.UNSET else json.loads(bytes(raw))


@given(hostile_lines())
def test_a_hostile_line_is_read_or_refused_with_a_code(line: bytes) -> None:
    """No line raises anything but a LineError, and what is accepted can be written again."""
    try:
        event = decode_line(line)
    except LineError as refused:
        code = refused.code
    else:
        assert decode_line(encode_event(event)) == event
        return
    assert code in {"invalid_json", "missing_field", "bad_type"}


@pytest.mark.parametrize("name", ["event_id", "session_id", "ts", "event_type", "signal"])
def test_a_required_field_is_missed_by_name(name: str) -> None:
    """An event without a required field is refused with `missing_field` and the field's name."""
    assert refusal(line_of(**{name: ...})) == ("missing_field", name)
    assert refusal(line_of(**{name: None})) == ("bad_type", name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("event_id", bad) for bad in ["", "a b", "a\u3000b", "a\x00", "a/b", "a?", "#", "..", 5]),
        *(("session_id", bad) for bad in ["x" * 129, ".", "a\tb", "\u2028", ["s"]]),
        *(("ts", bad) for bad in [-0.1, "1.0", True, {}]),
        *(("confidence", bad) for bad in [-0.01, 1.01, "0.5", False]),
        *(("event_type", bad) for bad in ["", 1, "a\u0000b", "x" * 257]),
        *(("signal", bad) for bad in ["", 1, "a\nb"]),
        *(("phase", bad) for bad in [1, "a\x7f", "x" * 257]),
        *(("meta", bad) for bad in [[], "device", 1]),
        *(("seq", bad) for bad in [0, -1, 1.5, "1", True]),
        *(("alert_tier", bad) for bad in [1, []]),
        *(("cloud_review_available", bad) for bad in [0, "true"]),
        ("transition_source", 1),
        ("perception_level", 2),
        ("primitive", {}),
        ("journey_id", 1),
        ("correlation_id", "a\u0085"),
    ],
)
def test_a_wrong_value_is_bad_type_and_names_its_field(field: str, value: object) -> None:
    """A value of the wrong type or range is refused with `bad_type` and the field's name."""
    assert refusal(line_of(**{field: value})) == ("bad_type", field)


@pytest.mark.parametrize(
    "raw",
    [b"9007199254740992", b"-9007199254740992", b"1" * 5000, b'[{"deep":10000000000000000}]'],
    ids=["positive", "negative", "5000 digits", "nested"],
)
def test_an_integer_beyond_double_precision_is_bad_type_anywhere(raw: bytes) -> None:
    """Integers that not every JSON reader keeps exact are refused, in unknown fields too."""
    assert refusal(line_of(detail="@").replace(b'"@"', raw)) == ("bad_type", "$")


@pytest.mark.parametrize("number", [b"1e400", b"-1E+309", b"[0,1.5e999]", b'{"x":1e0400}'])
def test_a_number_beyond_a_double_is_bad_type_anywhere(number: bytes) -> None:
    """A number that would become infinite is refused, in unknown fields too."""
    assert refusal(line_of(detail="@").replace(b'"@"', number)) == ("bad_type", "$")


@pytest.mark.parametrize("integer", [2**53 - 1, -(2**53) + 1])
def test_the_largest_exact_integers_are_accepted(integer: int) -> None:
    """±(2^53 - 1) is inside the range."""
    assert decode_line(line_of(value=integer)).value == integer


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"nonsense",
        line_of() + line_of(),
        line_of() + b" 1",
        line_of(ts="@").replace(b'"@"', b"NaN"),
        line_of(value="@").replace(b'"@"', b"-Infinity"),
        line_of(value="@").replace(b'"@"', b"01"),
        line_of(value="@").replace(b"@", b"\x01"),
        line_of(value="@").replace(b"@", b"\xff"),
        line_of(value="@").replace(b"@", b"\xed\xa0\x80"),
        b"\xef\xbb\xbf" + line_of(),
        json.dumps(GOOD).encode("utf-16"),
    ],
)
def test_what_is_not_one_json_text_is_invalid_json(line: bytes) -> None:
    """Broken JSON, two texts on a line, NaN, bad UTF-8 and byte order marks are `invalid_json`."""
    assert refusal(line)[0] == "invalid_json"


@pytest.mark.parametrize("line", [b"[]", b"null", b'"text"', b"1"])
def test_json_that_is_no_object_is_bad_type(line: bytes) -> None:
    """A line whose JSON is no object is refused with `bad_type` for the line as a whole."""
    assert refusal(line) == ("bad_type", "$")


@pytest.mark.parametrize("depth", [63, 10_000])
def test_nesting_is_bounded_by_a_typed_error(depth: int) -> None:
    """64 levels are accepted with the object's own; thousands give `bad_type`, never a crash."""
    deep = line_of(value="@").replace(b'"@"', b"[" * depth + b"]" * depth)
    if depth < strict.MAX_DEPTH:
        assert decode_line(deep).signal == "x"
    else:
        assert refusal(deep) == ("bad_type", "$")


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    """A text full of brackets is no deep object."""
    text = '[{"\\' * 5000
    assert decode_line(line_of(value=text)).value == text


@pytest.mark.parametrize("field", ["signal", "value", "detail"])
def test_a_lone_surrogate_is_bad_type_anywhere(field: str) -> None:
    """A lone surrogate is refused; a pair is a character."""
    line = line_of(**{field: "@"})
    assert refusal(line.replace(b"@", b"\\ud800x")) == ("bad_type", field)
    assert refusal(line.replace(b"@", b"\\uDC00")) == ("bad_type", field)
    assert (
        json.loads(encode_event(decode_line(line.replace(b"@", b"\\ud83c\\udfbb"))))[field] == "🎻"
    )


def test_a_line_over_64_kib_is_too_long() -> None:
    """65,536 bytes are accepted, one more is refused by itself."""
    line = line_of(value="")
    fitting = line_of(value="x" * (ndjson.MAX_LINE_BYTES - len(line)))
    assert scan_line(fitting, 1, None).event_id == "e1"
    assert refusal(fitting + b" ")[0] == "too_long"


def test_an_event_of_another_session_is_refused() -> None:
    """`wrong_session` is said only where a session was addressed."""
    assert refusal(line_of(), "s2")[0] == "wrong_session"
    assert scan_line(line_of(), 1, "s1").session_id == "s1"


def test_of_duplicate_keys_the_last_wins() -> None:
    """The last of two equal keys counts, even if the first had a wrong type."""
    line = b'{"confidence":"x",' + line_of(confidence=0.5, value={"last": 1})[1:]
    assert decode_line(line.replace(b'"value"', b'"value":[],"value"')).value == {"last": 1}
    assert scan_line(line, 1, None).confidence == 0.5


def test_signal_id_is_an_alias() -> None:
    """`signal_id` names the signal where `signal` is absent, and only there."""
    aliased = line_of(signal=..., signal_id="hand")
    assert decode_line(aliased).signal == scan_line(aliased, 1, None).signal == "hand"
    both = line_of(signal_id="hand")
    assert decode_line(both).signal == scan_line(both, 1, None).signal == "x"
    assert decode_line(both).extra == {"signal_id": "hand"}


@pytest.mark.parametrize(
    ("confidence", "tier"),
    [(1, "high"), (0.85, "high"), (0.849, "medium"), (0.5, "medium"), (0.49, "low"), (None, None)],
)
def test_the_tier_is_derived_when_absent(confidence: float | None, tier: str | None) -> None:
    """High from 0.85, medium from 0.5, low below, none without a confidence."""
    line = line_of(confidence=confidence)
    assert decode_line(line).alert_tier == scan_line(line, 1, None).alert_tier == tier
    assert b"alert_tier" not in encode_event(decode_line(line))


def test_a_tier_that_was_sent_is_kept() -> None:
    """A tier that contradicts the confidence, or that nobody knows, stays as sent."""
    for tier in ("medium", "urgent"):
        line = line_of(confidence=1.0, alert_tier=tier)
        assert decode_line(line).alert_tier == scan_line(line, 1, None).alert_tier == tier


def test_a_v01_line_loads() -> None:
    """A line of v0.1, without confidence and everything later, is an event with nulls."""
    event = decode_line(line_of(phase="operation", value={"correct": True}))
    assert (event.confidence, event.alert_tier, event.seq, event.meta) == (None, None, None, None)
    assert not event.is_doubtful


def test_a_built_event_is_written_in_the_order_of_the_protocol() -> None:
    """A new event is one line: protocol fields in order, unknown ones last, no nulls."""
    event = Event(**GOOD, confidence=0.3, seq=1, extra={"assertion": True})
    assert encode_event(event) == (
        b'{"event_id":"e1","session_id":"s1","ts":1.5,"event_type":"streak","signal":"x",'
        b'"value":{},"confidence":0.3,"alert_tier":"low","cloud_review_available":false,"seq":1,'
        b'"assertion":true}'
    )
    assert event.is_doubtful


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes", "\ud800"])
def test_what_json_cannot_say_is_not_written(value: object) -> None:
    """A value that would be lost or changed is refused with `EVENT_NOT_ENCODABLE`."""
    with pytest.raises(NotEncodableError):
        encode_event(Event(**GOOD, value=value))


@given(
    lines=st.lists(st.sampled_from([b"", b" ", b"{}", b"\xe9\x9f\xb3", b"a b"]), max_size=8),
    end=st.sampled_from([b"\n", b"\r\n"]),
    closed=st.booleans(),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_lines_do_not_depend_on_how_the_body_is_cut(
    lines: list[bytes], end: bytes, *, closed: bool, cuts: list[int]
) -> None:
    """Any chunking of a body yields the same numbered lines; blank ones are numbered, left out."""
    body = end.join(lines) + (end if closed else b"")
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[a:b] for a, b in itertools.pairwise(places)]
    expected = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    assert list(split_lines(chunks)) == expected


def test_an_endless_line_is_refused_without_being_held() -> None:
    """A line of 50 MB costs no memory, gets one `too_long`, and its neighbours are read."""
    chunks = [b"first\n", *[b"x" * 65_536] * 800, b"\nlast"]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = [(n, getattr(line, "code", line)) for n, line in split_lines(iter(chunks))]
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert found == [(1, b"first"), (2, "too_long"), (3, b"last")]
    assert peak < 1_000_000


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_limit_counts_content_without_line_end(end: bytes) -> None:
    """A line of exactly the limit passes whatever ends it."""
    line = b"x" * ndjson.MAX_LINE_BYTES
    assert list(split_lines([line, end])) == [(1, line)]
    ((number, refused),) = split_lines([line + b"x", end])
    assert (number, refused.code) == (1, "too_long")
