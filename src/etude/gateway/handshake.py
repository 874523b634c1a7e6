"""Who is at the door, and whether it may come in, before the WebSocket handshake is answered.

Devices say who they are in headers. Browsers cannot set headers for a WebSocket, so the same names
count in the query of the address, where a header is missing; so an address is never logged.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from etude.gateway.frames import BinaryVersion, binary_version

_DEVICE_ID: Final = re.compile(r"[0-9a-z][0-9a-z:._-]{0,63}")
_CLIENT_ID: Final = re.compile(r"[0-9A-Za-z:._-]{0,64}")
_TOKEN_CHARACTERS: Final = 4_096
_FIELDS: Final = ("device-id", "client-id", "authorization", "protocol-version")


class Refusal(IntEnum):
    """Why a device may not come in, as the status of the answer."""

    UNREADABLE = 400
    UNKNOWN = 401
    FORBIDDEN = 403
    NOT_NOW = 503


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """What a device says of itself before it is let in.

    Attributes:
        device_id: its hardware address, in lower case.
        client_id: the id that its firmware made, empty if it gave none.
        token: what follows `Bearer`, None if it gave none. Not to be logged.
        version: `Protocol-Version`, None if it names none that is known.
    """

    device_id: str
    client_id: str = ""
    token: str | None = None
    version: BinaryVersion | None = None

    def __repr__(self) -> str:
        """Leave the token out: a traceback or a log line must not quote it."""
        return f"Handshake(device_id={self.device_id!r}, client_id={self.client_id!r})"


Admit = Callable[[Handshake], Refusal | None]
"""Decides, from memory and at once, whether a device may come in; None = it may."""


def read_handshake(headers: Iterable[tuple[str, str]], address: str) -> Handshake | None:
    """Return who is at the door; None = it does not say, or says it twice or unusably.

    Args:
        headers: names (in any case) and values, as they came.
        address: path and query of the request.
    """
    said: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in _FIELDS:
            if lower in said:
                return None
            said[lower] = value.strip()
    try:
        query = parse_qs(urlsplit(address).query, max_num_fields=32)
    except ValueError:
        return None
    for name in _FIELDS:
        if name not in said and len(query.get(name, [])) == 1:
            said[name] = query[name][0].strip()
    return _handshake(said)


def _handshake(said: dict[str, str]) -> Handshake | None:
    device_id = said.get("device-id", "").lower()
    client_id = said.get("client-id", "")
    token = _token(said.get("authorization", ""))
    if not _DEVICE_ID.fullmatch(device_id) or not _CLIENT_ID.fullmatch(client_id):
        return None
    if token and len(token) > _TOKEN_CHARACTERS:
        return None
    return Handshake(
        device_id=device_id,
        client_id=client_id,
        token=token,
        version=binary_version(said.get("protocol-version")),
    )


def _token(authorization: str) -> str | None:
    """Return the token; firmware writes `Bearer` before one that has no space, others may not."""
    scheme, _, rest = authorization.partition(" ")
    token = rest.strip() if scheme.lower() == "bearer" else authorization
    return token or None
