from typing import Any

import pytest

from etude.store import Database
from etude.testing.school import School


@pytest.fixture
def school(database: Database, run: Any) -> School:
    """A furnished school on each kind of database."""
    made = School(database, run)
    run(made.furnish())
    return made
