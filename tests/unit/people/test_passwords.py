import pytest

from etude.people.errors import PasswordLengthError, PasswordNotTextError
from etude.people.passwords import MAX_LENGTH, MIN_LENGTH, hash_password, verify_password

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def password_hash() -> str:
    return hash_password(PASSWORD)


def test_a_password_belongs_to_its_hash_only(password_hash: str) -> None:
    """The right password is accepted, any other is not."""
    assert verify_password(password_hash, PASSWORD)
    assert not verify_password(password_hash, PASSWORD + "!")


def test_the_hash_is_argon2id_and_does_not_hold_the_password(password_hash: str) -> None:
    """What is stored is an argon2id hash with its own salt."""
    assert password_hash.startswith("$argon2id$")
    assert PASSWORD not in password_hash
    assert hash_password(PASSWORD) != password_hash


def test_nobody_has_no_password() -> None:
    """For a name that nobody has, no password is right."""
    assert not verify_password(None, PASSWORD)


def test_an_unknown_name_is_checked_with_the_work_of_a_known_one(password_hash: str) -> None:
    """The hash that stands for nobody costs what a real one costs: same kind, same parameters."""
    from etude.people import passwords  # noqa: PLC0415 - a private constant

    assert passwords._NOBODY.split("$")[:4] == password_hash.split("$")[:4]


def test_a_stored_hash_that_is_none_refuses() -> None:
    """A damaged hash lets nobody in."""
    assert not verify_password("not a hash", PASSWORD)


@pytest.mark.parametrize("length", [0, MIN_LENGTH - 1, MAX_LENGTH + 1])
def test_a_password_too_short_or_too_long_is_refused(length: int) -> None:
    """The bounds are told in the error."""
    with pytest.raises(PasswordLengthError) as refused:
        hash_password("x" * length)
    assert refused.value.params == {"shortest": MIN_LENGTH, "longest": MAX_LENGTH}


def test_a_password_that_is_no_text_is_refused_without_quoting_it(password_hash: str) -> None:
    """Undecodable bytes of a pipe or argument: none to store, none that is right."""
    password = b"\xff\xfe long enough".decode("utf-8", "surrogateescape")
    with pytest.raises(PasswordNotTextError) as refused:
        hash_password(password)
    assert (refused.value.params, refused.value.__cause__) == ({}, None)
    assert not verify_password(password_hash, password)
