"""What this installation can hear and say, tried out: `etude speech check`.

A finding never raises: an engine that cannot be used is what the check is for. Of Chinese it says
the truth (`docs/rules.md 26`): nothing that ships recognises, measures or speaks it.
"""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import msgspec

from etude.errors import EtudeError
from etude.speech import sherpa
from etude.speech.engines import Engines
from etude.speech.errors import SpeechEngineError
from etude.speech.models import ModelCard
from etude.speech.recognise import EngineCard
from etude.speech.recognise_whisper import plain_text

Kind = Literal["recognise", "align", "synthesise", "voice_activity"]

SENTENCES: Final = {
    "en": "The quick brown fox jumps over the lazy dog.",
    "zh": "今天天气很好，我们一起去公园。",  # noqa: RUF001 - Chinese punctuation
}
"""Said and heard again by the round trip, in the first language that voice and recogniser share."""
LANGUAGES: Final = tuple(SENTENCES)
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
        said, heard: the sentence and what came back; empty = nothing, or an engine failed.
        words_kept: the part of its words (of Chinese: characters) that came back, 0 to 1.
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
    """All of it. `round_trip` is None where voice and recogniser share no language."""

    engines: tuple[EngineFinding, ...]
    models: tuple[ModelFinding, ...]
    languages: tuple[LanguageFinding, ...]
    round_trip: RoundTrip | None

    @property
    def is_sound(self) -> bool:
        """Whether everything that is configured works."""
        return all(one.card is not None for one in self.engines) and (
            self.round_trip is None or self.round_trip.understood
        )


def run_check(engines: Engines) -> SpeechReport:
    """Load each engine and try them on a sentence: seconds. No network but configured servers."""
    found = tuple(
        _engine(kind, make)
        for kind, make in (
            ("recognise", partial(_safely, engines, "recogniser")),
            ("align", engines.aligner),
            ("synthesise", partial(_safely, engines, "synthesiser")),
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
    left = _words(heard)
    words = _words(said)
    kept = 0
    for word in words:
        if word in left:
            left.remove(word)
            kept += 1
    return kept / len(words) if words else 0.0


def _safely(engines: Engines, kind: Literal["recogniser", "synthesiser"]) -> Any:  # noqa: ANN401 - two kinds
    """Make an engine; one that would end this process is tried in another before."""
    options = engines.options
    recognises = kind == "recogniser"
    server = options.recogniser_server if recognises else options.voice_server
    model_id = options.recogniser if recognises else options.voice
    if server is None and engines.models.card(model_id).format in sherpa.MAKERS:
        sherpa.require_loads(options.models, model_id)
    return engines.recogniser() if recognises else engines.synthesiser()


def _words(text: str) -> list[str]:
    plain = plain_text(text)
    return plain.split() if plain.isascii() else list(plain.replace(" ", ""))


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
    return LanguageFinding(
        language=tag,
        recognise=_knows(cards.get("recognise"), tag),
        align=_knows(cards.get("align"), tag),
        synthesise=_knows(cards.get("synthesise"), tag),
    )


def _round_trip(engines: Engines, cards: dict[Kind, EngineCard | None]) -> RoundTrip | None:
    shared = [
        tag
        for tag in LANGUAGES
        if _knows(cards.get("recognise"), tag) and _knows(cards.get("synthesise"), tag)
    ]
    if not shared:
        return None
    language = shared[0]
    said, heard, spoken_ms = SENTENCES[language], "", 0
    aligned: bool | None = None
    began_s = time.monotonic()
    with contextlib.suppress(EtudeError):  # then nothing, or less, came back
        sound = engines.synthesiser().synthesise(said, language=language).sound
        spoken_ms = sound.duration_ms
        heard = engines.recogniser().recognise(sound, language=language).text
        if _knows(cards.get("align"), language):
            aligned = engines.aligner().align(sound, said, language=language) is not None
    return RoundTrip(
        said=said,
        heard=heard,
        words_kept=round(words_kept(said, heard), 2),
        aligned=aligned,
        spoken_ms=spoken_ms,
        took_ms=_since_ms(began_s),
    )


def _knows(card: EngineCard | None, tag: str) -> bool:
    return card is not None and bool({tag, "*"} & set(card.languages))


def _since_ms(began_s: float) -> int:
    return round((time.monotonic() - began_s) * 1000)
