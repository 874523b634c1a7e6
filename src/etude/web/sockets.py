"""A WebSocket as the link uses it: text frames, sent in time or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class SocketGoneError(Exception):
    """The other side has closed, or is gone."""


class SocketSlowError(Exception):
    """The other side does not take what is sent."""


class Socket:
    """An accepted WebSocket. One task reads, any may send."""

    def __init__(self, receive: Receive, send: Send) -> None:
        """Wrap the two functions of ASGI."""
        self._receive = receive
        self._send = send

    async def read(self) -> str | bytes | None:
        """Return the next frame; raises `SocketGoneError`."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise SocketGoneError
        text: str | bytes | None = message.get("text")
        return text if text is not None else message.get("bytes")

    async def write(self, text: str, within_s: float) -> None:
        """Send a text frame; raises `SocketSlowError` if it is not taken `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            raise SocketSlowError from None
        except OSError as error:  # what an ASGI server raises when nobody is there (spec 2.4)
            raise SocketGoneError from error

    async def close(self, code: int, reason: str) -> None:
        """End it; `reason` is cut to what a close frame takes (RFC 6455 §5.5)."""
        fits = reason.encode()[:120].decode(errors="ignore")
        await self._send({"type": "websocket.close", "code": code, "reason": fits})
