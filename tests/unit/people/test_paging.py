import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.people.errors import CursorInvalidError
from etude.people.paging import cursor_after, key_after


@given(st.integers(1, 2**63 - 1))
def test_a_cursor_leads_back_to_its_key(key: int) -> None:
    """Every key survives the way through a cursor."""
    assert key_after(cursor_after(key)) == key


def test_a_list_without_a_cursor_begins_at_its_beginning() -> None:
    """No cursor means: before the first key."""
    assert key_after(None) == 0


@given(st.text(max_size=60))
def test_no_text_is_a_cursor_unless_a_list_made_it(text: str) -> None:
    """Anything else is refused as a cursor, and never fails in another way."""
    try:
        key = key_after(text)
    except CursorInvalidError:
        return
    assert cursor_after(key) == text


@pytest.mark.parametrize(
    "text", ["", "0", "YWZ0ZXI6MA", "YWZ0ZXI6LTE", "YWZ0ZXI6MQ==", "MQ", "é", "\ud800"]
)
def test_a_cursor_that_no_list_made_is_refused(text: str) -> None:
    """Zero, negative, padded, foreign and broken cursors are refused."""
    with pytest.raises(CursorInvalidError):
        key_after(text)
