"""The gate against the wrong language: it looks at scripts, so that it is never wrong by a word.

A course in English may show Chinese words, and the other way round; what is mostly in a script that
is not the course's is refused. Languages that share a script cannot be told apart here.
"""

import unicodedata
from collections.abc import Iterable
from typing import Any, Final

from etude.authoring.material import Language
from etude.authoring.model.answers import mistake
from etude.authoring.model.errors import ModelAnswerMistakeError
from etude.authoring.model.prompts import LANGUAGES

_ENOUGH: Final = 20
_LEAST_HAN: Final = 0.15
_MOST_HAN: Final = 0.4
_MOST_OTHER: Final = 0.5


def script_mistakes(
    said: Iterable[str], language: Language, path: str = "/"
) -> list[ModelAnswerMistakeError]:
    """Return the mistake that texts are in another script than the course's language, if so."""
    han = latin = other = 0
    for text in said:
        for char in text:
            if not char.isalpha():
                continue
            name = unicodedata.name(char, "")
            han += name.startswith("CJK UNIFIED")
            latin += name.startswith(("LATIN", "FULLWIDTH LATIN"))
            other += not name.startswith(("CJK UNIFIED", "LATIN", "FULLWIDTH LATIN"))
    letters = han + latin + other
    if letters < _ENOUGH:
        return []
    share = han / letters
    wrong = share < _LEAST_HAN if language == "zh-CN" else share > _MOST_HAN
    if wrong or other / letters > _MOST_OTHER:
        return [mistake(path, "language", f"must be in {LANGUAGES[language]}")]
    return []


def texts_in(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    """Yield every text in a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
