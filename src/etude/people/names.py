"""What may be a name and what may be an id, the same at every door and on both databases."""

import re
from typing import Final

from etude.people.errors import IdInvalidError, NameInvalidError

MAX_NAME: Final = 200
MAX_ID: Final = 64
MAX_DEVICE_ID: Final = 128
ID_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
# Controls, and halves of surrogate pairs, which no database takes. Everything else is somebody's.
NAME_PATTERN: Final = "^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$"
_ID: Final = re.compile(ID_PATTERN[:-1])
_NAME: Final = re.compile(NAME_PATTERN[:-1])


def check_name(name: str) -> str:
    """Return what people call somebody or something, without the white space around it.

    Raises `NameInvalidError` for nothing, more than `MAX_NAME` characters, or control characters.
    """
    stripped = name.strip()
    if not _NAME.fullmatch(stripped) or len(stripped) > MAX_NAME:
        raise NameInvalidError(longest=MAX_NAME)
    return stripped


def check_id(public_id: str, longest: int = MAX_ID) -> str:
    """Return an id that a person chose: letters, digits and `. _ : @ -`, fit for an address.

    Raises `IdInvalidError`.
    """
    if not _ID.fullmatch(public_id) or len(public_id) > longest:
        raise IdInvalidError(longest=longest)
    return public_id


def can_be_id(text: str) -> bool:
    """Whether a text can be the id of anything: what cannot is not even looked for."""
    return text.isprintable()
