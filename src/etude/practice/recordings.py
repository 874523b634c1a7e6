"""Recordings of a microphone: raw Opus packets in an Ogg container (RFC 7845, RFC 3533).

The packets go in as they came, none is decoded. How long each lasts is read from its own first
bytes (RFC 6716 §3.1), so frame sizes may change in the middle.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from etude.speech.errors import OpusPacketError
from etude.speech.opus import packet_samples

CONTENT_TYPE: Final = "audio/ogg"
GRANULE_RATE_HZ: Final = 48_000
"""Ogg Opus counts time in samples of 48 kHz, whatever the microphone's rate (RFC 7845 §4)."""
INPUT_RATE_HZ: Final = 16_000
"""What XiaoZhi microphones record at; of interest to nobody who decodes (RFC 7845 §5.1)."""
PRE_SKIP: Final = 312
"""What the encoders of the devices look ahead (6.5 ms), in samples of 48 kHz: not played."""

_SERIAL: Final = 0x45747564  # one stream a file: any number will do, the same makes equal files
_FIRST_PAGE, _LAST_PAGE = 0x02, 0x04
_SEGMENT_BYTES: Final = 255
_MOST_SEGMENTS: Final = 255
_CRC_AT: Final = 22
_VENDOR: Final = b"etude"
_MIRRORED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recording as a file.

    Attributes:
        data: the file.
        duration_ms: how long it plays.
        unusable: packets that are no Opus and were left out.
    """

    data: bytes
    duration_ms: int
    unusable: int


def record(packets: Iterable[bytes]) -> Recording | None:
    """Return the packets, in order, as one file; None if not one of them is Opus."""
    usable: list[tuple[bytes, int]] = []
    unusable = 0
    for packet in packets:
        samples = _samples(packet)
        if samples is None:
            unusable += 1
        else:
            usable.append((packet, samples))
    if not usable:
        return None
    total = sum(samples for _, samples in usable)
    return Recording(
        data=b"".join(_file(usable)),
        duration_ms=max(0, total - PRE_SKIP) * 1000 // GRANULE_RATE_HZ,
        unusable=unusable,
    )


def _samples(packet: bytes) -> int | None:
    try:
        return packet_samples(packet, GRANULE_RATE_HZ)
    except OpusPacketError:
        return None


def _file(packets: Sequence[tuple[bytes, int]]) -> Iterator[bytes]:
    head = struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, PRE_SKIP, INPUT_RATE_HZ, 0, 0)
    tags = struct.pack("<8sI5sI", b"OpusTags", len(_VENDOR), _VENDOR, 0)
    yield _page([head], number=0, granule=0, flags=_FIRST_PAGE)
    yield _page([tags], number=1, granule=0, flags=0)
    granule, pages = 0, list(_pages(packets))
    for number, page in enumerate(pages, start=2):
        granule += sum(samples for _, samples in page)
        flags = _LAST_PAGE if page is pages[-1] else 0
        yield _page([packet for packet, _ in page], number=number, granule=granule, flags=flags)


def _pages(packets: Sequence[tuple[bytes, int]]) -> Iterator[list[tuple[bytes, int]]]:
    """Yield whole packets by page: at most a second each (RFC 7845 §3), at most 255 segments."""
    page: list[tuple[bytes, int]] = []
    segments = samples = 0
    for packet, lasts in packets:
        wanted = len(packet) // _SEGMENT_BYTES + 1
        full = segments + wanted > _MOST_SEGMENTS or samples + lasts > GRANULE_RATE_HZ
        if page and full:
            yield page
            page, segments, samples = [], 0, 0
        page.append((packet, lasts))
        segments, samples = segments + wanted, samples + lasts
    yield page


def _page(packets: Sequence[bytes], *, number: int, granule: int, flags: int) -> bytes:
    lacing = bytearray()
    for packet in packets:
        whole, rest = divmod(len(packet), _SEGMENT_BYTES)
        lacing += bytes([_SEGMENT_BYTES]) * whole + bytes([rest])
    header = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, granule, _SERIAL, number, 0, len(lacing))
    page = bytearray(header + lacing + b"".join(packets))
    struct.pack_into("<I", page, _CRC_AT, _crc(page))
    return bytes(page)


def _crc(page: bytearray) -> int:
    """Return the checksum of RFC 3533 §6: polynomial 0x04c11db7, from 0, nothing turned round.

    zlib's is the same one read from the other end of each byte, begun and ended with all ones; by
    way of it a recording costs no loop over its bytes.
    """
    mirrored = zlib.crc32(page.translate(_MIRRORED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{mirrored:032b}"[::-1], 2)
