"""The HTTP application in the test's own process: no port, no thread, the same code otherwise."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
from litestar.handlers import HTTPRouteHandler

from etude.clock import Clock, SystemClock
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.settings import Role, Settings
from etude.store import Database
from etude.web.app import ROUTE_HANDLERS, create_app
from etude.web.services import Services, compose

BASE_URL: Final = "http://etude.test"


def services_for(
    database: Database, data: Path, *, role: Role = "all", clock: Clock | None = None
) -> Services:
    """Compose the services of a test over an open database and a folder of its own."""
    settings = Settings(data=data, role=role)
    return compose(settings, database, clock)


@asynccontextmanager
async def client(
    services: Services,
    route_handlers: Iterable[HTTPRouteHandler] = ROUTE_HANDLERS,
    *,
    token: str | None = None,
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of the application; with `token` it is sent along with every request."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app=create_app(services, route_handlers))
    async with httpx2.AsyncClient(
        transport=transport, base_url=BASE_URL, headers=headers
    ) as asking:
        yield asking


async def service_token(database: Database, *scopes: Scope, name: str = "test") -> str:
    """Make a token of a service called `name` with `scopes`; return its text."""
    wanted = TokenRequest(kind="service", principal_id=name, scopes=scopes)
    async with database.transaction() as work:
        made = await create_token(work.connection, wanted, SystemClock().now())
    return made.text
