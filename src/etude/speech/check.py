"""What this installation can hear and say, tried out: `etude speech check`.

A finding never raises: an engine that cannot be used is what the check is for. Of Chinese it says
the truth (rulings 26): nothing that ships recognises, measures or speaks it.
"""

import time
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from etude.errors import EtudeError
from etude.speech.engines import Engines
from etude.speech.errors import SpeechEngineError
from etude.speech.models import ModelCard
from etude.speech.recognise import EngineCard
from etude.speech.recognise_whisper import plain_text

Kind = Literal["recognise", "align", "synthesise", "voice_activity"]

SENTENCE: Final = "The quick brown fox jumps over the lazy dog."
"""Said and heard again by the round trip."""
LANGUAGES: Final = ("en", "zh")
"""What the apps that ship speak."""

_ENOUGH: Final = 0.75
"""Of the sentence's words, that a round trip must bring back."""


class EngineFinding(msgspec.Struct, frozen=True, kw_only=True):
    """An engine: its card, or the error that stands in the way; how long it took to load."""

    kind: Kind
    card: EngineCard | None
    error: str | None
    load_ms: int
    problem: EtudeError | None = None


class ModelFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the lists, and the code of what is wrong with it; None = verified."""

    card: ModelCard
    error: str | None


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence said by the voice, heard by the recogniser, found by the aligner.

    Attributes:
        said, heard: the sentence and what came back.
        words_kept: the part of its words that came back, 0 to 1.
        aligned: whether the aligner found it; None = there is none for the language.
        spoken_ms: how long the sound is.
        took_ms: what all three took.
    """

    said: str
    heard: str
    words_kept: float
    aligned: bool | None
    spoken_ms: int
    took_ms: int

    @property
    def understood(self) -> bool:
        """Whether enough came back."""
        return self.words_kept >= _ENOUGH and self.aligned is not False


class LanguageFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What there is for a language; a server's languages are its own affair, so `*` counts."""

    language: str
    recognise: bool
    align: bool
    synthesise: bool


class SpeechReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `round_trip` is None where voice or recogniser is missing or failed."""

    engines: tuple[EngineFinding, ...]
    models: tuple[ModelFinding, ...]
    languages: tuple[LanguageFinding, ...]
    round_trip: RoundTrip | None

    @property
    def is_sound(self) -> bool:
        """Whether everything that is configured works."""
        return (
            all(one.card is not None for one in self.engines)
            and self.round_trip is not None
            and self.round_trip.understood
        )


def run_check(engines: Engines) -> SpeechReport:
    """Load each engine and try them on a sentence: seconds. No network but configured servers."""
    found = tuple(
        _engine(kind, make)
        for kind, make in (
            ("recognise", engines.recogniser),
            ("align", engines.aligner),
            ("synthesise", engines.synthesiser),
            ("voice_activity", engines.voice_activity),
        )
    )
    cards = {one.kind: one.card for one in found}
    return SpeechReport(
        engines=found,
        models=tuple(_model(engines, card) for card in engines.models.all()),
        languages=tuple(_language(cards, tag) for tag in LANGUAGES),
        round_trip=_round_trip(engines, cards),
    )


def words_kept(said: str, heard: str) -> float:
    """Return the part of the words of `said` that are in `heard`, each counted once. Pure."""
    left = plain_text(heard).split()
    words = plain_text(said).split()
    kept = 0
    for word in words:
        if word in left:
            left.remove(word)
            kept += 1
    return kept / len(words) if words else 0.0


def _engine(kind: Any, make: Callable[[], Any]) -> EngineFinding:  # noqa: ANN401 - a literal of a table
    began_s = time.monotonic()
    card: EngineCard | None = None
    problem: EtudeError | None = None
    try:
        card = make().card
    except EtudeError as error:
        problem = error
    except Exception as error:  # noqa: BLE001 - foreign code; its fault is the finding
        problem = SpeechEngineError(engine=kind, reason=type(error).__name__)
    return EngineFinding(
        kind=kind,
        card=card,
        error=None if problem is None else problem.code,
        load_ms=_since_ms(began_s),
        problem=problem,
    )


def _model(engines: Engines, card: ModelCard) -> ModelFinding:
    try:
        engines.models.require(card.id)
    except EtudeError as error:
        return ModelFinding(card=card, error=error.code)
    return ModelFinding(card=card, error=None)


def _language(cards: dict[Kind, EngineCard | None], tag: str) -> LanguageFinding:
    def has(kind: Kind) -> bool:
        card = cards.get(kind)
        return card is not None and bool({tag, "*"} & set(card.languages))

    return LanguageFinding(
        language=tag,
        recognise=has("recognise"),
        align=has("align"),
        synthesise=has("synthesise"),
    )


def _round_trip(engines: Engines, cards: dict[Kind, EngineCard | None]) -> RoundTrip | None:
    if cards.get("recognise") is None or cards.get("synthesise") is None:
        return None
    began_s = time.monotonic()
    try:
        sound = engines.synthesiser().synthesise(SENTENCE, language="en").sound
        heard = engines.recogniser().recognise(sound, language="en").text
        aligned = None
        if cards.get("align") is not None:
            aligned = engines.aligner().align(sound, SENTENCE, language="en") is not None
    except EtudeError:
        return None
    return RoundTrip(
        said=SENTENCE,
        heard=heard,
        words_kept=round(words_kept(SENTENCE, heard), 2),
        aligned=aligned,
        spoken_ms=sound.duration_ms,
        took_ms=_since_ms(began_s),
    )


def _since_ms(began_s: float) -> int:
    return round((time.monotonic() - began_s) * 1000)
