"""One byte string for one JSON meaning: RFC 8785, for comparing and for digests."""

from typing import Any

import rfc8785

from etude.events.errors import NotEncodableError
from etude.events.strict import read_object


def canonical(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Return the canonical JSON of `value` (RFC 8785).

    Raises `NotEncodableError` for what it has no form for: NaN, integers from 2^53, a type that is
    not JSON's, nesting without end.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise NotEncodableError(reason=str(error)) from error


def same_content(first: bytes, second: bytes) -> bool:
    """Whether two lines say the same object as sent, however spelt (`docs/rules.md 7`).

    Raises `LineError` if one of them is no object that the protocol accepts.
    """
    if first == second:
        return True
    return canonical(read_object(first, 1)) == canonical(read_object(second, 1))
