"""Engine, unit of work, migrations and blobs. Knows no noun of the product."""

from etude.store.blobs import Blob, Blobs
from etude.store.engine import Database
from etude.store.migrations import check, current_revision, newest_revision, upgrade
from etude.store.schema import metadata
from etude.store.work import UnitOfWork

__all__ = [
    "Blob",
    "Blobs",
    "Database",
    "UnitOfWork",
    "check",
    "current_revision",
    "metadata",
    "newest_revision",
    "upgrade",
]
