"""Time that passes for jobs: what a killed worker held is due at once."""

import sqlite3
from contextlib import closing
from pathlib import Path


def pass_leases(data: Path) -> None:
    """Let every lease and pause in the SQLite database of `data` be over; nobody may hold one."""
    with closing(sqlite3.connect(data / "etude.db")) as database, database:
        database.execute("UPDATE job SET lease_until_us = 0 WHERE state = 'running'")
        database.execute("UPDATE job SET run_after_us = 0 WHERE state = 'queued'")
