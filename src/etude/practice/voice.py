"""What an Opus packet tells without decoding it: how long it lasts, and whether it is voice."""

from typing import Final

VOICE_BYTES: Final = 25
"""Smaller packets are silence: DTX sends 1 or 2 bytes, and at times about 17 of comfort noise."""

_SILK_MS: Final = (10.0, 20.0, 40.0, 60.0)
_HYBRID_MS: Final = (10.0, 20.0)
_CELT_MS: Final = (2.5, 5.0, 10.0, 20.0)
_HYBRID_FROM: Final = 12
_CELT_FROM: Final = 16
_TWO_FRAMES: Final = (1, 2)
_COUNTED: Final = 3


def packet_ms(packet: bytes) -> float:
    """Return how long a packet lasts, in milliseconds, from its first bytes (RFC 6716 §3.1)."""
    if not packet:
        return 0.0
    configuration, code = packet[0] >> 3, packet[0] & 3
    if configuration < _HYBRID_FROM:
        frame_ms = _SILK_MS[configuration % 4]
    elif configuration < _CELT_FROM:
        frame_ms = _HYBRID_MS[configuration % 2]
    else:
        frame_ms = _CELT_MS[configuration % 4]
    if code in _TWO_FRAMES:
        return 2 * frame_ms
    if code == _COUNTED:
        return (packet[1] & 63 if len(packet) > 1 else 0) * frame_ms
    return frame_ms


def is_voice(packet: bytes) -> bool:
    """Whether somebody speaks in it, as far as its size tells (until a detector is asked)."""
    return len(packet) >= VOICE_BYTES
