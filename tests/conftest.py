"""Fixtures that every test may use. Databases: see `docs/database.md`, section on tests.

The process that began the run (with xdist: the controller) owns the folder of templates and the
PostgreSQL server; the first test that needs one of them makes it.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test, settings

from etude.cli import logs
from etude.store import Database
from etude.testing.databases import NoPostgres, TemplateDatabases
from etude.testing.waiting import within

Result = TypeVar("Result")
Run = Callable[[Coroutine[Any, Any, Result]], Result]
RUN_S = 200.0
"""Below the time that a test has: who is late then is told with every task's stack."""
SOAK_S = 6 * 3600.0


def pytest_configure(config: pytest.Config) -> None:
    # A commit is judged by the same examples whoever runs them; ETUDE_TEST_EXPLORE=20 makes up new
    # ones, twenty times as many (`make soak`). How long one takes says what else the machine does.
    times = _times_explored()
    settings.register_profile(
        "etude",
        deadline=None,
        derandomize=not times,
        max_examples=100 * max(1, times),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("etude")
    # Engines take 300 MB and a core: a test that is about them starts its own.
    os.environ.setdefault("ETUDE_SPEECH_PROCESSES", "0")
    if hasattr(config, "workerinput"):
        return
    os.environ["ETUDE_TEST_OWNER"] = str(os.getpid())
    # Short and outside tmp_path: the path of a Unix socket has at most 107 bytes, and the
    # PostgreSQL user must be able to reach it.
    folder = tempfile.mkdtemp(prefix="etude-test-")
    Path(folder).chmod(0o711)
    os.environ["ETUDE_TEST_FOLDER"] = folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        made_up = is_hypothesis_test(getattr(item, "obj", None))
        if made_up:
            item.add_marker("property")
        if item.get_closest_marker("soak") is not None or (made_up and _times_explored()):
            item.add_marker(pytest.mark.timeout(SOAK_S))


def _times_explored() -> int:
    return int(os.environ.get("ETUDE_TEST_EXPLORE", "0"))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _databases().stop()


def _databases() -> TemplateDatabases:
    folder = Path(os.environ["ETUDE_TEST_FOLDER"])
    return TemplateDatabases(folder, os.environ.get("ETUDE_TEST_POSTGRES_URL"))


@contextlib.contextmanager
def _postgres(*, migrated: bool) -> Iterator[str]:
    if os.environ.get("ETUDE_TEST_SKIP_POSTGRES") == "1":
        pytest.skip("ETUDE_TEST_SKIP_POSTGRES=1")
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(_databases().postgres(migrated=migrated))
        except NoPostgres:
            pytest.fail(
                "no PostgreSQL server program: install it, give ETUDE_TEST_POSTGRES_URL,"
                " or skip these tests knowingly with ETUDE_TEST_SKIP_POSTGRES=1"
            )
        yield url


@pytest.fixture(scope="session")
def postgres_databases() -> Callable[..., contextlib.AbstractContextManager[str]]:
    """What makes a PostgreSQL database that outlives one test: `with databases(migrated=True)`."""
    return _postgres


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """What a test sets up for logs ends with it, because the streams do that it set up."""
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if one.__class__.__module__ != logs.__name__]


@pytest.fixture(autouse=True)
def _soak_has_its_time(request: pytest.FixtureRequest) -> None:
    """What ends the process of a test that hangs in spite of its time-out leaves soaks alone."""
    if request.node.get_closest_marker("soak") is not None:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run[Any]]:
    """Run a coroutine to its end; all calls of one test share one event loop."""
    limit_s = RUN_S if request.node.get_closest_marker("soak") is None else SOAK_S

    with asyncio.Runner() as runner:

        def bounded(work: Coroutine[Any, Any, Result]) -> Result:
            return runner.run(within(work, f"an end in {request.node.name}", limit_s=limit_s))

        yield bounded


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A migrated SQLite database of the test's own."""
    return _databases().copy_sqlite(tmp_path / "etude.db")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A migrated PostgreSQL database of the test's own."""
    with _postgres(migrated=True) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of the test's own; the test runs once on each kind."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(name))


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table; the test runs once on each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    with _postgres(migrated=False) as url:
        yield url


@pytest.fixture
def database(run: Run[Any], database_url: str) -> Iterator[Database]:
    """`database_url`, opened on the loop of `run`."""
    opened: Database = run(Database.open(database_url))
    yield opened
    run(opened.close())
