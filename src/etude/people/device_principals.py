"""From a device's credential to the device: binding and revocation as the database has them now."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.device_credentials import PREFIX, DeviceCredential, DeviceKeys, verify
from etude.people.errors import (
    DeviceCredentialExpiredError,
    DeviceCredentialInvalidError,
    TokenInvalidError,
)
from etude.people.records import Principal
from etude.people.scopes import allowed_scopes
from etude.people.tables import device, device_binding, device_credential_revocation


async def devices_among(
    connection: AsyncConnection,
    keys: DeviceKeys | None,
    bearers: Sequence[str | None],
    now: datetime,
) -> Mapping[int, Principal | Exception]:
    """Return who shows the device credentials among `bearers`, by their place there.

    Like every other token a refused one does not tell why: `TokenInvalidError`. Asks the database
    only if there is one that is right so far.
    """
    outcomes: dict[int, Principal | Exception] = {}
    right: dict[int, DeviceCredential] = {}
    for place, bearer in enumerate(bearers):
        if bearer is None or not bearer.startswith(PREFIX):
            continue
        outcomes[place] = TokenInvalidError()
        if keys is None:
            continue
        try:
            right[place] = verify(keys, bearer, now)
        except (DeviceCredentialInvalidError, DeviceCredentialExpiredError):
            continue
    if right:
        outcomes |= await _look_up(connection, right)
    return outcomes


async def _look_up(
    connection: AsyncConnection, credentials: Mapping[int, DeviceCredential]
) -> dict[int, Principal | Exception]:
    named = {"device_ids": list({each.device_id for each in credentials.values()})}
    bound = {row.device_id: row for row in await connection.execute(_BOUND, named)}
    shown = {"credential_ids": list({each.id for each in credentials.values()})}
    revoked = set((await connection.execute(_REVOKED, shown)).scalars())
    return {
        place: _judge(bound.get(each.device_id), each, revoked=each.id in revoked)
        for place, each in credentials.items()
    }


def _judge(
    row: Any,  # noqa: ANN401 - a row of `_BOUND`, or None
    credential: DeviceCredential,
    *,
    revoked: bool,
) -> Principal | Exception:
    if row is None or revoked:
        return TokenInvalidError()
    if row.client_id != credential.client_id or credential.issued_us < row.valid_from_us:
        return TokenInvalidError()
    return Principal(
        kind="device",
        key=row.device_key,
        id=row.device_id,
        scopes=frozenset(allowed_scopes("device")),
        token_key=None,
    )


_BOUND: Final = (
    select(
        device.c.device_key,
        device.c.device_id,
        device_binding.c.client_id,
        device_binding.c.valid_from_us,
    )
    .join(device_binding, device_binding.c.device_key == device.c.device_key)
    .where(
        device.c.device_id.in_(bindparam("device_ids", expanding=True)),
        device_binding.c.client_id.is_not(None),
    )
)
_REVOKED: Final = select(device_credential_revocation.c.credential_id).where(
    device_credential_revocation.c.credential_id.in_(bindparam("credential_ids", expanding=True))
)
