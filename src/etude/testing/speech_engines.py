"""Engines for tests of the pool and of what stands on it: quick, and faulty when told to be.

Give `FACTORY` to a `SpeechPool`. What is recognised is the expected text, else what the options'
`voice` says where that has a space in it; an alignment spreads the
words evenly; a voice makes a tone as long as the text. A text that contains one of `FAULTS` makes
the engine hang, crash, fill its memory or raise.
"""

import os
import time
from typing import Final

from etude.speech.align import AlignedPhone, AlignedWord, Alignment
from etude.speech.audio import Pcm
from etude.speech.engines import SpeechOptions
from etude.speech.recognise import EngineCard, Recognised, TokenScore
from etude.speech.synthesise import Speech
from etude.speech.voice_activity import EnergyActivity

FACTORY: Final = "etude.testing.speech_engines:FaultyEngines"
FAULTS: Final = ("please hang", "please crash", "please grow", "please raise")

_CARD: Final = EngineCard(
    engine="fake/1",
    model="fake/1",
    licence="Apache-2.0",
    languages=("*",),
    sample_rate=16_000,
    releases_gil=True,
)
_BLOCK: Final = 64 * 1024 * 1024
_LETTER_SAMPLES: Final = 800


class FaultyEngines:
    """A factory's product: see `etude.speech.pool_process.EngineSet`."""

    card = _CARD

    def __init__(self, options: SpeechOptions) -> None:
        """Nothing is loaded; `options.recogniser` may be a fault, for a start that fails."""
        _misbehave(options.recogniser)
        self._hears = options.voice if " " in options.voice else ""

    def recogniser(self) -> "FaultyEngines":
        """Return itself."""
        return self

    def aligner(self) -> "FaultyEngines":
        """Return itself."""
        return self

    def synthesiser(self) -> "FaultyEngines":
        """Return itself."""
        return self

    def detector(self) -> EnergyActivity:
        """Return one that never fails."""
        return EnergyActivity()

    def recognise(
        self,
        sound: Pcm,  # noqa: ARG002 - the contract's
        *,
        language: str,
        expected_text: str | None = None,
    ) -> Recognised:
        """Hear what was expected, else what the options say."""
        text = expected_text or self._hears
        _misbehave(text)
        scores = tuple(TokenScore(f" {word}", 0.5) for word in text.split())
        return Recognised(
            text=text,
            language=language,
            engine=_CARD.engine,
            model=_CARD.model,
            no_speech_probability=0.0 if text else 1.0,
            tokens=scores,
            expected_tokens=scores,
        )

    def align(self, sound: Pcm, text: str, *, language: str) -> Alignment | None:  # noqa: ARG002 - the contract's
        """Spread the words evenly."""
        _misbehave(text)
        words = text.lower().split()
        if not words:
            return None
        step_ms = sound.duration_ms // len(words) // 10 * 10
        return Alignment(
            words=tuple(_word(word, index, step_ms) for index, word in enumerate(words)),
            duration_ms=sound.duration_ms,
            engine=_CARD.engine,
            model=_CARD.model,
        )

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        """Hum."""
        _misbehave(text)
        count = round(len(text) * _LETTER_SAMPLES / rate)
        return Speech(
            sound=Pcm(sample_rate=16_000, samples=b"\0\x10" * count),
            language=language,
            engine=_CARD.engine,
            model=_CARD.model,
            licence=_CARD.licence,
        )


def _word(word: str, index: int, step_ms: int) -> AlignedWord:
    phone = AlignedPhone("AH", index * step_ms, step_ms, -1.0)
    return AlignedWord(
        text=word,
        index=index,
        start_ms=phone.start_ms,
        duration_ms=step_ms,
        score=-1.0,
        phones=(phone,),
        guessed=False,
    )


def _misbehave(text: str) -> None:
    if "please hang" in text:
        while True:
            time.sleep(1)
    if "please crash" in text:
        os.abort()
    if "please grow" in text:
        kept: list[bytes] = []
        while True:
            kept.append(bytes(_BLOCK))
    if "please raise" in text:
        raise ZeroDivisionError
