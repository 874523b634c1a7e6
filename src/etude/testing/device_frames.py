"""Binary frames as the firmware packs and takes them (`docs/gateway.md §Binary messages`).

Written from the firmware's side and not with the gateway's own code, so that one checks the other.
"""

import struct
from typing import Final

V2_HEAD: Final = struct.Struct(">HHIII")
V3_HEAD: Final = struct.Struct(">BBH")
_OPUS: Final = 0


def pack(protocol: int, packet: bytes, timestamp_ms: int = 0) -> bytes:
    """Return the binary message that carries one Opus packet in protocol 1, 2 or 3."""
    if protocol == 2:  # noqa: PLR2004 - the protocol's own number
        return V2_HEAD.pack(2, _OPUS, 0, timestamp_ms, len(packet)) + packet
    if protocol == 3:  # noqa: PLR2004 - the protocol's own number
        return V3_HEAD.pack(_OPUS, 0, len(packet)) + packet
    return packet


def unpack(protocol: int, data: bytes) -> bytes | None:
    """Return the packet; None if the message would make the firmware read out of bounds."""
    if protocol == 2:  # noqa: PLR2004 - the protocol's own number
        head, kind_at, length_at = V2_HEAD, 1, 4
    elif protocol == 3:  # noqa: PLR2004 - the protocol's own number
        head, kind_at, length_at = V3_HEAD, 0, 2
    else:
        return data or None
    if len(data) < head.size:
        return None
    fields, packet = head.unpack_from(data), data[head.size :]
    return packet if fields[kind_at] == _OPUS and fields[length_at] == len(packet) else None
