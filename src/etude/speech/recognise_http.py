"""Recognition by a server: OpenAI's `POST /v1/audio/transcriptions`.

Many speak it: OpenAI, and on one's own machine FunASR, faster-whisper-server, LocalAI, vLLM. The
sound leaves this process; whose machine that is, is the operator's choice and in `speech check`.
"""

import io
import secrets
import wave
from typing import Final

import httpx2
import msgspec

from etude.speech.audio import Pcm, resampled
from etude.speech.recognise import EngineCard, Recognised, base_language
from etude.speech.speech_server import ServerOptions, SpeechServer

SAMPLE_RATE: Final = 16_000
_SAMPLE_BYTES: Final = 2
_LONGEST_TEXT: Final = 20_000


class _Transcription(msgspec.Struct, frozen=True):
    text: str


class HttpRecogniser:
    """See `recognise.Recogniser`. It scores no text: the protocol has no place for that."""

    def __init__(self, options: ServerOptions, *, wire: httpx2.BaseTransport | None = None) -> None:
        """Check the address; connects at the first request.

        Raises:
            SpeechServerError: address or key cannot work.
        """
        self._server = SpeechServer(options, wire=wire)
        self.card = EngineCard(
            engine=f"openai-http/{options.url}",
            model=options.model,
            licence="",
            languages=("*",),
            sample_rate=SAMPLE_RATE,
            releases_gil=True,
        )

    def recognise(
        self,
        sound: Pcm,
        *,
        language: str,
        expected_text: str | None = None,  # noqa: ARG002 - a prompt would lead it to the right answer
    ) -> Recognised:
        """See `recognise.Recogniser`."""
        boundary = secrets.token_hex(16)
        fields = {
            "model": self._server.options.model,
            "language": base_language(language),
            "response_format": "json",
            "temperature": "0",
        }
        body = multipart(boundary, fields, to_wav(resampled(sound, SAMPLE_RATE)))
        reply = self._server.post(
            "/audio/transcriptions", body, f"multipart/form-data; boundary={boundary}"
        )
        try:
            text = msgspec.json.decode(reply.body, type=_Transcription).text
        except msgspec.MsgspecError as error:
            raise self._server.unusable(reason="no JSON object with a text") from error
        if len(text) > _LONGEST_TEXT:
            raise self._server.unusable(reason=f"more than {_LONGEST_TEXT} characters")
        return Recognised(
            text=" ".join(text.split()),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
        )


def to_wav(sound: Pcm) -> bytes:
    """Return sound as a WAV file. Pure."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(_SAMPLE_BYTES)
        writer.setframerate(sound.sample_rate)
        writer.writeframes(sound.samples)
    return file.getvalue()


def multipart(boundary: str, fields: dict[str, str], wav: bytes) -> bytes:
    """Return a form with one file `speech.wav` (RFC 7578). Pure."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="speech.wav"\r\n'
        "Content-Type: audio/wav\r\n\r\n"
    )
    return "".join([*parts, head]).encode() + wav + f"\r\n--{boundary}--\r\n".encode()
