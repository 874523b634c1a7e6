"""Texts made comparable (`docs/rules.md 25`): markup out, then letters and digits only. Pure."""

import re
import unicodedata
from typing import Final

import msgspec

LONGEST_TEXT: Final = 2_000
"""Characters of a text that are looked at."""

_TAG: Final = re.compile(r"<\|[^|>]*\|>")
_SILENT: Final = frozenset("PZCS")
_APOSTROPHES: Final = str.maketrans("", "", "'\u2019\u02bc\uff07")
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_PIECE: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W_]+")
_UNITS: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS: Final = [
    "zero",
    "ten",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
]
_MOST_WHOLE: Final = 2  # digits: more of them are read one by one (a room, a year, a telephone)


def plain(text: str) -> str:
    """Return a text without the wrappings of recognisers: `<|tag|>` and JSON around a text."""
    text = text[:LONGEST_TEXT].strip()
    if text.startswith("{"):
        try:
            wrapped = msgspec.json.decode(text, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeEncodeError):
            return text
        inner = next((wrapped[key] for key in ("content", "text") if key in wrapped), None)
        text = inner if isinstance(inner, str) else text
    return _TAG.sub("", text).strip()


def normalise(text: str) -> str:
    """Return letters and digits: NFKC, case-folded, no punctuation, no white space."""
    folded = unicodedata.normalize("NFKC", plain(text)).casefold()
    return "".join(one for one in folded if unicodedata.category(one)[0] not in _SILENT)


def words_of(text: str) -> list[str]:
    """Return the words as spoken: `21` is `twenty`, `one`; each Chinese character is one."""
    folded = unicodedata.normalize("NFKC", plain(text)).casefold().translate(_APOSTROPHES)
    pieces = _PIECE.findall(folded)
    is_chinese = _HAN.search(folded) is not None
    return [word for piece in pieces for word in ([piece] if is_chinese else _spoken(piece))]


def is_chinese(text: str) -> bool:
    """Say whether a text holds Chinese characters."""
    return _HAN.search(text) is not None


def capped(heard: list[str], expected: list[str]) -> list[str]:
    """Return at most half as many words again as were expected, and three.

    A recogniser that has lost its way repeats itself; that says nothing about the learner.
    """
    return heard[: int(1.5 * len(expected)) + 3]


def _spoken(piece: str) -> list[str]:
    if not piece.isdecimal() or not piece.isascii():
        return [piece]
    if len(piece) > _MOST_WHOLE or (piece.startswith("0") and len(piece) > 1):
        return [_UNITS[int(digit)] for digit in piece]
    number = int(piece)
    if number < len(_UNITS):
        return [_UNITS[number]]
    tens, units = divmod(number, 10)
    return [_TENS[tens], *([_UNITS[units]] if units else [])]
