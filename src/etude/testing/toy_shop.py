"""A gateway's provisioning without a gateway: what web would tell it is told by the test."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from etude.gateway.activation import Activations
from etude.gateway.handshake import Handshake
from etude.gateway.known_devices import FILE, KnownDevices
from etude.gateway.ota import OtaApp
from etude.gateway.provisioning import Provisioning
from etude.people.binding_records import Binding, PendingBinding, RevokedCredential
from etude.people.device_credentials import DeviceKey, DeviceKeys
from etude.people.serial_keys import SerialKeys
from etude.testing.clocks import CountingIds, ManualClock

MAC: Final = "02:00:00:00:00:01"
CLIENT: Final = "5c9d3f0e-2f4e-4ad6-8c55-1f2a7f6f0a01"
HEADERS: Final = {"Device-Id": MAC, "Client-Id": CLIENT}
TOY: Final = Binding(device_id=MAC, device_key=1, client_id=CLIENT)
KEY: Final = DeviceKey(b"k" * 32)


def raw(*items: msgspec.Struct) -> Sequence[msgspec.Raw]:
    """Return items as they come over the link."""
    return [msgspec.Raw(msgspec.json.encode(item)) for item in items]


class ToyShop:
    """Provisioning with a clock, keys and a link that a test holds.

    Args:
        folder: for the cache and the keys.
        draws: the numbers that codes are made of, in their order; counted up without any.
        socket_url: see `OtaApp`.
    """

    def __init__(
        self, folder: Path, draws: Sequence[int] = (), socket_url: str | None = None
    ) -> None:
        """Begin with a link that stands and has told that nobody is bound."""
        self.clock = ManualClock()
        self.keys = folder / "keys"
        self.keys.mkdir(exist_ok=True)
        self.known = KnownDevices(folder / FILE, self.clock)
        self._draws = iter([*draws, *range(100_000, 200_000)])
        self.activations = Activations(self.clock, lambda _below: next(self._draws))
        self.provisioning = Provisioning(
            self.known,
            DeviceKeys(KEY),
            SerialKeys(self.keys),
            self.activations,
            clock=self.clock,
            ids=CountingIds("c-"),
        )
        self.told: list[PendingBinding] = []
        self.linked = True
        self.provisioning.linked = lambda: self.linked
        self.provisioning.report = self._take
        self.app = OtaApp(self.provisioning, self.clock, socket_url=socket_url).starlette()
        asyncio.run(self.known.replace_bindings(()))

    def _take(self, _kind: str, item: msgspec.Struct) -> None:
        if isinstance(item, PendingBinding):
            self.told.append(item)

    def bind(self, *bindings: Binding) -> None:
        """Let web tell these bindings."""
        asyncio.run(self.known.apply_bindings(raw(*bindings)))

    def revoke(self, credential_id: str) -> None:
        """Let web tell that a single credential is revoked."""
        revoked = RevokedCredential(credential_id=credential_id, forget_us=2**60)
        asyncio.run(self.known.apply_revocations(raw(revoked)))

    def ask(
        self,
        path: str = "/xiaozhi/ota/",
        *,
        method: str = "POST",
        address: str = "192.0.2.1",
        **request: Any,  # noqa: ANN401 - httpx2's own arguments
    ) -> httpx2.Response:
        """Send one request, as a device at `address` would."""

        async def send() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app, client=(address, 1))
            base = "http://gateway.test:8003"
            async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, **request)

        return asyncio.run(send())

    def token(self, **headers: str) -> str:
        """Return the credential that a bound device is given."""
        answer = self.ask(headers=HEADERS | headers).json()
        text: str = answer["websocket"]["token"]
        return text

    def door(self, token: str | None, device_id: str = MAC, client_id: str = CLIENT) -> int:
        """Return 101 for a device that is let in, else the status of its refusal."""
        refusal = self.provisioning.admit(
            Handshake(device_id=device_id, client_id=client_id, token=token)
        )
        return 101 if refusal is None else int(refusal)
