"""What an Opus packet tells without being decoded: how long it lasts, and whether it is voice."""

from typing import Final

from etude.speech.errors import OpusPacketError
from etude.speech.opus import packet_ms

VOICE_BYTES: Final = 25
"""Smaller packets are silence: DTX sends 1 or 2 bytes, and at times about 17 of comfort noise."""


def lasts_ms(packet: bytes) -> float:
    """Return how long a packet lasts, in milliseconds; 0 if it is no Opus packet."""
    try:
        return packet_ms(packet)
    except OpusPacketError:
        return 0.0


def is_voice(packet: bytes) -> bool:
    """Whether somebody speaks in it, as far as its size tells (until a detector is asked)."""
    return len(packet) >= VOICE_BYTES
