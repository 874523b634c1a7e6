import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.people.errors import IdInvalidError, NameInvalidError
from etude.people.names import MAX_ID, MAX_NAME, can_be_id, check_id, check_name


@pytest.mark.parametrize("name", ["Ada", "李小龙", "Zoë O'Neill-Ünal", "👩‍👩‍👧", "a" * MAX_NAME])
def test_what_people_are_called_is_a_name(name: str) -> None:
    """Names in any script are kept as they are; white space around them is not."""
    assert check_name(f"  {name}\n") == name


@pytest.mark.parametrize("name", ["", " \t", "a\x00b", "a\nb", "\x7f", "\ud83d", "a" * 201])
def test_what_no_database_or_page_can_show_is_no_name(name: str) -> None:
    """Nothing, control characters, half characters and whole texts are refused."""
    with pytest.raises(NameInvalidError):
        check_name(name)


@pytest.mark.parametrize("public_id", ["toy-1", "AA:BB:CC:00:11:22", "li@school.example", "0"])
def test_usual_ids_are_ids(public_id: str) -> None:
    """Serial numbers, hardware addresses and mail addresses can be ids."""
    assert check_id(public_id) == public_id


@pytest.mark.parametrize("public_id", ["", "..", "a/b", "a?b", "a#b", "a b", "李", "a\n", "a" * 65])
def test_what_has_no_place_in_an_address_is_no_id(public_id: str) -> None:
    """An id can stand in the path of an address as it is."""
    with pytest.raises(IdInvalidError):
        check_id(public_id, MAX_ID)


@given(st.text(st.characters(categories=["Cc", "Cs"]), min_size=1))
def test_what_a_database_chokes_on_is_never_looked_for(text: str) -> None:
    """No control character and no half character gets into a query as an id."""
    assert not can_be_id(text)
