"""Opus packets (RFC 6716) in and out of 16-bit mono samples.

The codec is libopus, through the Python module `opuslib_next`, which two distributions bring:
`opuslib-next-bundled` has libopus inside (what `etude[server]` installs), `opuslib-next` takes the
system's. They overwrite each other's files, so never install both; this module works with either
(`docs/dependencies.md`). The library is loaded by the first encoder or decoder, not at import.

An encoder or decoder is the state of one stream: one a microphone, one a clip, one thread at a
time. libopus releases the interpreter's lock while it works.
"""

import importlib
from types import ModuleType
from typing import Any, Final

from etude.speech.errors import (
    INSTALL_LINE,
    OpusFormatError,
    OpusPacketError,
    SoundLibraryMissingError,
)

SAMPLE_RATES: Final = (8_000, 12_000, 16_000, 24_000, 48_000)
FRAMES_MS: Final = (10, 20, 40, 60)
"""Frame lengths of our encoder; a decoder takes every length that a packet declares."""
LONGEST_PACKET_MS: Final = 120

BITRATE: Final = 24_000
COMPLEXITY: Final = 5
_CHANNELS: Final = 1
_SAMPLE_BYTES: Final = 2

# RFC 6716 §3.1, Table 2: 32 configurations; SILK, hybrid and CELT frames in tenths of milliseconds.
_SILK: Final = (100, 200, 400, 600)
_HYBRID: Final = (100, 200)
_CELT: Final = (25, 50, 100, 200)
_FRAME_TENTHS_MS: Final = _SILK * 3 + _HYBRID * 2 + _CELT * 4
_MOST_FRAMES: Final = 48


class OpusEncoder:
    """Encodes one stream of mono speech: variable rate around 24 kbit/s, tuned for voice."""

    def __init__(self, sample_rate: int = 24_000, frame_ms: int = 60) -> None:
        """Start a stream.

        Args:
            sample_rate: of the samples, in Hz: one of `SAMPLE_RATES`.
            frame_ms: what each packet lasts: one of `FRAMES_MS`.

        Raises:
            OpusFormatError: Opus has no such rate or frame.
            SoundLibraryMissingError: libopus is not there.
        """
        _require_rate(sample_rate)
        if frame_ms not in FRAMES_MS:
            raise OpusFormatError(what="frame_ms", value=frame_ms, known=_listed(FRAMES_MS))
        opus = _load()
        self.sample_rate = sample_rate
        self.frame_ms = frame_ms
        self.frame_samples = sample_rate * frame_ms // 1000
        self._error: type[Exception] = opus.OpusError
        self._encoder: Any = opus.Encoder(sample_rate, _CHANNELS, opus.APPLICATION_VOIP)
        self._encoder.signal = opus.SIGNAL_VOICE
        self._encoder.complexity = COMPLEXITY
        self._encoder.bitrate = BITRATE
        self._encoder.vbr = 1

    @property
    def delay_samples(self) -> int:
        """How many samples the decoded sound lies behind what was encoded."""
        return int(self._encoder.lookahead)

    def encode(self, pcm16: bytes) -> bytes:
        """Encode exactly one frame of 16-bit samples, in the machine's byte order.

        Raises:
            OpusFormatError: it is not one frame.
        """
        if len(pcm16) != self.frame_samples * _SAMPLE_BYTES:
            wanted = f"{self.frame_samples * _SAMPLE_BYTES} bytes"
            raise OpusFormatError(what="frame", value=len(pcm16), known=wanted)
        try:
            return bytes(self._encoder.encode(pcm16, self.frame_samples))
        except self._error as error:
            raise OpusFormatError(what="frame", value=str(error), known="") from error


class OpusDecoder:
    """Decodes one stream of packets to mono samples."""

    def __init__(self, sample_rate: int = 16_000) -> None:
        """Start a stream.

        Args:
            sample_rate: of the samples that come out, in Hz: one of `SAMPLE_RATES`, whatever the
                packets were encoded at.

        Raises:
            OpusFormatError: Opus has no such rate.
            SoundLibraryMissingError: libopus is not there.
        """
        _require_rate(sample_rate)
        opus = _load()
        self.sample_rate = sample_rate
        self._most_samples = sample_rate * LONGEST_PACKET_MS // 1000
        self._error: type[Exception] = opus.OpusError
        self._decoder: Any = opus.Decoder(sample_rate, _CHANNELS)

    def decode(self, packet: bytes) -> bytes:
        """Return the 16-bit samples of a packet, as many as it declares (at most 120 ms).

        An empty packet is refused: libopus would invent sound for it
        (`docs/gateway.md §Binary messages`). After an error the next packet can be decoded as if
        this one had never come.

        Raises:
            OpusPacketError: it is no Opus packet.
        """
        if not packet:
            raise OpusPacketError(size_bytes=0, reason="empty")
        try:
            return bytes(self._decoder.decode(packet, self._most_samples))
        except self._error as error:
            raise OpusPacketError(size_bytes=len(packet), reason=str(error)) from error

    def reset(self) -> None:
        """Forget the stream so far: what follows is another one (`listen start`)."""
        self._decoder.reset_state()


def packet_ms(packet: bytes) -> float:
    """Return what a packet lasts, from its table of contents (RFC 6716 §3.1); needs no library.

    Raises:
        OpusPacketError: it is empty, cut off, or declares more than 120 ms.
    """
    if not packet:
        raise OpusPacketError(size_bytes=0, reason="empty")
    frames = _frame_count(packet)
    tenths_ms = frames * _FRAME_TENTHS_MS[packet[0] >> 3]
    if not 0 < tenths_ms <= LONGEST_PACKET_MS * 10:
        raise OpusPacketError(size_bytes=len(packet), reason="length")
    return tenths_ms / 10


def packet_samples(packet: bytes, sample_rate: int) -> int:
    """Return how many samples a packet decodes to at `sample_rate`. Raises `packet_ms`'s."""
    return round(packet_ms(packet) * sample_rate / 1000)


def _frame_count(packet: bytes) -> int:
    kind = packet[0] & 3
    if kind < 3:  # noqa: PLR2004 - RFC 6716 §3.1: code 3 carries its count in the next byte
        return (1, 2, 2)[kind]
    if len(packet) == 1:
        raise OpusPacketError(size_bytes=1, reason="cut off")
    count = packet[1] & 0x3F
    if count > _MOST_FRAMES:
        raise OpusPacketError(size_bytes=len(packet), reason="length")
    return count


def _require_rate(sample_rate: int) -> None:
    if sample_rate not in SAMPLE_RATES:
        raise OpusFormatError(what="sample_rate", value=sample_rate, known=_listed(SAMPLE_RATES))


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _load() -> ModuleType:
    try:
        return importlib.import_module("opuslib_next")
    except Exception as error:  # which class a missing libopus raises differs between the two
        raise SoundLibraryMissingError(
            library="libopus", reason=str(error), install=INSTALL_LINE
        ) from error
