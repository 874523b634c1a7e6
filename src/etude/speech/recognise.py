"""Recognition: what was said, and how well the sound fits the text that was to be read.

Two implementations keep this contract, and one suite runs both: `recognise_whisper` (embedded, no
network) and `recognise_http` (a server with OpenAI's `/audio/transcriptions`).
"""

import math
from typing import Final, Protocol

import msgspec

from etude.speech.audio import Pcm

NO_SPEECH_FROM: Final = 0.6
LEAST_SURE: Final = math.exp(-1.0)
"""Of a recogniser that takes a sound for silence and is less sure of its words, they are invented.

Both are Whisper's own. Either alone is wrong: a short "42" had 0.82 of silence, noise was 0.84 to
0.97; the mean probability of words was 0.5 to 0.9 for speech and 0.02 to 0.15 for noise.
"""


class EngineCard(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says of itself.

    Attributes:
        engine: its name and the version of its library: `ctranslate2/4.8.5`.
        model: the model's id and version: `whisper-tiny.en/0123456789ab`; of a server, its name.
        licence: of the model; empty = a server's, which nobody here knows.
        languages: tags like `en`; `*` = not restricted here.
        sample_rate: in Hz, what it works at; other sound is resampled first.
        releases_gil: whether Python's other threads run while it works.
        notice: what whoever ships its output should know.
    """

    engine: str
    model: str
    licence: str
    languages: tuple[str, ...]
    sample_rate: int
    releases_gil: bool
    notice: str = ""


class TokenScore(msgspec.Struct, frozen=True, array_like=True):
    """A piece of a word and how probable it is, given the sound and the pieces before it.

    Attributes:
        text: as the engine cuts it; a leading space begins a word.
        probability: 0 to 1.
    """

    text: str
    probability: float


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine's encoder made of a sound: material for measuring how it was said.

    Attributes:
        frame_ms: how much of the sound a frame is about.
        width: numbers a frame.
        values: the frames one after the other, as 16-bit floats, little-endian.
    """

    frame_ms: float
    width: int
    values: bytes


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine heard.

    Attributes:
        text: empty = nothing.
        language: the tag that was asked for.
        engine, model: as in `EngineCard`; they belong beside every number made from this.
        no_speech_probability: 0 to 1; None = the engine does not say.
        tokens: of `text`; None = the engine does not say.
        expected_tokens: of the text that was to be read ("teacher-forced"); None = none was given,
            the engine cannot, or the sound is longer than one window of it (25 s).
        encoding: of the sound without what was padded; None exactly where `expected_tokens` is.
    """

    text: str
    language: str
    engine: str
    model: str
    no_speech_probability: float | None = None
    tokens: tuple[TokenScore, ...] | None = None
    expected_tokens: tuple[TokenScore, ...] | None = None
    encoding: Encoding | None = None

    @property
    def engines(self) -> dict[str, str]:
        """The engine and the model, as they stand beside whatever is made of this."""
        return {"recogniser": self.engine, "model": self.model}


class Recogniser(Protocol):
    """One at a time: call it from one thread, or from one of the pool's processes."""

    @property
    def card(self) -> EngineCard:
        """What it is."""

    def recognise(
        self, sound: Pcm, *, language: str, expected_text: str | None = None
    ) -> Recognised:
        """Hear.

        Args:
            sound: at any rate.
            language: the tag; of `zh-CN` the first part counts.
            expected_text: what was to be read. It bounds how long the answer may be and is scored;
                the engine is never led by it.

        Raises:
            SpeechLanguageError: the engine does not know the language.
            SpeechEngineError, SpeechServerError: it failed.
        """


def is_invented(heard: Recognised) -> bool:
    """Whether a recogniser has put words to noise or silence. Pure."""
    if (heard.no_speech_probability or 0.0) < NO_SPEECH_FROM:
        return False
    if not heard.tokens:
        return True
    logs = [math.log(max(token.probability, 1e-9)) for token in heard.tokens]
    return math.exp(sum(logs) / len(logs)) < LEAST_SURE


def base_language(tag: str) -> str:
    """Return the first part of a language tag in lower case: `zh` of `zh-CN`."""
    return tag.partition("-")[0].lower()
