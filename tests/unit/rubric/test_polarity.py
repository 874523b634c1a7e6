import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.vocabulary import VOCABULARY
from etude.rubric.errors import PolarityTableInvalidError
from etude.rubric.polarity import PolarityTable, default_table, load_table, look_up
from etude.rubric.recap import recap
from etude.testing.builders import event


def table(*rules: dict[str, Any], phases: tuple[str, ...] = ("rescue",)) -> PolarityTable:
    return load_table(
        json.dumps({"table_version": 1, "phases": phases, "rules": list(rules)}).encode()
    )


def test_the_default_table_names_types_of_the_vocabulary() -> None:
    """Every event type in the default table is one of the protocol's."""
    named = {name for rule in default_table().rules for name in rule.event_types or ()}
    assert named <= set(VOCABULARY)


def test_the_first_rule_that_can_tell_decides() -> None:
    """Rules are tried from the top; one that lacks its measure leaves the event to the next."""
    made = table(
        {"signal": "depth", "measure": "value.mm", "positive": {"at_least": 50}},
        {"signal": "depth", "counts": "issue"},
        {"counts": "positive"},
    )
    assert made.counts(event(signal="depth", value={"mm": 50})) == "positive"
    assert made.counts(event(signal="depth", value={"mm": 49.9})) == "issue"
    assert made.counts(event(signal="depth", value={"mm": "deep"})) == "issue"
    assert made.counts(event(signal="rate")) == "positive"


def test_a_rubric_can_invert_and_add_phases() -> None:
    """`assertion: false` can be the good news, and a rubric's own phases lead the summary."""
    inverted = table({"signal": "gap", "measure": "assertion", "positive": {"equals": False}})
    judged = event(
        event_type="signal_detected",
        signal="gap",
        value={},
        phase="rescue",
        extra={"assertion": False},
    )
    made = recap([judged], inverted)
    assert list(made.phase_summary) == ["rescue"]
    assert made.phase_summary["rescue"].positive == 1


def test_between_good_and_bad_may_lie_nothing() -> None:
    """With `issue`, a value that is neither good nor an issue counts nowhere."""
    made = table({"measure": "value.rate", "positive": {"at_least": 100}, "issue": {"at_most": 80}})
    verdicts = [made.counts(event(value={"rate": rate})) for rate in (100, 90, 80)]
    assert verdicts == ["positive", "nowhere", "issue"]


@pytest.mark.parametrize(
    ("condition", "good", "bad", "incomparable"),
    [
        ({"equals": True}, [True], [False], [1, "true", None]),
        ({"equals": "ok"}, ["ok"], ["no"], [True, 1, None]),
        ({"equals": 2}, [2, 2.0], [3], [True, "2", None]),
        ({"at_least": 0.8}, [0.8, 1], [0.79], [True, "1", None, []]),
        ({"at_most": 3}, [3, -1], [3.1], [False, {}, None]),
        ({"one_of": ["a", "b"]}, ["a"], ["c"], [1, None, ["a"]]),
    ],
)
def test_conditions(
    condition: dict[str, Any], good: list[Any], bad: list[Any], incomparable: list[Any]
) -> None:
    """A condition holds, fails, or cannot compare values of another JSON type."""
    made = table({"measure": "value.x", "positive": condition})
    for values, expected in ((good, "positive"), (bad, "issue"), (incomparable, None)):
        assert [made.counts(event(value={"x": one})) for one in values] == [expected] * len(values)


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b'{"table_version": 2, "phases": ["a"], "rules": []}',
        b'{"table_version": 1, "phases": [], "rules": []}',
        b'{"table_version": 1, "phases": ["a"], "rules": [], "extra": 1}',
        *(
            json.dumps({"table_version": 1, "phases": ["a"], "rules": [rule]}).encode()
            for rule in (
                {},
                {"counts": "sometimes"},
                {"measure": "value.x"},
                {"positive": {"equals": True}},
                {"counts": "positive", "measure": "value.x", "positive": {"equals": True}},
                {"measure": "value.x", "positive": {}},
                {"measure": "value.x", "positive": {"at_least": 1, "at_most": 2}},
                {"measure": "value.x", "positive": {"greater": 1}},
            )
        ),
    ],
)
def test_a_table_that_breaks_its_form_is_refused(document: bytes) -> None:
    """A table that says nothing, or two things, is `POLARITY_TABLE_INVALID`."""
    with pytest.raises(PolarityTableInvalidError):
        load_table(document)


@given(st.text(max_size=20), st.none() | st.integers() | st.lists(st.integers(), max_size=2))
def test_any_path_can_be_looked_up(path: str, value: object) -> None:
    """A path leads to what is there or to nothing, never to an error."""
    look_up(event(value=value), path)
    assert look_up(event(value={"a": {"b": value}}), "value.a.b") == value
