"""What a simulated learner says, as real Opus packets, encoded once.

Every text has a pitch of its own and so packets of its own: `Voices.said_in` tells which text a
recording holds, and stands in for a recogniser that is always right.
"""

import importlib
import math
from collections.abc import Iterable
from typing import Final

from etude.speech.opus import OpusEncoder

SAMPLE_RATE: Final = 16_000
FRAME_MS: Final = 60
DTX: Final = b"\x58"
"""What the firmware sends in silence: a packet of its table-of-contents byte alone (RFC 6716 §3.1:
SILK, wide band, 60 ms, mono, one frame); it decodes to 960 samples of comfort noise."""
COMFORT: Final = bytes.fromhex("5801f25d7ce554b0fa0cdefe0529f78328")
"""The comfort frame in between, as libopus 1.3.1 encodes digital silence with DTX."""

_SAMPLES: Final = SAMPLE_RATE * FRAME_MS // 1000
_PERIOD: Final = 12  # packets of a voice before it repeats
_PITCHES: Final = 200
_LOWEST_HZ: Final = 110.0
_SEMITONE_PART: Final = 96.0  # so many pitches an octave
_FORMANTS: Final = ((700.0, 1.0), (1220.0, 0.6), (2600.0, 0.25))


class Voices:
    """Packets by text."""

    def __init__(self) -> None:
        """Know nothing yet; each text is encoded when it is first said."""
        self._packets: dict[str, tuple[bytes, ...]] = {}
        self._text_of: dict[bytes, str] = {}

    def say(self, text: str, lasts_ms: int) -> tuple[bytes, ...]:
        """Return the packets of `text`, spoken for `lasts_ms`."""
        packets = self._packets.get(text)
        if packets is None:
            packets = self._packets[text] = _speak(len(self._packets) % _PITCHES)
            self._text_of |= dict.fromkeys(packets, text)
        count = max(1, math.ceil(lasts_ms / FRAME_MS))
        return tuple(packets[place % len(packets)] for place in range(count))

    def said_in(self, packets: Iterable[bytes]) -> str | None:
        """Return the text that most of the packets belong to; None if nobody spoke."""
        seen: dict[str, int] = {}
        for packet in packets:
            text = self._text_of.get(packet)
            if text is not None:
                seen[text] = seen.get(text, 0) + 1
        return max(seen, key=lambda text: seen[text]) if seen else None


def _speak(number: int) -> tuple[bytes, ...]:
    """Encode a vowel at the pitch of this number, with the rise and fall of syllables."""
    numpy = importlib.import_module("numpy")
    moments = numpy.arange(_PERIOD * _SAMPLES) / SAMPLE_RATE
    sound = 0.65 + 0.35 * numpy.sin(2 * math.pi * 4 * moments)  # four syllables a second
    pitch_hz = _LOWEST_HZ * 2 ** (number / _SEMITONE_PART)
    sound *= sum(
        _gain(harmonic, pitch_hz) * numpy.sin(2 * math.pi * harmonic * pitch_hz * moments)
        for harmonic in range(1, 20)
    )
    samples = numpy.rint(2250 * sound).astype(numpy.int16)
    encoder = OpusEncoder(SAMPLE_RATE, FRAME_MS)
    return tuple(
        encoder.encode(samples[start : start + _SAMPLES].tobytes())
        for start in range(0, len(samples), _SAMPLES)
    )


def _gain(harmonic: int, pitch_hz: float) -> float:
    """Return how loud a harmonic of an open vowel is."""
    away = ((harmonic * pitch_hz - centre) / 180 for centre, _ in _FORMANTS)
    formants = sum(level / (1 + far**2) for far, (_, level) in zip(away, _FORMANTS, strict=True))
    return 0.1 / harmonic + formants
