"""Whether this process lives (`/health`) and whether it can serve (`/ready`)."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Final, Literal, TypeAlias

import msgspec
from litestar import get

from etude.errors import EtudeError
from etude.store import migrations
from etude.store.errors import DiskFull, SchemaAhead, SchemaBehind, StoreUnavailable
from etude.web.declared import EVERYWHERE, Access, declared
from etude.web.errors import DiskNotWritableError
from etude.web.services import HttpRequest, Services, services_of

# Probes come from anybody: however many ask, the disk is touched once in this time.
ASKED_AGAIN_AFTER_S: Final = 1.0
PROBE_BYTES: Final = 4096

Look: TypeAlias = Callable[[Services], Awaitable[EtudeError | None]]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The database is reachable and at this version's schema; the disk can be written."""

    status: Literal["ready"] = "ready"


@get("/health", opt=declared(roles=EVERYWHERE, needs=Access.PUBLIC), tags=["Operations"])
async def health() -> Health:
    """Tell that the process answers requests; touches neither database nor disk."""
    return Health()


@get(
    "/ready",
    opt=declared(
        roles=EVERYWHERE,
        needs=Access.PUBLIC,
        raises=(StoreUnavailable, SchemaBehind, SchemaAhead, DiskFull, DiskNotWritableError),
    ),
    tags=["Operations"],
)
async def ready(request: HttpRequest) -> Ready:
    """Tell whether uploads would be stored now; 503 with the code of what is wrong otherwise."""
    readiness: Readiness = request.app.state["readiness"]
    await readiness.check(services_of(request))
    return Ready()


class Readiness:
    """Checks at most once a second; who asks meanwhile gets the last answer."""

    def __init__(self, look: Look | None = None) -> None:
        """Nothing is known yet; `look` finds what is wrong, if anything (database and disk)."""
        self._look = look or what_is_wrong
        self._turn = asyncio.Lock()
        self._checked_at = float("-inf")
        self._wrong: EtudeError | None = None

    async def check(self, services: Services) -> None:
        """Raise what keeps the server from serving, if anything does."""
        async with self._turn:
            if monotonic() - self._checked_at >= ASKED_AGAIN_AFTER_S:
                self._wrong = await self._look(services)
                self._checked_at = monotonic()
        if self._wrong is not None:
            raise self._wrong


async def what_is_wrong(services: Services) -> EtudeError | None:
    """Return what keeps uploads from being stored, if anything does."""
    try:
        await migrations.check(services.settings.database_url)
        await asyncio.to_thread(probe_disk, services.settings.data)
    except EtudeError as error:
        return error
    return None


def probe_disk(folder: Path) -> None:
    """Write and remove a small file in `folder`; `DiskNotWritableError` if that fails."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise DiskNotWritableError(reason=os.strerror(error.errno or 0)) from error


route_handlers = [health, ready]
