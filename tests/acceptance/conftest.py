"""Servers that the tests of this folder look at from outside, one of each kind a test process.

Tests share them and take sessions of their own, so order does not matter. A test that stops, kills
or starves a server makes its own.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from etude.cli.errors import BrowserMissingError
from etude.cli.page_check import find_browser
from etude.testing.databases import TemplateDatabases
from etude.testing.installation import Served, furnish
from etude.testing.nursery import Nursery
from etude.testing.server import ServerProcess


@pytest.fixture(scope="session")
def browser() -> Path:
    """The browser that pages are looked at with."""
    if os.environ.get("ETUDE_TEST_SKIP_CHROMIUM") == "1":
        pytest.skip("ETUDE_TEST_SKIP_CHROMIUM=1")
    try:
        return find_browser()
    except BrowserMissingError:
        pytest.fail(
            "no Chromium: install it, or skip these tests knowingly with ETUDE_TEST_SKIP_CHROMIUM=1"
        )


@pytest.fixture(scope="session")
def sqlite_copy() -> Callable[[Path], str]:
    """What puts a migrated database into a data folder, and returns its URL."""
    return _sqlite_copy


def _sqlite_copy(data: Path) -> str:
    templates = TemplateDatabases(Path(os.environ["ETUDE_TEST_FOLDER"]))
    return templates.copy_sqlite(data / "etude.db")


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Where processes come from that are killed often, or are of one test's own."""
    with Nursery(tmp_path_factory.mktemp("nursery")) as running:
        yield running


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("data")
    installation = furnish(data, _sqlite_copy(data))
    with ServerProcess(data) as server:
        yield Served(server, installation)


@pytest.fixture(scope="session")
def postgres_server(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_databases: Callable[..., AbstractContextManager[str]],
) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("data")
    with postgres_databases(migrated=True) as url:
        installation = furnish(data, url)
        with ServerProcess(data, database_url=url) as server:
            yield Served(server, installation)


@pytest.fixture(params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest) -> Served:
    """A server on each kind of database; a test has its own sessions on it."""
    name = "sqlite_server" if request.param == "sqlite" else "postgres_server"
    found: Served = request.getfixturevalue(name)
    return found


@pytest.fixture
def session_id() -> str:
    """A session that no other test uses."""
    return f"s-{uuid4()}"


@pytest.fixture
def toy(served: Served) -> Iterator[httpx2.Client]:
    """A client with the token of `toy-1`, which anna holds."""
    with served.client("toy-1") as client:
        yield client


@pytest.fixture
def operator(served: Served) -> Iterator[httpx2.Client]:
    """A client that may do everything."""
    with served.client("operator") as client:
        yield client
