"""What the routes work with, made once when the process starts and passed to `create_app`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeAlias, TypeVar

from litestar import Request
from litestar.datastructures import State

from etude.clock import Clock, Ids, RandomIds, SystemClock
from etude.sessions.ingest import Ingest
from etude.settings import Settings
from etude.store import Blobs, Database
from etude.web.in_flight import InFlight

HttpRequest: TypeAlias = Request[Any, Any, State]
Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything with a lifetime as long as the process. Made by `compose`."""

    settings: Settings
    database: Database
    blobs: Blobs
    ingest: Ingest
    clock: Clock
    ids: Ids
    in_flight: InFlight = field(default_factory=InFlight)

    async def in_thread(
        self, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Run `function` off the event loop, so that other requests go on meanwhile."""
        return await asyncio.to_thread(function, *args, **kwargs)


def compose(
    settings: Settings, database: Database, clock: Clock | None = None, ids: Ids | None = None
) -> Services:
    """Put the services together over an open database; a test gives its own clock and ids."""
    time = clock or SystemClock()
    return Services(
        settings=settings,
        database=database,
        blobs=Blobs(settings.blobs, time),
        ingest=Ingest(database, time),
        clock=time,
        ids=ids or RandomIds(),
    )


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the database of `settings`, compose the services, close it at the end."""
    async with await Database.open(settings.database_url) as database:
        yield compose(settings, database)


def services_of(request: HttpRequest) -> Services:
    """Return the services of the application that `request` came to."""
    services: Services = request.app.state["services"]
    return services
