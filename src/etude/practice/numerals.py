"""Numbers as people say them, in digits, Chinese and English, from 0 to 9,999. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from etude.practice.phrases import plain

_Part = tuple[int, bool]
"""A value, and whether it multiplies what stands before it."""

_CHINESE: Final[Mapping[str, _Part]] = {
    **{one: (value, False) for value, one in enumerate("零一二三四五六七八九")},
    "\u3007": (0, False),
    "两": (2, False),
    "幺": (1, False),
    "十": (10, True),
    "百": (100, True),
    "千": (1000, True),
}
_ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ENGLISH: Final[Mapping[str, _Part]] = {
    **{word: (value, False) for value, word in enumerate(_ONES)},
    **{word: (10 * value, False) for value, word in enumerate(_TENS, 2)},
    "oh": (0, False),
    "hundred": (100, True),
    "thousand": (1000, True),
}
_WORD: Final = re.compile(r"[a-z]+|[0-9]+|[零\u3007一二三四五六七八九两幺十百千]+")
_MOST_DIGITS: Final = 4


def digits_in(said: str) -> str:
    """Return the single digits that somebody said, in order: `"five, 1 三"` → `"513"`."""
    found = ""
    for word in _words(said):
        if word.isdigit() and word.isascii():
            found += word
        else:
            parts = [_ENGLISH[word]] if word in _ENGLISH else [_CHINESE.get(one) for one in word]
            found += "".join(
                str(part[0])
                for part in parts
                if part and not part[1] and part[0] <= 9  # noqa: PLR2004 - a digit
            )
    return found


def number_in(said: str) -> int | None:
    """Return the number that somebody said last: `"that is forty-two"` → 42; None without one."""
    numbers: list[int] = []
    english: list[_Part] = []
    for word in [*_words(said), ""]:
        if word in _ENGLISH:
            english.append(_ENGLISH[word])
        elif word != "and" and english:
            numbers.append(_composed(english))
            english = []
        if word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS:
            numbers.append(int(word))
        elif word and word[0] in _CHINESE:
            numbers.append(_composed(_CHINESE[one] for one in word))
    return numbers[-1] if numbers else None


def _words(said: str) -> list[str]:
    return _WORD.findall(plain(said).casefold())


def _composed(parts: Iterable[_Part]) -> int:
    """Add up: 三百 零 五 = 3 x 100 + 0 + 5; a unit with nothing before it counts once (十二)."""
    total, waiting = 0, None
    for value, multiplies in parts:
        if multiplies:
            total += (1 if waiting is None else waiting) * value
            waiting = None
        else:
            waiting = (waiting or 0) + value
    return total + (waiting or 0)
