"""Who is asking, for every request; tokens that come together are looked up together."""

from collections.abc import Sequence
from typing import Final

from etude.clock import Clock
from etude.people.device_credentials import DeviceKeys
from etude.people.device_principals import devices_among
from etude.people.records import Principal
from etude.people.tokens import authenticate_all
from etude.store.engine import Database
from etude.store.gathering import Gathering

GROUP_TOKENS: Final = 100


class Authenticator:
    """Resolves tokens against the database as it is now. Lives as long as the process.

    Devices' credentials count as tokens where `device_keys` are given (`docs/rules.md 43`).

    Nothing is cached: a revocation counts for the next request, whichever process made it.
    """

    def __init__(
        self, database: Database, clock: Clock, device_keys: DeviceKeys | None = None
    ) -> None:
        """Look up in `database`; `clock` decides about expiry."""
        self._device_keys = device_keys
        self._database = database
        self._clock = clock
        self._gathering = Gathering(self._look_up, limit=GROUP_TOKENS)

    async def authenticate(self, bearer: str | None) -> Principal:
        """Return the principal of a token; raises as `etude.people.tokens.authenticate` does."""
        return await self._gathering.ask(bearer)

    async def _look_up(self, bearers: Sequence[str | None]) -> list[Principal | Exception]:
        async with self._database.read() as connection:
            now = self._clock.now()
            outcomes = await authenticate_all(connection, bearers, now)
            devices = await devices_among(connection, self._device_keys, bearers, now)
            for place, outcome in devices.items():
                outcomes[place] = outcome
            return outcomes
