"""Synthesis: a text spoken aloud, at one loudness.

Two implementations keep this contract, and one suite runs both: `synthesise_piper` (embedded, no
network) and `synthesise_http` (a server with OpenAI's `/audio/speech`).
"""

from typing import Final, Protocol

import msgspec

from etude.speech.audio import Pcm, floats, from_floats
from etude.speech.errors import SpeechTextError
from etude.speech.loudness import measure
from etude.speech.recognise import EngineCard

TARGET_LUFS: Final = -20.0
"""How loud speech is made, well inside what `etude lesson build` accepts."""
LOWEST_RATE: Final = 0.5
HIGHEST_RATE: Final = 2.0

_HIGHEST_PEAK_DBFS: Final = -1.0


class Speech(msgspec.Struct, frozen=True, kw_only=True):
    """A text as sound, with what must be recorded wherever it is kept.

    Attributes:
        sound: at `TARGET_LUFS`, or as near as its peaks allow.
        language: the tag that was asked for.
        engine, model, licence, notice: as in `EngineCard`.
    """

    sound: Pcm
    language: str
    engine: str
    model: str
    licence: str
    notice: str = ""


class Synthesiser(Protocol):
    """One at a time: call it from one thread, or from one of the pool's processes."""

    @property
    def card(self) -> EngineCard:
        """What it is."""

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        """Speak.

        Args:
            text: what to say.
            language: the tag; of `en-GB` the first part counts.
            rate: 1.0 = the voice's own pace; 0.8 = slower, for learners. 0.5 to 2.0.

        Raises:
            SpeechTextError: there is nothing to say, too much, or the rate is out of range.
            SpeechLanguageError: the engine does not know the language.
            SpeechEngineError, SpeechServerError: it failed.
        """


def require_rate(rate: float) -> None:
    """Refuse a pace that no voice is understood at.

    Raises:
        SpeechTextError: it is out of range.
    """
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise SpeechTextError(reason=f"rate {rate} is not between {LOWEST_RATE} and {HIGHEST_RATE}")


def levelled(sound: Pcm, target_lufs: float = TARGET_LUFS) -> Pcm:
    """Return the sound at a loudness; no peak is raised above -1 dB. Silence stays. Pure."""
    found = measure(sound)
    if found.integrated_lufs is None or found.peak_dbfs is None:
        return sound
    wanted_db = target_lufs - found.integrated_lufs
    gain_db = min(wanted_db, _HIGHEST_PEAK_DBFS - found.peak_dbfs)
    return from_floats(floats(sound) * 10 ** (gain_db / 20), sound.sample_rate)
