"""The columns of a terminal: how many a text takes, and where Chinese text is broken into lines.

What wraps English counts characters and breaks at spaces; Chinese ones take two columns each, and
have no spaces in between (Unicode Standard Annexes 11 and 14).
"""

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_OPENING: Final = {"Ps", "Pi"}
"""Categories of what no line ends with: brackets and quotes that open."""
_CLOSING: Final = {"Pe", "Pf", "Po"}
"""Of what no line begins with: those that close, and marks such as the full stop."""


def width(text: str) -> int:
    """Return how many columns a text takes: Chinese characters take two each."""
    return sum(2 if _is_wide(each) else 1 for each in text)


def is_wide(text: str) -> bool:
    """Say whether a text has characters of two columns."""
    return any(map(_is_wide, text))


def lines(text: str, columns: int) -> Iterator[str]:
    """Break a paragraph into lines of at most so many columns; longer words stay whole."""
    line = ""
    for piece in _pieces(text):
        if line and width(line + piece.rstrip()) > columns:
            yield line.rstrip()
            line = ""
        line += piece if line else piece.lstrip()
    if line:
        yield line.rstrip()


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _pieces(text: str) -> Iterator[str]:
    """Yield what stays together on a line, with the space behind it."""
    piece = text[:1]
    for before, after in pairwise(text):
        if _parts(before, after):
            yield piece
            piece = ""
        piece += after
    yield piece


def _parts(before: str, after: str) -> bool:
    """Say whether a line may end between two neighbouring characters."""
    if after == " ":
        return False
    if before == " ":
        return True
    return (
        (_is_wide(before) or _is_wide(after))
        and unicodedata.category(before) not in _OPENING
        and unicodedata.category(after) not in _CLOSING
    )
