"""Strict JSON: what the protocol accepts as one object on a line, and nothing a parser forgives.

RFC 8259 in UTF-8 without byte order mark, no NaN or Infinity, no lone surrogates, integers that
every JSON reader keeps exact (RFC 7493 §2.2), numbers that a double can hold, bounded depth.
Of duplicate keys the last wins (`docs/events.md §Fields`).
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from etude.events.errors import BadTypeError, InvalidJsonError, TooLongError

MAX_LINE_BYTES: Final = 65536
MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1
_MAX_DIGITS: Final = 16

# For `is_plain_text`: a digit or plus sign becomes `0`, whatever may stand before a number `,`.
# In that text an integer of sixteen digits and an exponent of three are fixed strings, which are
# found ten times faster than a regular expression finds them. Hexadecimal ids hold such exponents
# too: only then the expression says whether one belongs to a number.
_SHAPES: Final = bytes.maketrans(b"123456789+E:[ \t\r\n", b"0000000000e,,,,,,")
_LONG_INTEGER: Final = b",0000000000000000"
_LONG_NEGATIVE: Final = b"-0000000000000000"
_LONG_EXPONENT: Final = b"0e000"
_HUGE_NUMBER: Final = re.compile(rb",-?0+(?:\.0+)?e000")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?')
_BRACKET: Final = re.compile(rb"[\[\]{}]")

decode_any: Final = msgspec.json.Decoder().decode


def is_plain(line: bytes) -> bool:
    """Whether msgspec's verdict on `line` is the protocol's: none of what it forgives can be there.

    Cheap and one-sided: `False` only means that `read_object` has to look.
    """
    return is_small(line) and is_plain_text(line)


def is_small(line: bytes) -> bool:
    """Whether neither length nor depth of `line` can be over the limit."""
    return len(line) <= MAX_LINE_BYTES and line.count(b"{") + line.count(b"[") <= MAX_DEPTH


def is_plain_text(text: bytes) -> bool:
    """The part of `is_plain` that holds for lines if it holds for the body they stand in."""
    if b"\\" in text and (b"\\ud" in text or b"\\uD" in text):
        return False
    shape = text.translate(_SHAPES)
    if _LONG_INTEGER in shape or _LONG_NEGATIVE in shape:
        return False
    if _LONG_EXPONENT in shape and _HUGE_NUMBER.search(shape):
        return False
    return text.isascii() or _is_utf8(text)


def read_object(
    line: bytes, number: int, on_duplicate: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Return the object on `line`; call `on_duplicate(key)` for each key that is repeated.

    `line` has no line end. Raises `TooLongError`, `InvalidJsonError` or `BadTypeError`.
    """
    if len(line) > MAX_LINE_BYTES:
        raise TooLongError(number, limit_bytes=MAX_LINE_BYTES)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(number, reason=f"UTF-8, byte {error.start + 1}") from error
    if _depth(line) > MAX_DEPTH:
        raise BadTypeError(number, field="$", expected=f"depth <= {MAX_DEPTH}")
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_reporting(on_duplicate) if on_duplicate else None,
        )
    except _OutOfRangeError as error:
        raise BadTypeError(number, field="$", expected=str(error)) from error
    except ValueError as error:
        raise InvalidJsonError(number, reason=_place(error)) from error
    if not isinstance(value, dict):
        raise BadTypeError(number, field="$", expected="object")
    if "\\u" in text:
        _refuse_surrogates(value, number)
    return value


class _OutOfRangeError(Exception):
    """A number that is valid JSON and that the protocol refuses. Not a `ValueError`: see above."""


def _integer(digits: str) -> int:
    if len(digits) <= _MAX_DIGITS + 1 and abs(value := int(digits)) <= MAX_INTEGER:
        return value
    expected = "|integer| < 2^53"
    raise _OutOfRangeError(expected)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isfinite(value):
        return value
    expected = "|number| < 1.8e308"
    raise _OutOfRangeError(expected)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _place(error: ValueError) -> str:
    return f"column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)


def _reporting(on_duplicate: Callable[[str], None]) -> Callable[[list[tuple[str, Any]]], Any]:
    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, item in pairs:
            if key in value:
                on_duplicate(key)
            value[key] = item
        return value

    return collect


def _depth(line: bytes) -> int:
    """Return how deep brackets nest, without recursion and without looking into strings."""
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", line)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_surrogates(fields: dict[str, Any], number: int) -> None:
    for name, value in fields.items():
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            field = name if name.isascii() else "$"
            raise BadTypeError(number, field=field, expected="Unicode text") from error


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
