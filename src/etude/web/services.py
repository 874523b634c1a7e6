"""What the routes work with, made once when the process starts and passed to `create_app`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from litestar import Request
from litestar.datastructures import State

from etude.clock import Clock, Ids, RandomIds, SystemClock
from etude.settings import Settings
from etude.store.blobs import Blobs
from etude.store.engine import Database
from etude.web.in_flight import InFlight

HttpRequest: TypeAlias = Request[Any, Any, State]


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything with a lifetime as long as the process. Opened by `open_services`."""

    settings: Settings
    database: Database
    blobs: Blobs
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    in_flight: InFlight = field(default_factory=InFlight)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open what the routes need; close it in reverse order."""
    database = await Database.open(settings.database_url)
    try:
        yield Services(settings=settings, database=database, blobs=Blobs(settings.blobs))
    finally:
        await database.close()


def services_of(request: HttpRequest) -> Services:
    """Return the services of the application that `request` came to."""
    services: Services = request.app.state["services"]
    return services
