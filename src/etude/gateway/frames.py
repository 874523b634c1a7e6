"""The three layouts of a binary message: bare Opus, behind 16 bytes, behind 4 bytes.

All integers are big-endian, both directions alike. A device does not check the lengths it is sent,
so `pack` never writes one that does not fit, and `unpack` believes none.
"""

import struct
from enum import IntEnum
from typing import Final

import msgspec

from etude.gateway.errors import DeviceFrameError, PacketTooLongError


class BinaryVersion(IntEnum):
    """The layout of binary messages, from `Protocol-Version` or the hello's `version`."""

    BARE = 1
    TIMED = 2
    SHORT = 3


class PacketKind(IntEnum):
    """What a packet holds, by the header's `type`."""

    OPUS = 0
    JSON = 1


class Packet(msgspec.Struct, frozen=True):
    """The content of one binary message.

    Attributes:
        payload: an Opus packet, or the bytes of a JSON text.
        timestamp_ms: version 2 only, else 0: what the device was playing when it recorded this.
        kind: what the payload is.
    """

    payload: bytes
    timestamp_ms: int = 0
    kind: PacketKind = PacketKind.OPUS


_TIMED: Final = struct.Struct(">HHIII")
_SHORT: Final = struct.Struct(">BBH")
_LONGEST: Final = {
    BinaryVersion.BARE: 2**32 - 1,
    BinaryVersion.TIMED: 2**32 - 1,
    BinaryVersion.SHORT: 2**16 - 1,
}
_CLOCK_TURNS_MS: Final = 2**32


def binary_version(value: object) -> BinaryVersion | None:
    """Return the version that a header's text or a hello's number names; None = none known."""
    if isinstance(value, str):
        value = value.strip()
    for version in BinaryVersion:
        if value in (int(version), str(int(version))) and not isinstance(value, bool):
            return version
    return None


def pack(version: BinaryVersion, payload: bytes, timestamp_ms: int = 0) -> bytes:
    """Return the binary message that carries one Opus packet to a device.

    Args:
        version: the layout that the device has asked for.
        payload: the packet.
        timestamp_ms: for version 2; wraps around after 2^32 ms.

    Raises:
        PacketTooLongError: the layout cannot say the packet's length.
    """
    if len(payload) > _LONGEST[version]:
        raise PacketTooLongError(
            version=int(version), size_bytes=len(payload), limit_bytes=_LONGEST[version]
        )
    if version is BinaryVersion.TIMED:
        head = _TIMED.pack(2, PacketKind.OPUS, 0, timestamp_ms % _CLOCK_TURNS_MS, len(payload))
        return head + payload
    if version is BinaryVersion.SHORT:
        return _SHORT.pack(PacketKind.OPUS, 0, len(payload)) + payload
    return payload


def unpack(version: BinaryVersion, message: bytes) -> Packet:
    """Return what a device's binary message carries; an empty payload is the caller's to skip.

    Raises:
        DeviceFrameError: too short, of another version or type, or not as long as it says.
    """
    if version is BinaryVersion.TIMED:
        return _unpack_timed(message)
    if version is BinaryVersion.SHORT:
        return _unpack_short(message)
    return Packet(message)


def _unpack_timed(message: bytes) -> Packet:
    if len(message) < _TIMED.size:
        raise _broken(2, "header", len(message), f"{len(message)} of {_TIMED.size} bytes")
    stated, kind, _, timestamp_ms, size = _TIMED.unpack_from(message)
    if stated != BinaryVersion.TIMED:
        raise _broken(2, "version", 0, f"says {stated}")
    if kind not in {PacketKind.OPUS, PacketKind.JSON}:
        raise _broken(2, "type", 2, f"says {kind}")
    _check_size(2, 12, size, len(message) - _TIMED.size)
    return Packet(message[_TIMED.size :], timestamp_ms, PacketKind(kind))


def _unpack_short(message: bytes) -> Packet:
    if len(message) < _SHORT.size:
        raise _broken(3, "header", len(message), f"{len(message)} of {_SHORT.size} bytes")
    kind, _, size = _SHORT.unpack_from(message)
    if kind not in {PacketKind.OPUS, PacketKind.JSON}:
        raise _broken(3, "type", 0, f"says {kind}")
    _check_size(3, 2, size, len(message) - _SHORT.size)
    return Packet(message[_SHORT.size :], kind=PacketKind(kind))


def _check_size(version: int, offset: int, stated: int, found: int) -> None:
    if stated != found:
        raise _broken(version, "payload_size", offset, f"says {stated}, followed by {found} bytes")


def _broken(version: int, field: str, offset: int, reason: str) -> DeviceFrameError:
    return DeviceFrameError(version=version, field=field, offset=offset, reason=reason)
