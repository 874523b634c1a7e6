"""The firmware's own WebSocket client, as small as it is (`docs/gateway.md §Coming in`).

Not the library that the gateway serves with, on purpose: a client that takes any `HTTP/1.1 101`,
offers no extension, puts no port into `Host`, answers Ping, never pings, never sends Close, does
not answer one, and ends by dropping TCP. All callbacks run in the event loop; nothing here waits,
so that one process plays a thousand devices.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from typing import Final, Protocol, cast

CONTINUATION: Final = 0x0
TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA

HANDSHAKE_S: Final = 10.0
LONGEST_MESSAGE: Final = 65_535

_FINAL_FRAME: Final = 0x80
_MASKED: Final = 0x80
_LENGTH_16: Final = 126
_LENGTH_64: Final = 127
_TWO_BYTES: Final = 1 << 16


class DeviceRefusedError(Exception):
    """The server answered the handshake with something else than 101; `status` is what."""

    def __init__(self, status: int) -> None:
        """Keep the HTTP status, 0 if the connection ended without any."""
        super().__init__(f"handshake answered with {status}")
        self.status = status


class Hears(Protocol):
    """What a socket tells its device."""

    def text_came(self, text: str) -> None:
        """One text message."""

    def binary_came(self, data: bytes) -> None:
        """One binary message."""

    def close_came(self, code: int) -> None:
        """The server's Close; the firmware marks itself disconnected and keeps TCP open."""

    def lost(self) -> None:
        """TCP is gone; called once."""


class Line:
    """Passes on what one channel tells, until it is cut: a device opens another one."""

    def __init__(self, hears: Hears) -> None:
        """Pass on to `hears`."""
        self._hears: Hears | None = hears

    def cut(self) -> None:
        """Pass on nothing more."""
        self._hears = None

    def text_came(self, text: str) -> None:
        """See `Hears`."""
        if self._hears is not None:
            self._hears.text_came(text)

    def binary_came(self, data: bytes) -> None:
        """See `Hears`."""
        if self._hears is not None:
            self._hears.binary_came(data)

    def close_came(self, code: int) -> None:
        """See `Hears`."""
        if self._hears is not None:
            self._hears.close_came(code)

    def lost(self) -> None:
        """See `Hears`."""
        if self._hears is not None:
            self._hears.lost()


def frame(opcode: int, payload: bytes, mask: bytes | None = None) -> bytes:
    """Return one whole client frame; `mask` is 4 bytes, None = random ones (RFC 6455 §5.3)."""
    mask = os.urandom(4) if mask is None else mask
    length = len(payload)
    if length < _LENGTH_16:
        head = bytes((_FINAL_FRAME | opcode, _MASKED | length))
    elif length < _TWO_BYTES:
        head = bytes((_FINAL_FRAME | opcode, _MASKED | _LENGTH_16)) + length.to_bytes(2, "big")
    else:
        head = bytes((_FINAL_FRAME | opcode, _MASKED | _LENGTH_64)) + length.to_bytes(8, "big")
    key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(length, "big")


class DeviceSocket(asyncio.Protocol):
    """One connection. Made by `connect`."""

    def __init__(self, hears: Hears, request: bytes) -> None:
        """Send `request`, the handshake, once connected, and tell `hears` what comes."""
        self._hears = hears
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._upgraded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._frozen = False
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._parts_opcode = CONTINUATION

    @classmethod
    async def connect(
        cls, host: str, port: int, path: str, headers: Mapping[str, str], hears: Hears
    ) -> "DeviceSocket":
        """Connect and shake hands.

        Raises:
            DeviceRefusedError: the answer was not 101.
            TimeoutError: there was none within 10 s.
            OSError: nobody listens there.
        """
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        request = ("\r\n".join(lines) + "\r\n\r\n").encode()
        loop = asyncio.get_running_loop()
        _, socket = await loop.create_connection(lambda: cls(hears, request), host, port)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await socket._upgraded  # noqa: SLF001 - its own class
        except BaseException:
            socket.drop()
            raise
        return socket

    def send_text(self, text: str) -> None:
        """Send one text message."""
        self.send(frame(TEXT, text.encode()))

    def send_binary(self, data: bytes) -> None:
        """Send one binary message."""
        self.send(frame(BINARY, data))

    def send(self, whole_frame: bytes) -> None:
        """Send a frame that is ready, or any other bytes; nothing once the connection is over."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(whole_frame)

    def drop(self) -> None:
        """End as the firmware does: close TCP, without a Close frame."""
        if self._transport is not None:
            self._transport.close()

    def freeze(self) -> None:
        """Stop reading, as a device without power: TCP stays, nothing is answered or told."""
        self._frozen = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def scrap(self) -> None:
        """Let go of the descriptor, whatever state it is in."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Shake hands."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Take what came apart."""
        self._buffer += data
        if not self._upgraded.done() and not self._read_answer():
            return
        while self._read_frame():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the device, or whoever still waits for the handshake."""
        del exc  # a reset and an end are the same to the firmware
        if self._upgraded.done():
            welcome = not self._upgraded.cancelled() and self._upgraded.exception() is None
            if welcome and not self._frozen:
                self._hears.lost()
        else:
            self._upgraded.set_exception(DeviceRefusedError(0))

    def _read_answer(self) -> bool:
        head, ended, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not ended:
            return False
        if head.startswith(b"HTTP/1.1 101"):
            self._buffer = bytearray(rest)
            self._upgraded.set_result(None)
            return True
        status = head.split(maxsplit=2)[1:2]
        self._upgraded.set_exception(DeviceRefusedError(int(status[0]) if status else 0))
        return False

    def _read_frame(self) -> bool:
        """Handle the next frame; False while it is not whole."""
        buffer = self._buffer
        if len(buffer) < 2:  # noqa: PLR2004 - RFC 6455 §5.2: the shortest header
            return False
        length, start = buffer[1] & 0x7F, 2
        if length >= _LENGTH_16:
            start = 4 if length == _LENGTH_16 else 10
            length = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + length:
            return False
        first, payload = buffer[0], bytes(buffer[start : start + length])
        del buffer[: start + length]
        self._handle(first & 0x0F, payload, final=bool(first & _FINAL_FRAME))
        return True

    def _handle(self, opcode: int, payload: bytes, *, final: bool) -> None:
        if opcode == PING:
            self.send(frame(PONG, payload))
        elif opcode == CLOSE:
            self._hears.close_came(int.from_bytes(payload[:2], "big"))
        elif opcode in {TEXT, BINARY, CONTINUATION}:
            self._gather(opcode, payload, final=final)

    def _gather(self, opcode: int, payload: bytes, *, final: bool) -> None:
        if opcode != CONTINUATION:
            self._parts, self._parts_opcode = [], opcode
        self._parts.append(payload)
        if not final:
            return
        whole, self._parts = b"".join(self._parts), []
        if self._parts_opcode == TEXT:
            self._hears.text_came(whole.decode())
        else:
            self._hears.binary_came(whole)
