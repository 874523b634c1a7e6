"""What somebody said, compared with phrases: case, width, punctuation and spaces do not matter."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

import msgspec

LONGEST_TEXT: Final = 2_000
"""Characters of a recognised text that are looked at."""
ECHO_FROM: Final = 0.82
"""From this likeness on, what was heard is the toy's own prompt. It means nothing anywhere else."""

_TAG: Final = re.compile(r"<\|[^|>]*\|>")
_SILENT: Final = frozenset("PZCS")


def plain(said: str) -> str:
    """Return what was said without the wrappings of recognisers: `<|tag|>` and JSON with a text."""
    said = said[:LONGEST_TEXT].strip()
    if said.startswith("{"):
        try:
            wrapped = msgspec.json.decode(said, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeEncodeError):
            return said
        inner = next((wrapped[key] for key in ("content", "text") if key in wrapped), None)
        said = inner if isinstance(inner, str) else said
    return _TAG.sub("", said).strip()


def normalise(said: str) -> str:
    """Return letters and digits only: NFKC, case-folded, no punctuation, no spaces."""
    folded = unicodedata.normalize("NFKC", plain(said)).casefold()
    return "".join(one for one in folded if unicodedata.category(one)[0] not in _SILENT)


def is_echo(said: str, prompt: str) -> bool:
    """Whether the microphone has heard the toy's own prompt."""
    heard, spoken = normalise(said), normalise(prompt)
    if not heard or not spoken:
        return False
    return SequenceMatcher(None, spoken, heard, autojunk=False).ratio() >= ECHO_FROM


class Phrases:
    """A few phrases, to ask whether something said is one of them, whole."""

    def __init__(self, phrases: Iterable[str]) -> None:
        """Keep them normalised; empty ones match nothing."""
        self._known = {key for phrase in phrases if (key := normalise(phrase))}

    def __contains__(self, said: str) -> bool:
        """Whether `said` is one of the phrases."""
        return normalise(said) in self._known
