"""What the examiner does when a learner's data is exported or erased (`docs/rules.md 13, 50`)."""

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import quote

import msgspec

from etude.clock import Clock, from_us
from etude.examiner import repository
from etude.examiner.tables import report, report_revision, report_wording, summary_card
from etude.files import crash_point
from etude.people.learner_data import ExportFile, LearnerData, LearnerDataRegistry
from etude.people.own_data import people_data
from etude.sessions.erasure import sessions_data, sessions_of
from etude.store.blobs import Blobs
from etude.store.engine import Database
from etude.store.work import UnitOfWork

CONTEXT: Final = "examiner"


def all_learner_data(clock: Clock, blobs: Blobs, *beside: LearnerData) -> LearnerDataRegistry:
    """Return the registry of every context that keeps data of learners, for the processes' roots.

    It stands here because the examiner is the highest context that keeps any; what contexts
    `beside` it keep, which it does not know, is registered after its own.
    """
    registry = LearnerDataRegistry()
    registry.register(people_data(clock))
    registry.register(sessions_data(clock, blobs))
    registry.register(reports_data())
    for data in beside:
        registry.register(data)
    return registry


def reports_data() -> LearnerData:
    """Return what the examiner registers: every revision and card of the learner's sessions."""
    return LearnerData(
        context=CONTEXT,
        tables=(report, report_revision, report_wording, summary_card),
        export_learner=_exported,
        erase_learner=_erase,
    )


async def _erase(work: UnitOfWork, learner_key: int) -> None:
    for session_key, _ in await sessions_of(work.connection, learner_key, lock=True):
        await repository.remove_session(work, session_key)
    crash_point("examiner.erasure.reports_removed")


async def _exported(database: Database, learner_key: int) -> AsyncIterator[ExportFile]:
    async with database.read() as connection:
        sessions = await sessions_of(connection, learner_key)
    for session_key, session_id in sessions:
        folder = f"sessions/{quote(session_id, safe='')}"
        async with database.read() as connection:
            notes = await repository.revisions(connection, session_key)
            cards = await repository.cards(connection, session_key)
        for note in notes:
            chunks = _body(database, session_key, note.revision)
            yield ExportFile(path=f"{folder}/report.{note.revision}.json", chunks=chunks)
        if cards:
            yield ExportFile(path=f"{folder}/cards.jsonl", chunks=_once(_lines(cards)))


async def _body(database: Database, session_key: int, number: int) -> AsyncIterator[bytes]:
    async with database.read() as connection:
        row = await repository.revision(connection, session_key, number)
    yield b"" if row is None else row.body


def _lines(cards: list[repository.CardRow]) -> bytes:
    shown = [
        {
            "card_id": card.card_id,
            "created_at": from_us(card.created_us),
            "expires_at": from_us(card.expires_us),
            "revoked": card.revoked_us is not None,
            "card": msgspec.Raw(card.content),
        }
        for card in cards
    ]
    return msgspec.json.Encoder().encode_lines(shown)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
