"""Device credentials: how a bound device shows who it is, checked without a database.

`edc1.<claims>.<signature>`: base64url of a small JSON array (key id, device id, client id, time of
issue in µs, credential id) and of the HMAC-SHA256 over `edc1.<claims>` (`docs/rules.md 43`). The
gateway makes one at every start of a device; gateway and web verify it with the same key files.
What a signature cannot know, binding and revocation, the caller looks up afterwards.

A key is named by a few digits of its hash, so a new key signs while an older one is still accepted.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from etude.clock import from_us, to_us
from etude.people.errors import (
    DeviceCredentialExpiredError,
    DeviceCredentialInvalidError,
    DeviceKeyMissingError,
)
from etude.people.names import MAX_DEVICE_ID

PREFIX: Final = "edc1."
LIFETIME: Final = timedelta(days=30)
# A machine whose clock was set back still takes what it issued before.
MAX_AHEAD: Final = timedelta(days=1)
MAX_CLIENT_ID: Final = 128
MAX_TEXT: Final = 1024  # a device stores at most about 4,000 bytes a value
KEY_FILE: Final = "device-token.key"
OLDER_KEYS: Final = "device-token.*.key"
_MIN_KEY_BYTES: Final = 16
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


class DeviceKey(msgspec.Struct, frozen=True):
    """A key that signs credentials. Never in its `repr`."""

    secret: bytes

    @property
    def id(self) -> str:
        """What credentials call the key; says nothing about it."""
        return sha256(b"etude device key\0" + self.secret).hexdigest()[:8]

    def __repr__(self) -> str:
        """Name the key by its id only."""
        return f"DeviceKey({self.id})"


class DeviceKeys:
    """The key that signs, and every key that is accepted. Immutable."""

    def __init__(self, signing: DeviceKey, accepted: Iterable[DeviceKey] = ()) -> None:
        """Sign with `signing`, which is accepted as `accepted` are."""
        self.signing = signing
        self._by_id = {key.id: key for key in (*accepted, signing)}

    def __repr__(self) -> str:
        """Name the keys by their ids only."""
        return f"DeviceKeys({', '.join(sorted(self._by_id))})"

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Every key's secret, the signing one first: what other secrets are derived from."""
        signing = self.signing.secret
        return (signing, *(k.secret for k in self._by_id.values() if k.secret != signing))

    def named(self, key_id: str) -> DeviceKey | None:
        """Return the accepted key with this id."""
        return self._by_id.get(key_id)


class DeviceCredential(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a credential says; true once `verify` has returned it."""

    key_id: str
    device_id: str
    client_id: str
    issued_us: int
    id: str

    @property
    def expires_at(self) -> datetime:
        """From when on it is refused."""
        return from_us(self.issued_us) + LIFETIME


_CLAIMS: Final = msgspec.json.Decoder(DeviceCredential)


def read_keys(folder: Path) -> DeviceKeys:
    """Read the keys of an installation's keys folder.

    `device-token.key` signs; every `device-token.<name>.key` is only accepted. To change the key,
    rename the first to the second form and let `etude init` make another; remove the old one when
    `LIFETIME` is over.

    Raises:
        DeviceKeyMissingError: there is no key to sign with, or a key cannot be read or is none.
    """
    path = folder / KEY_FILE
    try:
        signing = _read_key(path)
        older = [_read_key(path) for path in sorted(folder.glob(OLDER_KEYS))]
    except OSError as error:
        raise DeviceKeyMissingError(key=str(error.filename or path)) from error
    return DeviceKeys(signing, older)


def _read_key(path: Path) -> DeviceKey:
    secret = path.read_bytes()
    if len(secret) < _MIN_KEY_BYTES:
        raise DeviceKeyMissingError(key=str(path))
    return DeviceKey(secret)


def issue(key: DeviceKey, device_id: str, client_id: str, now: datetime, id: str) -> str:  # noqa: A002 - the claim's name
    """Return the text of a new credential for a device and the client id it is bound with."""
    claims = DeviceCredential(key.id, device_id, client_id, to_us(now), id)
    signed = PREFIX + _base64(msgspec.json.encode(claims))
    return f"{signed}.{_signature(key, signed)}"


def verify(keys: DeviceKeys, text: str, now: datetime) -> DeviceCredential:
    """Return what a credential says, once its signature and its time are right.

    Raises:
        DeviceCredentialInvalidError: it is malformed, forged, or signed with an unknown key.
        DeviceCredentialExpiredError: it was right, more than `LIFETIME` ago.
    """
    if len(text) > MAX_TEXT or not text.startswith(PREFIX) or not text.isascii():
        raise DeviceCredentialInvalidError
    signed, _, signature = text.rpartition(".")
    claims = _claims(signed.removeprefix(PREFIX))
    key = keys.named(claims.key_id)
    # An unknown key takes the work of a known one.
    expected = _signature(key or keys.signing, signed)
    if not hmac.compare_digest(expected.encode(), signature.encode()) or key is None:
        raise DeviceCredentialInvalidError
    if not _plausible(claims) or claims.issued_us > to_us(now + MAX_AHEAD):
        raise DeviceCredentialInvalidError
    if claims.issued_us + LIFETIME // timedelta(microseconds=1) <= to_us(now):
        raise DeviceCredentialExpiredError
    return claims


def _claims(encoded: str) -> DeviceCredential:
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return _CLAIMS.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise DeviceCredentialInvalidError from error


def _plausible(claims: DeviceCredential) -> bool:
    return (
        0 < len(claims.device_id) <= MAX_DEVICE_ID
        and 0 < len(claims.client_id) <= MAX_CLIENT_ID
        and claims.issued_us >= 0
        and _ID.fullmatch(claims.id) is not None
    )


def _signature(key: DeviceKey, signed: str) -> str:
    return _base64(hmac.digest(key.secret, signed.encode(), "sha256"))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
