"""Chinese texts as syllables of pinyin: what the ear tells apart, whatever the characters."""

import importlib
import re
from typing import Any, Final

from etude.assess.words import plain

_SYLLABLE: Final = re.compile(r"[a-z\u00fcv]+[1-5]?|\d")
INSTALL_LINE: Final = "pip install 'etude[server]'"


def syllables(text: str, *, tones: bool) -> list[str] | None:
    """Return a text's syllables; None where `pypinyin` is not installed.

    Letters and digits between the characters stay, each run as one.
    """
    try:
        library: Any = importlib.import_module("pypinyin")
    except ImportError:
        return None
    style = library.Style.TONE3 if tones else library.Style.NORMAL
    found = library.lazy_pinyin(
        plain(text), style=style, errors="default", neutral_tone_with_five=True
    )
    return [one for piece in found for one in _SYLLABLE.findall(piece.casefold())]
