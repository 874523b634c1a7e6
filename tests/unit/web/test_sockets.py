"""WebSockets of web: sent in time or not at all, and refused where there is no link."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from etude.gateway.link_messages import PATH
from etude.web.sockets import Socket, SocketGoneError, SocketSlowError
from etude.web.upgrades import LinkEndpoint


async def _connect() -> MutableMapping[str, Any]:
    return {"type": "websocket.connect"}


def test_a_side_that_takes_nothing_is_slow() -> None:
    """The task that sends is not held up for longer than it says."""

    async def never(_: MutableMapping[str, Any]) -> None:
        await asyncio.Event().wait()

    async def scene() -> None:
        with pytest.raises(SocketSlowError):
            await Socket(_connect, never).write("x", 0.01)

    asyncio.run(scene())


def test_a_side_that_is_gone_is_gone() -> None:
    """An error of the ASGI server has a name of ours; so has the end of reading."""

    async def broken(_: MutableMapping[str, Any]) -> None:
        raise OSError

    async def scene() -> None:
        socket = Socket(_connect, broken)
        with pytest.raises(SocketGoneError):
            await socket.write("x", 1)
        with pytest.raises(SocketGoneError):
            await socket.read()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("served", "path", "extensions", "first"),
    [
        (False, PATH, {"websocket.http.response": {}}, "websocket.http.response.start"),
        (True, "/elsewhere", {"websocket.http.response": {}}, "websocket.http.response.start"),
        (True, "/elsewhere", {}, "websocket.close"),
    ],
)
def test_where_there_is_no_link_nothing_is_upgraded(
    *, served: bool, path: str, extensions: dict[str, Any], first: str
) -> None:
    """A role without the link, or another address: 404 as everywhere, or a close where it must."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    endpoint: Any = LinkEndpoint(None, None, served=served)
    scope = {"type": "websocket", "path": path, "headers": [], "extensions": extensions}
    asyncio.run(endpoint(scope, _connect, send))
    assert sent[0]["type"] == first
    assert sent[0].get("status", 404) == 404
