"""What a device asks over HTTP before it connects (`docs/devices.md §What a device asks`)."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from etude.testing.fake_device import FakeDevice

TIMEOUT_S: Final = 10.0
_VERSION: Final = "2.4.2"


class NotProvisionedError(Exception):
    """The server's answer is none that firmware goes on from; the text says why."""


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """What a device is told.

    Attributes:
        host, port, path: where to connect.
        token: for the connection, not to be logged.
        protocol: the layout of binary frames.
        code: what an unbound device shows; empty = it is bound.
    """

    host: str
    port: int
    path: str
    token: str = ""
    protocol: int = 1
    code: str = ""


async def ask(client: httpx2.AsyncClient, url: str, device: FakeDevice) -> Provisioned:
    """Ask as firmware does at its start.

    Raises:
        NotProvisionedError: nobody answers, not with 200, or without a WebSocket.
    """
    body = {
        "version": 2,
        "mac_address": device.device_id,
        "uuid": device.client_id,
        "application": {"name": "xiaozhi", "version": _VERSION},
        "board": {"type": "etude-simulated", "name": "etude-simulated", "mac": device.device_id},
    }
    try:
        answer = await client.post(url, json=body, headers=_headers(device), timeout=TIMEOUT_S)
        said = msgspec.json.decode(answer.content) if answer.status_code == httpx2.codes.OK else {}
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError) as error:
        raise NotProvisionedError(type(error).__name__) from error
    socket = said.get("websocket") if isinstance(said, dict) else None
    if not isinstance(socket, dict):
        reason = f"{answer.status_code}, no WebSocket"
        raise NotProvisionedError(reason)
    return _provisioned(socket, said.get("activation"))


async def activated(client: httpx2.AsyncClient, url: str, device: FakeDevice) -> bool:
    """Ask whether somebody has typed the code; False = not yet."""
    address = url.rstrip("/") + "/activate"
    answer = await client.post(address, json={}, headers=_headers(device), timeout=TIMEOUT_S)
    return answer.status_code == httpx2.codes.OK


def _headers(device: FakeDevice) -> Mapping[str, str]:
    return {
        "Device-Id": device.device_id,
        "Client-Id": device.client_id,
        "User-Agent": f"etude-simulated/{_VERSION}",
        "Accept-Language": "en-US",
        "Activation-Version": "1",
    }


def _provisioned(socket: Mapping[str, Any], activation: object) -> Provisioned:
    place = socket_place(str(socket.get("url", "")))
    code = activation.get("code") if isinstance(activation, dict) else ""
    version = socket.get("version", 1)
    return msgspec.structs.replace(
        place,
        token=str(socket.get("token", "")),
        protocol=version if version in {1, 2, 3} else 1,
        code=str(code or ""),
    )


def socket_place(url: str) -> Provisioned:
    """Return where a `ws://` address leads.

    Raises:
        NotProvisionedError: it is none; a simulated device speaks no TLS.
    """
    parts = urlsplit(url)
    if parts.scheme != "ws" or not parts.hostname:
        reason = f"no ws:// address: {parts.scheme}://{parts.hostname or ''}"
        raise NotProvisionedError(reason)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Provisioned(host=parts.hostname, port=parts.port or 80, path=path)
