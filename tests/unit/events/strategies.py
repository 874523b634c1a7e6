"""Hypothesis strategies of events and of lines that try to break the codec."""

import json
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
IDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="/?#"),
    min_size=1,
    max_size=40,
).filter(lambda text: text not in {".", ".."})
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
REQUIRED = {
    "event_id": IDS,
    "session_id": IDS,
    "ts": st.floats(0, 1e9) | st.integers(0, 10**6),
    "event_type": NAMES,
}
OPTIONAL = {
    "phase": st.sampled_from(["preparation", "operation", "cleanup"]) | NAMES | st.just(""),
    "value": JSON_VALUES,
    "confidence": st.none() | st.floats(0, 1) | st.sampled_from([0, 1]),
    "alert_tier": st.none() | st.sampled_from(["high", "medium", "low"]) | NAMES,
    "cloud_review_available": st.none() | st.booleans(),
    "transition_source": st.sampled_from(["ai_detected", "user_manual", "timeout"]) | NAMES,
    "meta": st.none() | st.dictionaries(TEXT, JSON_VALUES, max_size=3),
    "journey_id": st.none() | NAMES,
    "perception_level": st.sampled_from(["L0", "L1", "L2"]),
    "primitive": st.sampled_from(["presence", "sequence", "timing", "quality", "safety"]),
    "correlation_id": st.none() | NAMES,
    "seq": st.none() | st.integers(1, 2**53 - 1) | st.just(3.0),
    "detail": JSON_VALUES,
    "assertion": st.booleans(),
    "coach_line": TEXT,
}
_ANY_VALUE = JSON_VALUES | st.sampled_from(
    [2**53, -(2**53), 10**400, True, "", "a b", "..", "/", "\ud800", "\x00", "x" * 129, "x" * 300]
)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid event as a dict."""
    fields = draw(st.fixed_dictionaries(REQUIRED, optional=OPTIONAL))
    spellings = st.sampled_from([("signal",), ("signal_id",), ("signal", "signal_id")])
    for name in draw(spellings):
        fields[name] = draw(NAMES)
    return dict(draw(st.permutations(list(fields.items()))))


@st.composite
def odd_objects(draw: st.DrawFn) -> dict[str, Any]:
    """Return an event of which some fields are missing, extra or of any type."""
    fields = draw(objects())
    for name in draw(st.lists(st.sampled_from([*fields, "signal", "extra"]), max_size=2)):
        if draw(st.booleans()):
            fields.pop(name, None)
        else:
            fields[name] = draw(_ANY_VALUE)
    return fields


@st.composite
def hostile_lines(draw: st.DrawFn) -> bytes:
    """Return bytes near an event: a wrong field, a cut, a flipped byte, a token put in."""
    line = json.dumps(draw(odd_objects()), ensure_ascii=draw(st.booleans())).encode(
        errors="surrogatepass"
    )
    place = draw(st.integers(0, len(line)))
    inserted = draw(st.sampled_from(TOKENS) | st.binary(max_size=3))
    removed = draw(st.integers(0, 2))
    if draw(st.booleans()):
        line = line[:place] + inserted + line[place + removed :]
    return line


TOKENS = [
    b"",
    b"NaN",
    b"-Infinity",
    b"1e400",
    b"-1E+999",
    b"9007199254740993",
    b"0.30000000000000004",
    b"\\ud800",
    b"\\uDC00",
    b"\\u0000",
    b"\x7f",
    b"\xc2\x85",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"{}",
    b"[" * 70 + b"]" * 70,
    b"{" * 70,
    b'"signal":"again",',
    b'"value":{"a":1,"a":2},',
    b'"ts":1e400,',
    b'"detail":1e400,',
    b'"detail":-123456789012345678,',
    b"\r",
    b"\t",
]
