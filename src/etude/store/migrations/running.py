"""Run the pending revisions by Alembic."""

from pathlib import Path
from typing import Any, Final

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

_FOLDER: Final = Path(__file__).parent


def scripts() -> ScriptDirectory:
    """Return the chain of revisions as Alembic reads it."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def run_pending(connection: Connection) -> None:
    """Run every revision that the database does not have yet, in the connection's transaction."""
    chain = scripts()

    def pending(revision: Any, _context: MigrationContext) -> Any:  # noqa: ANN401 - alembic's types
        return chain._upgrade_revs("head", revision)  # noqa: SLF001 - as alembic's own command does

    with EnvironmentContext(Config(), chain, fn=pending, destination_rev="head") as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        environment.run_migrations()
