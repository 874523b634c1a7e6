"""Every context's files of a learner in one ZIP (`docs/people.md §A learner's data, whole`)."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

import msgspec

from etude.people.archive import zip_files
from etude.people.learner_data import ExportFile, LearnerDataRegistry
from etude.store import Database

FORMAT: Final = "etude-learner-export"
VERSION: Final = 1


def export_archive(
    database: Database, registry: LearnerDataRegistry, learner_key: int, now: datetime
) -> AsyncIterator[bytes]:
    """Yield a ZIP archive: `manifest.json`, then each context's files, in bounded memory.

    Every file is a snapshot of its own: sessions that arrive meanwhile may be in it or not.
    """
    return zip_files(_files(database, registry, learner_key, now), now)


async def _files(
    database: Database, registry: LearnerDataRegistry, learner_key: int, now: datetime
) -> AsyncIterator[ExportFile]:
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": now,
        "contexts": [data.context for data in registry],
    }
    yield ExportFile(path="manifest.json", chunks=_once(msgspec.json.encode(manifest)))
    async for file in registry.export_learner(database, learner_key):
        yield file


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
