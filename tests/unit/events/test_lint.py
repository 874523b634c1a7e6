import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.lint import CODES, Finding, lint
from etude.events.ndjson import split_lines
from etude.i18n import LOCALES
from etude.testing.samples import Sample, import_triple, read_sample, sample_lines

from .strategies import hostile_lines

GOOD: dict[str, Any] = {
    "event_id": "e1",
    "session_id": "s1",
    "ts": 1,
    "event_type": "posture_observation",
    "phase": "operation",
    "signal": "bow_hold_check",
    "value": {"correct": True},
    "confidence": 0.9,
    "alert_tier": "high",
}


def findings(body: bytes) -> list[Finding]:
    return list(lint(split_lines([body])))


def codes_of(**changes: Any) -> list[str]:
    return [one.code for one in findings(json.dumps(GOOD | changes).encode())]


def test_a_good_line_has_no_finding() -> None:
    """A line that keeps every convention is not linted."""
    assert codes_of() == []


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("unknown_event_type", {"event_type": "yawn_observation"}),
        ("signal_alias_conflict", {"signal_id": "left_hand_position"}),
        ("unknown_value", {"alert_tier": "urgent"}),
        ("unknown_value", {"perception_level": "L9"}),
        ("unknown_value", {"primitive": "speed"}),
        ("tier_mismatch", {"alert_tier": "medium"}),
        ("review_not_offered", {"confidence": 0.4, "alert_tier": "low"}),
        ("transition_source_misplaced", {"transition_source": "timeout"}),
        ("correlation_missing", {"event_type": "signal_observation"}),
        (
            "assertion_missing",
            {"event_type": "signal_detected", "correlation_id": "c", "assertion": 1},
        ),
        ("started_at_invalid", {"meta": {"started_at": "2026-03-01T08:00:00"}}),
        ("started_at_invalid", {"meta": {"started_at": 5}}),
        ("value_shape", {"value": {"correct": "yes"}}),
        ("value_shape", {"value": 5}),
        ("value_shape", {"signal": "pitch_accuracy", "value": {"accuracy": 91}}),
        ("unknown_phase", {"phase": "warm_up"}),
    ],
)
def test_a_broken_convention_has_its_code(code: str, changes: dict[str, Any]) -> None:
    """Each convention that a line breaks is found, alone, by its code."""
    assert codes_of(**changes) == [code]


@pytest.mark.parametrize(
    "changes",
    [
        {"value": {}},
        {"value": {"edge_assessment": "possible_issue", "note": "?"}},
        {"meta": {"started_at": "1970-01-01T00:00:00Z"}},
        {"phase": ""},
        {"event_type": "phase_timeout", "value": {}, "transition_source": "timeout"},
        {"confidence": None, "alert_tier": None},
        {"confidence": 0.4, "alert_tier": "low", "cloud_review_available": True},
        {"signal_id": "bow_hold_check"},
    ],
)
def test_what_is_allowed_is_not_linted(changes: dict[str, Any]) -> None:
    """Allowed spellings and absences are no findings."""
    assert codes_of(**changes) == []


@pytest.mark.parametrize("place", ["value", "meta", "detail"])
def test_a_key_repeated_at_any_depth_is_found(place: str) -> None:
    """`duplicate_key` is found in nested objects and names the key."""
    line = json.dumps(GOOD | {place: {"deep": ["@"]}, "event_type": "x_y", "phase": None})
    (found, *_) = findings(line.replace('"@"', '{"twice":1,"twice":1}').encode())
    assert (found.code, found.params) == ("duplicate_key", {"key": "twice"})


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("violin-3min", [(8, "e008", "duplicate_key")]),
        ("phase-timeout", [(1, "e-timeout-1", "tier_mismatch")]),
    ],
)
def test_the_protocols_examples(sample: Sample, expected: list[tuple[int, str, str]]) -> None:
    """The protocol's own lines are accepted; what it does against itself is linted."""
    found = findings(read_sample(sample))
    assert [(one.line, one.event_id, one.code) for one in found] == expected


def test_the_protocols_triple() -> None:
    """The printed triple needs ids; completed, only its tier contradicts its confidence."""
    printed = findings(read_sample("triples"))
    assert [(one.code, one.params["field"]) for one in printed] == [
        ("missing_field", "event_id")
    ] * 3
    completed = findings(b"\n".join(import_triple(sample_lines("triples"))))
    assert [(one.line, one.code) for one in completed] == [(3, "tier_mismatch")]


def test_a_refused_line_is_a_finding_of_its_own() -> None:
    """Refused lines carry the line error's code and number and hide no neighbour."""
    body = b"\n".join([b"{", b"", json.dumps(GOOD).encode(), b"x" * 70_000, b"[]"])
    found = findings(body)
    assert [(one.line, one.code, one.is_rejected) for one in found] == [
        (1, "invalid_json", True),
        (4, "too_long", True),
        (5, "bad_type", True),
    ]


def test_phases_of_the_rubric_are_known() -> None:
    """Phases that the session's rubric names are no finding."""
    lines = split_lines([json.dumps(GOOD | {"phase": "rescue"}).encode()])
    assert list(lint(lines, phases={"rescue"})) == []


@given(st.lists(hostile_lines(), max_size=4))
def test_any_body_can_be_linted_in_every_language(lines: list[bytes]) -> None:
    """Whatever the body, lint ends, knows its codes and has a sentence for each finding."""
    for found in findings(b"\n".join(lines)):
        assert found.is_rejected or found.code in CODES
        for locale in LOCALES:
            assert found.message(locale)


def test_a_long_journal_is_linted_in_bounded_memory() -> None:
    """Twenty thousand lines take no more memory than a few."""
    line = json.dumps(GOOD).encode() + b"\n"
    tracemalloc.start()
    assert sum(1 for _ in lint(split_lines(line for _ in range(20_000)))) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
