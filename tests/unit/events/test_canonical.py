import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.canonical import canonical, same_content
from etude.events.errors import LineError, NotEncodableError

from .strategies import JSON_VALUES, objects


def shuffled(value: object, chance: random.Random) -> object:
    """Return an equal value whose objects have their keys in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        chance.shuffle(items)
        return {key: shuffled(item, chance) for key, item in items}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@given(objects(), st.randoms(use_true_random=False), st.booleans())
def test_order_and_spelling_do_not_matter(
    fields: dict[str, object],
    chance: random.Random,
    escaped: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    """Key order at any depth, white space and escapes leave the content the same."""
    other = json.dumps(shuffled(fields, chance), ensure_ascii=escaped, indent=1).encode()
    assert same_content(json.dumps(fields).encode(), other)


@given(JSON_VALUES, JSON_VALUES)
def test_equal_bytes_mean_equal_values(first: object, second: object) -> None:
    """Two values have one canonical form exactly if JSON holds them equal (1 is 1.0, not true)."""
    assert (canonical(first) == canonical(second)) == (typed(first) == typed(second))


def typed(value: object) -> object:
    """Return `value` with booleans told apart from numbers, which Python holds equal."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else value


def test_the_content_is_what_was_sent() -> None:
    """An alias, a derived tier and an explicit null are other content than their absence."""
    line = b'{"event_id":"e","session_id":"s","ts":0,"event_type":"t","signal":"x"}'
    assert not same_content(line, line.replace(b'"signal"', b'"signal_id"'))
    assert not same_content(line, line[:-1] + b',"confidence":null}')
    assert same_content(line, line.replace(b":0,", b":0.0,"))


def test_of_duplicate_keys_the_last_is_compared() -> None:
    """A line with a repeated key has the content of its last value."""
    assert same_content(b'{"a":1,"a":2}', b'{"a":2}')


@pytest.mark.parametrize("value", [float("nan"), 2**53, b"bytes", "\ud800", {1: 2}])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    """What RFC 8785 cannot say is a typed error."""
    with pytest.raises(NotEncodableError):
        canonical(value)


def test_broken_lines_are_no_content() -> None:
    """Comparing with a line that is no JSON raises its line error."""
    with pytest.raises(LineError):
        same_content(b"{}", b"{")
