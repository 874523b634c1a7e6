"""Who may connect, and how a device becomes one that may: the rules behind OTA and admission.

Everything is answered from memory: bindings cached by `known_devices`, codes in `activation`, keys
read at the start. Web learns of codes over the link, and only bindings that come back over it let
a device in.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from etude.clock import Clock, Ids, from_us
from etude.gateway.activation import (
    Activation,
    Activations,
    Caller,
    NotReadyError,
    ProofWrongError,
)
from etude.gateway.handshake import Handshake, Refusal
from etude.gateway.known_devices import KnownDevices
from etude.gateway.link import ChangeHandler, Report
from etude.gateway.link_messages import LinkFrameError
from etude.people.binding_records import (
    BINDINGS,
    CODES,
    REVOCATIONS,
    Binding,
    PendingBinding,
    Proof,
    VoidCode,
)
from etude.people.device_credentials import DeviceCredential, DeviceKeys, issue, verify
from etude.people.errors import DeviceCredentialExpiredError, DeviceCredentialInvalidError
from etude.people.serial_keys import SerialKeys

_NO_PROOF: Final[Mapping[str, str]] = {}

_log = structlog.get_logger(__name__)


class Provisioning:
    """What one gateway knows and decides about devices. Belongs to one event loop.

    Args:
        known: the cached bindings.
        keys: sign and verify credentials.
        serials: keys of serial numbers.
        activations: the codes that devices show.
        clock, ids: times and ids of credentials.
    """

    def __init__(
        self,
        known: KnownDevices,
        keys: DeviceKeys,
        serials: SerialKeys,
        activations: Activations,
        *,
        clock: Clock,
        ids: Ids,
    ) -> None:
        """Begin unlinked: `linked` and `report` are set by the composition root."""
        self._known = known
        self._keys = keys
        self._serials = serials
        self._activations = activations
        self._clock = clock
        self._ids = ids
        self._admitted: dict[str, str] = {}
        self._revoked: list[Callable[[str], None]] = []
        self.linked: Callable[[], bool] = lambda: False
        self.report: Callable[[str, msgspec.Struct], None] = lambda _kind, _item: None
        known.on_change(self._binding_changed)
        known.on_revocation(self._credential_revoked)

    # The link (`GatewayLink`'s `handlers` and `standing`)

    def handlers(self) -> Mapping[str, ChangeHandler]:
        """Return what takes the kinds that come down the link."""
        known = self._known
        return {
            BINDINGS: ChangeHandler(replace=known.replace_bindings, apply=known.apply_bindings),
            REVOCATIONS: ChangeHandler(
                replace=known.replace_revocations, apply=known.apply_revocations
            ),
            CODES: ChangeHandler(replace=self._void_codes, apply=self._void_codes),
        }

    def standing(self) -> Sequence[Report]:
        """Return what web is told at the beginning of each link: every live code."""
        return [(CODES, each) for each in self._activations.live()]

    def on_revoked(self, close: Callable[[str], None]) -> None:
        """Call `close(device_id)` when the device that may be connected is to be let in no more."""
        self._revoked.append(close)

    # Provisioning

    def token(self, caller: Caller) -> str | None:
        """Return a new credential, or None: this device, with this client id, is not bound."""
        binding = self._binding_of(caller)
        if binding is None:
            return None
        self._activations.drop_device(caller.device_id, caller.client_id)
        # Never before what is revoked, also where this machine's clock is behind web's.
        issued_at = max(self._clock.now(), from_us(binding.valid_from_us))
        credential_id = self._ids.new()
        _log.info(
            "credential issued",
            action="device.credential_issued",
            device_id=caller.device_id,
            credential_id=credential_id,
        )
        key = self._keys.signing
        return issue(key, caller.device_id, caller.client_id, issued_at, credential_id)

    async def activation(self, caller: Caller) -> Activation:
        """Return the code that an unbound device is to show.

        Raises:
            NotReadyError: web is away, so nobody could type it, or it may be bound after all.
            TooManyCodesError: see `Activations.show`.
        """
        if not self._known.complete or not self.linked():
            raise NotReadyError
        if caller.serial:
            await asyncio.to_thread(self._serials.refresh)
        proof = Proof.AWAITED if self._serials.knows(caller.serial) else Proof.NONE
        activation, is_new = self._activations.show(caller, proof)
        if is_new:
            self._report(activation.pending)
        return activation

    async def activated(self, caller: Caller, proof: Mapping[str, str] = _NO_PROOF) -> bool:
        """Return whether a device that shows a code has been bound meanwhile.

        Args:
            caller: who asks.
            proof: `serial_number`, `challenge` and `hmac` of activation version 2, if it sent any.

        Raises:
            ProofWrongError: the key of that serial number is known, and this is not made with it.
        """
        if self._binding_of(caller) is not None:
            return True
        found = self._activations.find(caller.device_id, caller.client_id)
        if found is not None and found.pending.proof is Proof.AWAITED and "hmac" in proof:
            self._prove(found, proof)
        return False

    def _prove(self, found: Activation, proof: Mapping[str, str]) -> None:
        serial = found.pending.serial
        if (
            proof.get("serial_number", serial) != serial
            or proof.get("challenge", found.challenge) != found.challenge
            or not self._serials.proves(serial, found.challenge, proof["hmac"])
        ):
            _log.warning(
                "proof of serial wrong",
                action="device.proof_wrong",
                device_id=found.pending.device_id,
            )
            raise ProofWrongError
        self._report(self._activations.proven(found).pending)

    # Admission

    def admit(self, handshake: Handshake) -> Refusal | None:
        """Decide whether a device may connect: `etude.gateway.handshake.Admit`."""
        if handshake.token is None:
            return Refusal.UNKNOWN
        try:
            credential = verify(self._keys, handshake.token, self._clock.now())
        except (DeviceCredentialInvalidError, DeviceCredentialExpiredError):
            return Refusal.UNKNOWN
        if credential.device_id != handshake.device_id:
            return Refusal.FORBIDDEN
        if handshake.client_id not in {"", credential.client_id}:
            return Refusal.FORBIDDEN
        return self._refusal(credential)

    def _refusal(self, credential: DeviceCredential) -> Refusal | None:
        binding = self._known.binding(credential.device_id)
        if binding is None:
            return Refusal.FORBIDDEN if self._known.complete else Refusal.NOT_NOW
        if (
            binding.client_id != credential.client_id
            or credential.issued_us < binding.valid_from_us
            or self._known.is_revoked(credential.id)
        ):
            return Refusal.FORBIDDEN
        self._admitted[credential.device_id] = credential.id
        return None

    def _binding_of(self, caller: Caller) -> Binding | None:
        binding = self._known.binding(caller.device_id)
        return binding if binding is not None and binding.client_id == caller.client_id else None

    def _report(self, pending: PendingBinding) -> None:
        self.report(CODES, pending)

    def _binding_changed(self, device_id: str) -> None:
        self._admitted.pop(device_id, None)
        for close in self._revoked:
            close(device_id)

    def _credential_revoked(self, credential_id: str) -> None:
        holders = [each for each, shown in self._admitted.items() if shown == credential_id]
        for device_id in holders:
            self._binding_changed(device_id)

    async def _void_codes(self, items: Sequence[msgspec.Raw]) -> None:
        for item in items:
            try:
                void = msgspec.json.decode(item, type=VoidCode)
            except msgspec.DecodeError as error:
                raise LinkFrameError(reason=str(error)[:200]) from error
            self._activations.drop_code(void.code)
