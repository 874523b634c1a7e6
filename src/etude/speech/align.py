"""Alignment: when each word and phone of the expected text was spoken, and how well it fits.

PocketSphinx in two passes: the words, then their phones. It holds Python's global lock all the
while (0.1 to 0.3 s an utterance), so it runs in the pool's processes and nowhere else.
"""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from etude.speech.audio import Pcm, resampled
from etude.speech.errors import SpeechEngineError, SpeechLanguageError
from etude.speech.g2p import Pronouncer, SpokenWord
from etude.speech.libraries import load_library, named_version
from etude.speech.models import Models
from etude.speech.recognise import EngineCard, base_language

MODEL_ID: Final = "pocketsphinx-en-us"
SAMPLE_RATE: Final = 16_000
FRAME_MS: Final = 10
NATS: Final = 0.1024
"""What one step of PocketSphinx's score is worth: 1024 steps of the logarithm to base 1.0001."""

_SHORTEST_MS: Final = 100
_LONGEST_MS: Final = 60_000
_MOST_WORDS: Final = 200
# A decoder keeps every word it was given; another one is made before that becomes memory.
_MOST_ADDED: Final = 2_000
_SETTINGS: Final = {
    "samprate": SAMPLE_RATE,
    "lm": None,
    "bestpath": False,
    "beam": 1e-80,
    "wbeam": 1e-60,
    "pbeam": 1e-80,
    "loglevel": "FATAL",
}


class AlignedPhone(msgspec.Struct, frozen=True, array_like=True):
    """A phone.

    Attributes:
        name: ARPAbet without stress: `AH`.
        start_ms, duration_ms: in steps of 10 ms.
        score: log-likelihood in nats, summed over its frames, against the best state of each
            frame: 0 = nothing fitted better; the further below, the worse.
    """

    name: str
    start_ms: int
    duration_ms: int
    score: float

    @property
    def frames(self) -> int:
        """How many frames it lasts; divide `score` by it to compare phones."""
        return self.duration_ms // FRAME_MS


