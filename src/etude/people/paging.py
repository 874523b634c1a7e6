"""Lists in parts, by key and never by offset: a row that comes or goes moves nothing."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Row

from etude.people.errors import CursorInvalidError
from etude.people.records import Item, Page

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
_MAX_KEY: Final = 2**63 - 1
_PREFIX: Final = b"after:"


def cursor_after(key: int) -> str:
    """Make the cursor that begins behind the row with this key."""
    return base64.urlsafe_b64encode(_PREFIX + str(key).encode()).decode().rstrip("=")


def key_after(cursor: str | None) -> int:
    """Return the key that the list begins behind (0 without a cursor).

    Raises `CursorInvalidError` for a cursor that no list has made.
    """
    if cursor is None:
        return 0
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        key = int(text.removeprefix(_PREFIX)) if len(text) <= len(_PREFIX) + 19 else -1
    except (binascii.Error, ValueError) as error:
        raise CursorInvalidError from error
    if not 0 < key <= _MAX_KEY or cursor_after(key) != cursor:
        raise CursorInvalidError
    return key


def page(
    rows: Sequence[Row[Any]], limit: int, record: Callable[[Row[Any]], Item], key: str
) -> Page[Item]:
    """Make a page of `limit` records from up to `limit + 1` rows; `key` names the key column."""
    shown = rows[:limit]
    more = len(rows) > limit
    return Page(
        items=tuple(record(row) for row in shown),
        next_cursor=cursor_after(int(getattr(shown[-1], key))) if more else None,
    )
