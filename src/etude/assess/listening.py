"""Listening once: what the engines make of a turn, shared by all methods that need to hear it."""

from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.high_voices import (
    AS_SPOKEN,
    SLOWED,
    alignment_in_time,
    pace_for,
    played,
    recognised_in_time,
)
from etude.assess.words import is_chinese
from etude.errors import EtudeError
from etude.speech.align import Alignment
from etude.speech.audio import Pcm, floats, from_floats, resampled
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.errors import (
    ModelChangedError,
    ModelMissingError,
    SpeechExtraMissingError,
    SpeechLanguageError,
)
from etude.speech.recognise import Recognised
from etude.speech.voice_activity import Spoken, spoken_in

SAMPLE_RATE: Final = 16_000
ENGLISH: Final = "en"
LONGEST_S: Final = 25
"""Longer recordings are recognised piece by piece and not aligned: no method measures them."""

NO_ENGINE: Final[tuple[type[EtudeError], ...]] = (
    SpeechExtraMissingError,
    ModelMissingError,
    ModelChangedError,
    SpeechLanguageError,
)
"""Errors that another attempt does not mend: there is no engine, or none for this language."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the engines made of a turn.

    Attributes:
        samples: mono at 16 kHz in -1 … 1.
        recognised: None = there is no recogniser.
        alignment: None = the expected text was not found in the sound, or there is no aligner.
        aligned: whether an aligner was asked at all.
        pace: how fast the engines heard it (`high_voices`); all times are those of the sound.
        spoken: where somebody speaks; None = there is no detector.
    """

    samples: NDArray[np.float32]
    recognised: Recognised | None
    alignment: Alignment | None
    aligned: bool
    pace: float = AS_SPOKEN
    spoken: Spoken | None = None

    @property
    def engines(self) -> dict[str, str]:
        """The engines and models that belong beside every number made from this."""
        found: dict[str, str] = {}
        if self.recognised is not None:
            found |= self.recognised.engines
        if self.alignment is not None:
            found |= {"aligner": self.alignment.engine, "acoustic_model": self.alignment.model}
        if self.pace != AS_SPOKEN:
            found["heard_at"] = f"{self.pace:g}"
        return found


class Listener(Protocol):
    """Who hears: the engines of this process, or what a pool of others answered."""

    def hear(
        self, expected_text: str | None, audio: NDArray[np.float32], sample_rate: int
    ) -> Heard:
        """Return what the engines make of a sound."""


class OwnEngines:
    """Hears with engines of this process: for training, benches and single calls.

    A server hears through `speech.pool`, where an engine that hangs hurts nobody.
    """

    def __init__(self, options: SpeechOptions | None = None, *, slows: bool = True) -> None:
        """Load nothing yet; `slows` False: hear high voices as they are, as `_v1` did."""
        self._engines = Engines(options or SpeechOptions())
        self._slows = slows

    def hear(
        self, expected_text: str | None, audio: NDArray[np.float32], sample_rate: int
    ) -> Heard:
        """See `Listener.hear`."""
        sound = resampled(from_floats(audio, sample_rate), SAMPLE_RATE)
        samples = floats(sound)
        pace = hearing_pace(expected_text, samples) if self._slows else AS_SPOKEN
        is_whole = fits(sound)
        spoken = self._spoken(sound)
        sound = played(sound, pace)
        try:
            recognised = self._engines.recogniser().recognise(
                sound, language=ENGLISH, expected_text=expected_text
            )
            alignment = (
                self._engines.aligner().align(sound, expected_text, language=ENGLISH)
                if expected_text and is_whole
                else None
            )
        except NO_ENGINE:
            return Heard(
                samples=samples, recognised=None, alignment=None, aligned=False, spoken=spoken
            )
        return Heard(
            samples=samples,
            recognised=recognised_in_time(recognised, pace),
            alignment=alignment_in_time(alignment, pace),
            aligned=bool(expected_text) and is_whole,
            pace=pace,
            spoken=spoken,
        )

    def _spoken(self, sound: Pcm) -> Spoken | None:
        try:
            return spoken_in(sound, self._engines.detector())
        except NO_ENGINE:
            return None


class Told:
    """Hands out what was heard already, elsewhere."""

    def __init__(self, heard: Heard) -> None:
        """Keep it."""
        self._heard = heard

    def hear(
        self,
        expected_text: str | None,  # noqa: ARG002 - it was heard with this text
        audio: NDArray[np.float32],  # noqa: ARG002 - see above
        sample_rate: int,  # noqa: ARG002 - see above
    ) -> Heard:
        """See `Listener.hear`."""
        return self._heard


def fits(sound: Pcm) -> bool:
    """Say whether a sound is short enough to be measured whole."""
    return sound.duration_ms <= LONGEST_S * 1000


def hearing_pace(expected_text: str | None, samples: NDArray[np.float32]) -> float:
    """Return how fast engines are to hear a turn: a high voice that reads English is slowed.

    What would be too long then is heard as it was spoken.
    """
    if not expected_text or is_chinese(expected_text):
        return AS_SPOKEN
    return pace_for(samples) if len(samples) <= LONGEST_S * SLOWED * SAMPLE_RATE else AS_SPOKEN
