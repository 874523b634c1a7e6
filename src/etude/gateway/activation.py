"""Codes that unknown devices show until somebody types one (`POST …/activate` asks how far it is).

A device keeps its code for as long as it counts; after that it gets another one when it asks the
next time, which firmware does twice a minute. The codes are in memory only: after a restart a
device is given another, and both lead to it. Whoever invents devices is bounded by address, and a
flood from a few addresses drives out its own codes, never those of others.
"""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from etude.clock import Clock, from_us, to_us
from etude.errors import ForbiddenError, MalformedError, ThrottledError, UnavailableError
from etude.people.binding_records import PendingBinding, Proof

CODE_LIFE: Final = timedelta(hours=1)
MAX_CODES: Final = 900
"""At a time: a code is guessed right once in a thousand, and web is told all of them at once."""
MAX_AN_ADDRESS: Final = 100
"""At a time: two classes of toys behind one school's address on their first day."""
CODES: Final = 1_000_000
RETRY_S: Final = 60


class DeviceUnreadableError(MalformedError):
    """A device does not say who it is: `Device-Id` or `Client-Id` is missing or unusable."""

    code = "DEVICE_UNREADABLE"


class NotReadyError(UnavailableError):
    """The gateway cannot tell yet whether the device is bound; it comes back later."""

    code = "GATEWAY_NOT_READY"


class TooManyCodesError(ThrottledError):
    """Too many devices that nobody has bound show a code, all in all or from this address."""

    code = "BIND_CODES_EXHAUSTED"


class ProofWrongError(ForbiddenError):
    """The device does not know the key of the serial number that it names."""

    code = "DEVICE_PROOF_WRONG"


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A device that asks, as it says of itself: bounded and printable, otherwise unchecked.

    Attributes:
        device_id: its hardware address, in lower case.
        client_id: the id that its firmware made.
        board: what it is, for a person to recognise it.
        version: of its firmware, as it came.
        serial: its serial number, empty if it has none.
        address: where from, for the bounds.
    """

    device_id: str
    client_id: str
    board: str = ""
    version: str = ""
    serial: str = ""
    address: str = ""


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A code and the device that shows it. `challenge` is what it has to sign, if it can."""

    pending: PendingBinding
    challenge: str
    address: str

    @property
    def who(self) -> tuple[str, str]:
        """Device and client id."""
        return (self.pending.device_id, self.pending.client_id)

    def expired(self, now: datetime) -> bool:
        """Whether the code counts no more."""
        return from_us(self.pending.expires_us) <= now


class Activations:
    """The live codes of one gateway. Belongs to one event loop.

    Args:
        clock: when codes end.
        draw: a random number below its argument.
        token: a random text, for challenges.
    """

    def __init__(
        self,
        clock: Clock,
        draw: Callable[[int], int] = secrets.randbelow,
        token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        """Begin without codes."""
        self._clock = clock
        self._draw = draw
        self._token = token
        self._by_who: dict[tuple[str, str], Activation] = {}
        self._by_code: dict[str, Activation] = {}
        # Oldest first, as dictionaries are ordered.
        self._by_address: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        """How many codes are kept."""
        return len(self._by_code)

    def live(self) -> list[PendingBinding]:
        """Return what web is told of every code that counts."""
        self._forget_expired()
        return [each.pending for each in self._by_code.values()]

    def find(self, device_id: str, client_id: str) -> Activation | None:
        """Return the code that this device shows, if it still counts."""
        found = self._by_who.get((device_id, client_id))
        return None if found is None or found.expired(self._clock.now()) else found

    def show(self, caller: Caller, proof: Proof) -> tuple[Activation, bool]:
        """Return the code for a device, and whether it is a new one.

        Raises `TooManyCodesError`: there are enough, or enough from there.
        """
        found = self.find(caller.device_id, caller.client_id)
        if found is not None and found.pending.serial == caller.serial:
            return found, False
        if found is not None:
            self.drop_code(found.pending.code)
        self._make_room(caller.address)
        made = Activation(
            pending=PendingBinding(
                code=self._new_code(),
                device_id=caller.device_id,
                client_id=caller.client_id,
                board=caller.board,
                version=caller.version,
                serial=caller.serial,
                proof=proof,
                expires_us=to_us(self._clock.now() + CODE_LIFE),
            ),
            challenge=self._token(),
            address=caller.address,
        )
        self._keep(made)
        return made, True

    def proven(self, activation: Activation) -> Activation:
        """Note that the device has shown that it knows its serial's key."""
        pending = msgspec.structs.replace(activation.pending, proof=Proof.SHOWN)
        changed = msgspec.structs.replace(activation, pending=pending)
        self._keep(changed)
        return changed

    def drop_device(self, device_id: str, client_id: str) -> None:
        """Forget the code of a device that was bound."""
        found = self._by_who.get((device_id, client_id))
        if found is not None:
            self.drop_code(found.pending.code)

    def drop_code(self, code: str) -> None:
        """Forget a code, if it is there."""
        found = self._by_code.pop(code, None)
        if found is None:
            return
        self._by_who.pop(found.who, None)
        there = self._by_address[found.address]
        there.pop(code, None)
        if not there:
            del self._by_address[found.address]

    def _keep(self, activation: Activation) -> None:
        code = activation.pending.code
        self._by_code[code] = activation
        self._by_who[activation.who] = activation
        self._by_address.setdefault(activation.address, {})[code] = None

    def _make_room(self, address: str) -> None:
        self._forget_expired()
        own = len(self._by_address.get(address, ()))
        if own >= MAX_AN_ADDRESS:
            raise TooManyCodesError(retry_after_s=RETRY_S)
        if len(self._by_code) < MAX_CODES:
            return
        heaviest = max(self._by_address.values(), key=len)
        if len(heaviest) <= own + 1:
            raise TooManyCodesError(retry_after_s=RETRY_S)
        self.drop_code(next(iter(heaviest)))

    def _forget_expired(self) -> None:
        """All codes live equally long and stand in the order of their making."""
        now = self._clock.now()
        while self._by_code:
            code, oldest = next(iter(self._by_code.items()))
            if not oldest.expired(now):
                return
            self.drop_code(code)

    def _new_code(self) -> str:
        while True:
            code = f"{self._draw(CODES):06}"
            if code not in self._by_code:
                return code
