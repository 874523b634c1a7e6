"""What the pool and its processes say to each other: MessagePack behind four bytes of length."""

from pathlib import Path
from typing import IO, Any, Final, Literal

import msgspec

import etude.speech.errors
from etude.errors import EtudeError
from etude.speech.align import Alignment
from etude.speech.audio import Pcm
from etude.speech.engines import SpeechOptions
from etude.speech.errors import SpeechEngineError
from etude.speech.recognise import Recognised
from etude.speech.synthesise import Speech
from etude.speech.voice_activity import Spoken

MOST_BYTES: Final = 256 * 1024 * 1024
_LENGTH_BYTES: Final = 4

Kind = Literal["recognise", "align", "synthesise", "voice_activity"]


class Recognise(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """See `recognise.Recogniser`."""

    sound: Pcm
    language: str
    expected_text: str | None = None


class Align(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """See `align.SphinxAligner`."""

    sound: Pcm
    text: str
    language: str


class Detect(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """See `voice_activity.spoken_in`."""

    sound: Pcm


class Synthesise(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """See `synthesise.Synthesiser`."""

    text: str
    language: str
    rate: float = 1.0


Request = Recognise | Align | Detect | Synthesise


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    """The first message to a process: what it is to be.

    Attributes:
        options: which engines.
        factory: `module:name` of what is called with them; `engines.Engines` or a test's.
        warm: what is loaded before the process says that it is ready.
        memory_bytes: how much it may hold.
    """

    options: SpeechOptions
    factory: str
    warm: tuple[Kind, ...]
    memory_bytes: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process waits for requests. An engine that cannot be loaded is told with each request."""


class Heard(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Recognise`."""

    value: Recognised


class Found(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Align`."""

    value: Alignment | None


class Detected(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Detect`."""

    value: Spoken


class Spoke(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Synthesise`."""

    value: Speech


class Failed(msgspec.Struct, frozen=True, tag=True):
    """An error of ours, to be raised where the request came from."""

    code: str
    params: dict[str, str | float]

    def error(self) -> EtudeError:
        """Return it as it was raised."""
        made = _ERRORS.get(self.code)
        if made is None:
            return SpeechEngineError(engine="?", reason=self.code)
        return made(**self.params)


Answer = Ready | Heard | Found | Detected | Spoke | Failed


def _spelled(value: object) -> str:
    # A folder of models: the one kind of value here that MessagePack has not.
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError


def _respelled(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_spelled)
_beginnings: Final = msgspec.msgpack.Decoder(Begin, dec_hook=_respelled)


def read_begin(body: bytes) -> Begin:
    """Read the first message."""
    return _beginnings.decode(body)


def send(stream: IO[bytes], message: Request | Begin | Answer) -> None:
    """Write one message.

    Raises:
        OSError: the other side is gone.
        ValueError: the stream is closed.
    """
    body = _encoder.encode(message)
    stream.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one message; None = the other side is gone."""
    head = stream.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    if length > MOST_BYTES:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def _own_errors() -> dict[str, type[EtudeError]]:
    found: list[Any] = list(vars(etude.speech.errors).values())
    return {
        one.code: one
        for one in found
        if isinstance(one, type) and issubclass(one, EtudeError) and "code" in vars(one)
    }


_ERRORS: Final = _own_errors()
