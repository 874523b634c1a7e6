"""Synthesis by a server: OpenAI's `POST /v1/audio/speech`, answered as WAV.

The text leaves this process; whose machine that is, is the operator's choice and in `speech check`.
"""

import io
from typing import TYPE_CHECKING, Any, Final

import httpx2
import msgspec

from etude.speech.audio import LONGEST_MS, Pcm, from_floats
from etude.speech.errors import SpeechTextError
from etude.speech.libraries import load_library
from etude.speech.recognise import EngineCard
from etude.speech.speech_server import ServerOptions, SpeechServer
from etude.speech.synthesise import Speech, levelled, require_rate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_TEXT: Final = 4_096
"""OpenAI's own bound."""


class HttpSynthesiser:
    """See `synthesise.Synthesiser`."""

    def __init__(self, options: ServerOptions, *, wire: httpx2.BaseTransport | None = None) -> None:
        """Check the address; connects at the first request.

        Raises:
            SpeechServerError: address or key cannot work.
            SoundLibraryMissingError: libsndfile is not there.
        """
        self._server = SpeechServer(options, wire=wire)
        self._sound_file = load_library("soundfile")
        self.card = EngineCard(
            engine=f"openai-http/{options.url}",
            model=f"{options.model}/{options.voice}",
            licence="",
            languages=("*",),
            sample_rate=24_000,
            releases_gil=True,
        )

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        """See `synthesise.Synthesiser`."""
        require_rate(rate)
        if not any(character.isalnum() for character in text):
            raise SpeechTextError(reason="no letter and no digit")
        if len(text) > LONGEST_TEXT:
            raise SpeechTextError(reason=f"more than {LONGEST_TEXT} characters")
        options = self._server.options
        wanted = {
            "model": options.model,
            "voice": options.voice,
            "input": text,
            "response_format": "wav",
            "speed": rate,
        }
        body = msgspec.json.encode(wanted)
        reply = self._server.post("/audio/speech", body, "application/json")
        return Speech(
            sound=levelled(self._read(reply.body)),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
            licence=self.card.licence,
        )

    def _read(self, data: bytes) -> Pcm:
        try:
            with self._sound_file.SoundFile(io.BytesIO(data)) as sound:
                self._require_length(sound)
                blocks: NDArray[np.float32] = sound.read(dtype="float32", always_2d=True)
                rate = int(sound.samplerate)
        except (self._sound_file.SoundFileError, OSError, ValueError) as error:
            raise self._server.unusable(reason="no audio that can be read") from error
        if not len(blocks):
            raise self._server.unusable(reason="no sound")
        return from_floats(blocks.mean(axis=1), rate)

    def _require_length(self, sound: Any) -> None:  # noqa: ANN401 - soundfile has no types
        if not 4_000 <= sound.samplerate <= 192_000:  # noqa: PLR2004 - what `audio` reads too
            raise self._server.unusable(reason=f"{sound.samplerate} Hz")
        if len(sound) * 1000 > LONGEST_MS * sound.samplerate:
            raise self._server.unusable(reason="longer than ten minutes")
