import sys

import pytest

from etude.store.connect import parse_url, postgresql_adapter
from etude.store.errors import DatabaseUrlError, ExtraMissing
from etude.testing.waiting import run_bounded


@pytest.mark.parametrize(
    ("given", "driver", "database"),
    [
        ("sqlite:///folder/etude.db", "sqlite+aiosqlite", "folder/etude.db"),
        ("sqlite:////data/etude.db", "sqlite+aiosqlite", "/data/etude.db"),
        ("postgresql://u:p@host:5432/etude", "postgresql+asyncpg", "etude"),
        ("postgres://u@/etude?host=/run/pg", "postgresql+asyncpg", "etude"),
        ("postgresql+psycopg://u@host/etude", "postgresql+asyncpg", "etude"),
    ],
)
def test_url_gets_its_driver(given: str, driver: str, database: str) -> None:
    """Both kinds of URL, with any driver or none, name the driver that Etude uses."""
    parsed = parse_url(given)
    assert (parsed.drivername, parsed.database) == (driver, database)


@pytest.mark.parametrize(
    "given", ["mysql://root:secret@host/etude", "secret", "", "sqlite://", "sqlite:///"]
)
def test_other_urls_are_refused_without_repeating_them(given: str) -> None:
    """No other database, no memory database; the error does not hold the password."""
    with pytest.raises(DatabaseUrlError) as caught:
        parse_url(given)
    assert "root" not in str(caught.value)
    assert set(caught.value.params) == {"scheme"}


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asyncpg, PostgreSQL is refused with the line that installs it."""
    monkeypatch.delitem(sys.modules, "etude.store.postgresql", raising=False)
    monkeypatch.setattr("etude.store.postgresql", None, raising=False)
    monkeypatch.delattr("etude.store.postgresql", raising=False)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ExtraMissing) as caught:
        postgresql_adapter()
    assert caught.value.params["install"] == "pip install 'etude[postgres]'"


def test_store_on_sqlite_needs_no_postgres_driver() -> None:
    """Importing the store imports no asyncpg."""
    script = "import sys, etude.store; sys.exit('asyncpg' in sys.modules)"
    assert run_bounded([sys.executable, "-c", script]).returncode == 0
