"""Words of a sentence, by rule: which of them carry the meaning, and the pieces it falls into.

English falls apart at spaces. Chinese has none: the longest word that is known from the material
or from a short list of common ones is taken first (forward maximum matching); what is in no list
stays together between the little words.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from etude.authoring.material import Language

_HAN: Final = re.compile(r"[㐀-鿿豈-﫿]")
_EN_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9'\u2019-]*")
_EN_PIECE: Final = re.compile(r"\S+")
_ARTICLE: Final = re.compile(r"^(?:an?|the|to)\s+", re.IGNORECASE)
_END_MARKS: Final = ".!?。！？…"  # noqa: RUF001 - Chinese marks
_LONGEST_WORD: Final = 6
_LONGEST_RUN: Final = 4
_SHORTEST_EN: Final = 3


def is_chinese(text: str) -> bool:
    """Whether the letters of a text are mostly Chinese."""
    han = len(_HAN.findall(text))
    return han * 2 > sum(char.isalpha() for char in text)


def language_of(text: str) -> Language:
    """Return the language that a text is most probably in."""
    return "zh-CN" if is_chinese(text) else "en"


def key(text: str) -> str:
    """Return what two spellings of one thing have in common: letters and digits alone.

    Of what has neither (`+`, an apple as a picture) the signs are; empty: there is nothing to see.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    letters = "".join(char for char in folded if char.isalnum())
    return letters or "".join(char for char in folded if unicodedata.category(char)[0] in "PS")


def sense(text: str) -> str:
    """Return the key of a word or meaning without its article: `a cat` says what `cat` does."""
    return key(_ARTICLE.sub("", text.strip()))


def around(text: str, word: str) -> tuple[str, str]:
    """Return what stands before and after a word of a text: the whole word, not a part of one."""
    whole = None if is_chinese(word) else re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
    if whole is not None:
        return text[: whole.start()], text[whole.end() :]
    before, _, after = text.partition(word)
    return before, after


def content_words(text: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the words that carry the meaning, in their order, each once.

    Args:
        text: a sentence, in either language.
        known: words that the material explains: they are found whole.
    """
    if is_chinese(text):
        found = [one for one in segments(text, known) if _carries_zh(one, known)]
    else:
        found = _content_en(text, known)
    return tuple(dict.fromkeys(found))


def pieces(text: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the pieces to put a sentence together from; joined they give it without its end mark.

    Chinese pieces carry the little words that follow them: `花园里的`.
    """
    bare = text.strip().rstrip(_END_MARKS)
    if not is_chinese(bare):
        return tuple(_EN_PIECE.findall(bare))
    found: list[str] = []
    for one in segments(bare, known):
        little = len(one) == 1 and (one in _little_zh() or not one.isalnum())
        if found and little:
            found[-1] += one
        else:
            found.append(one)
    return tuple(found)


def is_little(word: str) -> bool:
    """Whether a word of English carries no meaning of its own and has a capital only in front."""
    return word.casefold() in _little_en() and word not in {"I", "I'm", "I've"}


def joined(parts: Sequence[str], whole: str) -> str:
    """Return pieces of a whole sentence as one text, as the sentence's language does."""
    return ("" if is_chinese(whole) else " ").join(parts)


def segments(text: str, known: Collection[str] = ()) -> Iterator[str]:
    """Yield the words and marks of a Chinese text; nothing is left out."""
    lexicon = _common_zh().union(known)
    run, at = "", 0
    while at < len(text):
        word = _longest(text, at, lexicon)
        if not word and text[at] not in _little_zh() and text[at].isalnum():
            run += text[at]
            at += 1
            if len(run) < _LONGEST_RUN:
                continue
        if run:
            yield run
            run = ""
        if word:
            yield word
            at += len(word)
        elif at < len(text) and (text[at] in _little_zh() or not text[at].isalnum()):
            yield text[at]
            at += 1
    if run:
        yield run


def _longest(text: str, at: int, lexicon: Collection[str]) -> str:
    for length in range(_LONGEST_WORD, 1, -1):
        if text[at : at + length] in lexicon and at + length <= len(text):
            return text[at : at + length]
    return ""


def _carries_zh(word: str, known: Collection[str]) -> bool:
    if word in known:
        return True
    return len(word) > 1 and word.isalnum() and word not in _little_zh()


def _content_en(text: str, known: Collection[str]) -> list[str]:
    folded = {one.casefold(): one for one in known}
    found: list[tuple[int, str]] = []
    rest = text
    for term in sorted(folded, key=len, reverse=True):
        whole = re.compile(rf"(?<!\w){re.escape(term)}(?:s|es)?(?!\w)", re.IGNORECASE)
        found += [(match.start(), match.group()) for match in whole.finditer(rest)]
        rest = whole.sub(lambda match: " " * len(match.group()), rest)
    for match in _EN_WORD.finditer(rest):
        word = match.group().strip("'\u2019-")
        if len(word) >= _SHORTEST_EN and word.casefold() not in _little_en():
            found.append((match.start(), word))
    return [word for _, word in sorted(found)]


@cache
def _little_en() -> frozenset[str]:
    return frozenset(_list("little-en.txt"))


@cache
def _little_zh() -> frozenset[str]:
    return frozenset(_list("little-zh.txt"))


@cache
def _common_zh() -> frozenset[str]:
    return frozenset(word for word in _list("common-zh.txt")) | {
        one for one in _little_zh() if len(one) > 1
    }


def _list(name: str) -> list[str]:
    return files("etude.authoring").joinpath("words", name).read_text("utf-8").split()
