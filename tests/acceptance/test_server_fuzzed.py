"""The served OpenAPI document against the server: made-up requests find no 5xx."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from etude.people.scopes import Scope
from etude.store import Database, upgrade
from etude.testing.server import ServerProcess
from etude.testing.web import service_token
from etude.web import openapi
from etude.web.app import ROUTE_HANDLERS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


async def _prepare(data: Path) -> str:
    url = f"sqlite:///{data / 'etude.db'}"
    await upgrade(url)
    async with await Database.open(url) as database:
        return await service_token(database, Scope.OPERATE, name="fuzz")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URL of a server, and a token that may do everything there."""
    data = tmp_path_factory.mktemp("data")
    token = asyncio.run(_prepare(data))
    with ServerProcess(data) as server:
        yield server.url, token


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: Any, value: Any) -> bytes:
    """Send what was made up for a body of lines as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


OPERATIONS = [
    result.ok()
    for result in schemathesis.openapi.from_dict(
        openapi.document(ROUTE_HANDLERS)
    ).get_all_operations()
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_request_breaks_a_route(operation: Any, served: tuple[str, str]) -> None:
    """Whatever is sent with an operator's token: a documented status and shape, never a 5xx."""
    url, token = served

    @settings(
        max_examples=10,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        header = {"Authorization": f"Bearer {token}"}
        case.call_and_validate(base_url=url, checks=CHECKS, headers=header)

    ask()
