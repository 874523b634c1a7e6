"""Passwords of staff: argon2id (RFC 9106). One check takes some 50 ms: call it in a thread."""

from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from etude.people.errors import PasswordLengthError, PasswordNotTextError

MIN_LENGTH: Final = 10
MAX_LENGTH: Final = 256
# The hash of a random text that nobody knows: checking it takes as long as checking a real one.
_NOBODY: Final = (
    "$argon2id$v=19$m=65536,t=3,p=4"
    "$CvuwkwVhWd2hxnn0Yvg7aA$cO2+j51sNuWWfisKj1OTBGN+fKKKn1ExtI2BQiYIeWE"
)


def hash_password(password: str) -> str:
    """Return the argon2id hash to store.

    Raises:
        PasswordLengthError: it has not `MIN_LENGTH` to `MAX_LENGTH` characters.
        PasswordNotTextError: it holds halves of surrogate pairs, which stand for undecodable bytes.
    """
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise PasswordLengthError(shortest=MIN_LENGTH, longest=MAX_LENGTH)
    try:
        return PasswordHasher().hash(password)
    except UnicodeEncodeError:
        raise PasswordNotTextError from None  # the cause would quote the password


def verify_password(password_hash: str | None, password: str) -> bool:
    """Whether the password belongs to the hash; for None (nobody has that name) never, as slow."""
    if len(password) > MAX_LENGTH:
        return False
    try:
        PasswordHasher().verify(password_hash or _NOBODY, password)
    except (InvalidHashError, VerificationError, UnicodeEncodeError):
        return False
    return password_hash is not None
