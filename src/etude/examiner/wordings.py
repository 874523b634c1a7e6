"""What a model answered, kept so that no answer is asked for again (`docs/rules.md 37`).

An answer belongs to its session and goes with it. Its key is the digest of the model's name and of
the whole question, which holds nothing but what the report was made from.
"""

import hashlib

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.examiner.tables import report_wording
from etude.store.dialects import insert_if_absent
from etude.store.work import UnitOfWork


def asked_sha256(model: str, question: str) -> str:
    """Return the key of an answer."""
    return hashlib.sha256(msgspec.json.encode((model, question))).hexdigest()


async def answers(connection: AsyncConnection, session_key: int) -> dict[str, str]:
    """Return the answers that are kept of a session, by key."""
    kept = report_wording.c
    rows = await connection.execute(
        select(kept.asked_sha256, kept.answer).where(kept.session_key == session_key)
    )
    return {row.asked_sha256: row.answer for row in rows}


async def keep(work: UnitOfWork, session_key: int, key: str, answer: str, now_us: int) -> None:
    """Keep an answer; the first one stays. The session is locked."""
    values = {
        "session_key": session_key,
        "asked_sha256": key,
        "answer": answer.replace("\0", ""),  # PostgreSQL's text holds none
        "answered_us": now_us,
    }
    await work.connection.execute(insert_if_absent(work, report_wording).values(values))


async def remove(work: UnitOfWork, session_key: int) -> None:
    """Remove every answer of a session."""
    of_session = report_wording.c.session_key == session_key
    await work.connection.execute(delete(report_wording).where(of_session))