class AlignedWord(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the expected text.

    Attributes:
        text: as spoken, in lower case: `21` is the two words `twenty`, `one`.
        index: which word of the text (cut at white space) it belongs to, from 0.
        start_ms, duration_ms: from its first phone to its last.
        score: the sum of its phones'.
        phones: in order.
        guessed: its pronunciation is in no dictionary.
    """

    text: str
    index: int
    start_ms: int
    duration_ms: int
    score: float
    phones: tuple[AlignedPhone, ...]
    guessed: bool


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """Where a text is in a sound. What is between two words is silence or noise.

    Attributes:
        words: in order, all of them.
        duration_ms: of the whole sound.
        engine, model: as in `EngineCard`; they belong beside every number made from this.
    """

    words: tuple[AlignedWord, ...]
    duration_ms: int
    engine: str
    model: str


class SphinxAligner:
    """English only. Loads when it is made (0.5 s); one thread at a time."""

    def __init__(self, models: Models, pronouncer: Pronouncer | None = None) -> None:
        """Verify and load; `pronouncer` = one that is loaded already.

        Raises:
            ModelMissingError, ModelChangedError: the acoustic model is not there.
            SpeechExtraMissingError: `etude[speech]` is not installed.
            SpeechEngineError: the library refuses the model.
        """
        card = models.card(MODEL_ID)
        self._folder = models.require(MODEL_ID)
        self._sphinx = load_library("pocketsphinx._pocketsphinx")
        self._pronouncer = pronouncer or Pronouncer(models)
        self.card = EngineCard(
            engine=named_version("pocketsphinx"),
            model=f"{card.id}/{card.version}",
            licence=card.licence,
            languages=card.languages,
            sample_rate=SAMPLE_RATE,
            releases_gil=False,
        )
        self._decoder = self._made()
        self._added: set[str] = set()

    def align(self, sound: Pcm, text: str, *, language: str) -> Alignment | None:
        """Find the text in the sound.

        Returns:
            None when it is not there: silence, noise, often another sentence; when nothing in the
            text can be pronounced; when the sound is shorter than 0.1 s or longer than 60 s.

        Raises:
            SpeechLanguageError: the language is not English.
        """
        if base_language(language) not in self.card.languages:
            known = ", ".join(self.card.languages)
            raise SpeechLanguageError(engine=self.card.engine, language=language, known=known)
        words = self._pronouncer.spoken_words(text)
        if not 0 < len(words) <= _MOST_WORDS or not _is_length(sound):
            return None
        guessed = self._learn(words)
        if guessed is None:
            return None
        found = self._found(resampled(sound, SAMPLE_RATE).samples, words)
        return None if found is None else self._alignment(sound, words, found, guessed)

    def _learn(self, words: Sequence[SpokenWord]) -> frozenset[str] | None:
        """Add what the dictionary lacks; None = a word has no pronunciation."""
        if len(self._added) > _MOST_ADDED:
            self._decoder, self._added = self._made(), set()
        for word in sorted({word.text for word in words} - self._added):
            if self._decoder.lookup_word(word) is not None:
                continue
            phones = self._pronouncer.arpabet(word)
            if phones is None:
                return None
            self._decoder.add_word(word, phones, update=False)
            self._added.add(word)
        return frozenset(self._added)

    def _found(
        self, samples: bytes, words: Sequence[SpokenWord]
    ) -> list[tuple[AlignedPhone, ...]] | None:
        """Run both passes and return the phones of each word; None = no path through the sound."""
        decoder = self._decoder
        try:
            decoder.set_align_text(" ".join(word.text for word in words))
            self._pass(samples)
            decoder.set_alignment()
            self._pass(samples)
            # Entries point into the alignment: taken over here, while it lives.
            alignment = decoder.get_alignment()
            found = [tuple(_phones(entry)) for entry in alignment if _is_word(entry.name)]
        except (RuntimeError, TypeError):  # its words for "no alignment"; get_alignment gives None
            self._recover()
            return None
        return found if len(found) == len(words) else None

    def _pass(self, samples: bytes) -> None:
        with warnings.catch_warnings():
            # Without this the estimate of noise, and so every number, depends on what came before;
            # the library calls it unnecessary.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._decoder.start_stream()
        self._decoder.start_utt()
        self._decoder.process_raw(samples, full_utt=True)
        self._decoder.end_utt()

    def _recover(self) -> None:
        """End an utterance that was left open, so that the next one can start."""
        with contextlib.suppress(RuntimeError):
            self._decoder.end_utt()

    def _alignment(
        self,
        sound: Pcm,
        words: Sequence[SpokenWord],
        found: Sequence[tuple[AlignedPhone, ...]],
        guessed: frozenset[str],
    ) -> Alignment:
        return Alignment(
            words=tuple(
                _word(word, phones, guessed=word.text in guessed)
                for word, phones in zip(words, found, strict=True)
            ),
            duration_ms=sound.duration_ms,
            engine=self.card.engine,
            model=self.card.model,
        )

    def _made(self) -> Any:  # noqa: ANN401 - the library has no types
        try:
            return self._sphinx.Decoder(
                hmm=str(self._folder / "en-us"),
                dict=str(self._folder / "cmudict-en-us.dict"),
                **_SETTINGS,
            )
        except RuntimeError as error:
            engine = named_version("pocketsphinx")
            raise SpeechEngineError(engine=engine, reason=str(error)[:200]) from error


def _is_length(sound: Pcm) -> bool:
    return _SHORTEST_MS <= sound.duration_ms <= _LONGEST_MS


def _is_word(name: str) -> bool:
    return not name.startswith(("<", "[", "+"))


def _phones(entry: Any) -> Iterator[AlignedPhone]:  # noqa: ANN401 - the library has no types
    for phone in entry:
        yield AlignedPhone(
            phone.name, phone.start * FRAME_MS, phone.duration * FRAME_MS, phone.score * NATS
        )


def _word(word: SpokenWord, phones: tuple[AlignedPhone, ...], *, guessed: bool) -> AlignedWord:
    return AlignedWord(
        text=word.text,
        index=word.index,
        start_ms=phones[0].start_ms,
        duration_ms=phones[-1].start_ms + phones[-1].duration_ms - phones[0].start_ms,
        score=sum(phone.score for phone in phones),
        phones=phones,
        guessed=guessed,
    )
