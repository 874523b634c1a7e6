"""Bindings as values, without a database: what web and gateway tell each other about devices.

A *binding* says that a device may connect, with the client id it had when an operator typed its
code. Down the link go `Binding`, `RevokedCredential` and `VoidCode` (kinds `BINDINGS`,
`REVOCATIONS`, `CODES`), up goes `PendingBinding` (kind `CODES`): a code that a device shows.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from etude.clock import to_us

BINDINGS: Final = "binding"
REVOCATIONS: Final = "revocation"
CODES: Final = "bind_code"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A learner (surrogate key) has the device from `starts_us` until just before `ends_us`."""

    learner_key: int
    starts_us: int
    ends_us: int | None = None


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """A device as a gateway is to know it; an item of the kind `BINDINGS`.

    Attributes:
        device_id: as the device sends it, a hardware address in lower case.
        device_key: surrogate key of the device.
        client_id: what it must send along to be let in; None: it is not bound (any more).
        valid_from_us: credentials issued before (µs since 1970) are revoked.
        holdings: who has it now and later.
    """

    device_id: str
    device_key: int
    client_id: str | None = None
    valid_from_us: int = 0
    holdings: tuple[Held, ...] = ()

    def learner_at(self, at: datetime) -> int | None:
        """Return the surrogate key of the learner who has the device at `at`."""
        at_us = to_us(at)
        for held in self.holdings:
            if held.starts_us <= at_us and (held.ends_us is None or at_us < held.ends_us):
                return held.learner_key
        return None


class RevokedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A single credential that is refused; an item of the kind `REVOCATIONS`.

    It may be forgotten at `forget_us`: it has expired then.
    """

    credential_id: str
    forget_us: int


class Proof(StrEnum):
    """Whether the device has shown that it knows the key of its serial number (activation v2)."""

    NONE = "none"  # it named no serial number whose key is known
    AWAITED = "awaited"  # it named one, and has not shown anything yet
    SHOWN = "shown"


class PendingBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A device that shows a code and waits for somebody to type it.

    Sent again when `proof` changes, and all live ones at the beginning of a link. `board`,
    `version` and `serial` are what the device says of itself: for a person to recognise it,
    bounded, printable, and otherwise not to be trusted.
    """

    code: str
    device_id: str
    client_id: str
    board: str
    version: str
    expires_us: int
    serial: str = ""
    proof: Proof = Proof.NONE


class VoidCode(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of two gateways show this code: neither can be bound with it; an item of `CODES`.

    Every gateway drops the code, and its device gets another one when it asks again.
    """

    code: str
