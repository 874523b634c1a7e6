"""What a simulated learner says, as real Opus packets, encoded once.

Every text has a pitch of its own and so packets of its own: `Voices.said_in` tells which text a
recording holds, and stands in for a recogniser that is always right.
"""

import math
from array import array
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
    pitch_hz = _LOWEST_HZ * 2 ** (number / _SEMITONE_PART)
    encoder = OpusEncoder(SAMPLE_RATE, FRAME_MS)
    made = []
    for place in range(_PERIOD):
        samples = array("h")
        for at in range(place * _SAMPLES, (place + 1) * _SAMPLES):
            samples.append(round(9000 * _loudness(at) * _vowel(pitch_hz, at)))
        made.append(encoder.encode(samples.tobytes()))
    return tuple(made)


def _loudness(at: int) -> float:
    return 0.65 + 0.35 * math.sin(2 * math.pi * 4 * at / SAMPLE_RATE)  # four syllables a second


def _vowel(pitch_hz: float, at: int) -> float:
    total = 0.0
    for harmonic in range(1, 20):
        hz = pitch_hz * harmonic
        gain = sum(level / (1 + ((hz - centre) / 180) ** 2) for centre, level in _FORMANTS)
        total += (0.1 / harmonic + gain) * math.sin(2 * math.pi * hz * at / SAMPLE_RATE)
    return total / 4
