"""The HTTP application in the test's own process: no port, no thread, the same code otherwise."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import httpx2
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from etude.clock import Clock, SystemClock
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.settings import Role, Settings
from etude.store import Database
from etude.web.app import ROUTE_HANDLERS, fronted, routed
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
    with _routes(services.settings.role, tuple(route_handlers)) as routes:
        transport = httpx2.ASGITransport(app=fronted(routes, services))
        async with httpx2.AsyncClient(
            transport=transport, base_url=BASE_URL, headers=headers
        ) as asking:
            yield asking


_free: Final[dict[tuple[Role, tuple[HTTPRouteHandler, ...]], list[Litestar]]] = {}
"""Routes that no client uses now. To build them took most of the time of a test over HTTP."""


@contextmanager
def _routes(role: Role, route_handlers: tuple[HTTPRouteHandler, ...]) -> Iterator[Litestar]:
    """Yield routes for one client alone: those that an earlier one left, else new ones."""
    left = _free.setdefault((role, route_handlers), [])
    routes = left.pop() if left else routed(role, route_handlers)
    yield routes
    left.append(routes)


async def service_token(database: Database, *scopes: Scope, name: str = "test") -> str:
    """Make a token of a service called `name` with `scopes`; return its text."""
    wanted = TokenRequest(kind="service", principal_id=name, scopes=scopes)
    async with database.transaction() as work:
        made = await create_token(work.connection, wanted, SystemClock().now())
    return made.text
