"""Reads Ogg back into packets (RFC 3533), for tests that ask whose voice a recording holds."""

from collections.abc import Iterator
from typing import Final

_HEAD: Final = 27
_SEGMENT_BYTES: Final = 255
_HEADER_PACKETS: Final = 2  # of Opus: what it is, and who made it (RFC 7845 §3)


def opus_packets(data: bytes) -> list[bytes]:
    """Return the packets of sound of an Ogg Opus file."""
    return list(_packets(data))[_HEADER_PACKETS:]


def _packets(data: bytes) -> Iterator[bytes]:
    at, packet = 0, b""
    while at < len(data):
        if data[at : at + 4] != b"OggS":
            message = f"no page at byte {at}"
            raise ValueError(message)
        lacing = data[at + _HEAD : at + _HEAD + data[at + _HEAD - 1]]
        at += _HEAD + len(lacing)
        for length in lacing:
            packet += data[at : at + length]
            at += length
            if length < _SEGMENT_BYTES:
                yield packet
                packet = b""
