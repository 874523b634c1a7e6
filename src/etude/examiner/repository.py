"""Statements on the tables of reports and cards.

Every function works on the connection or unit of work it is given and starts no transaction.
Whoever writes has locked the session first, so that the order of locks is the same everywhere.
"""

import hashlib
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Row, and_, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.examiner import wordings
from etude.examiner.tables import report, report_revision, report_rubric, summary_card
from etude.store.dialects import insert_if_absent
from etude.store.work import UnitOfWork

_EARLIER_LOOKED_AT: Final = 500


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session's report stands.

    Attributes:
        revision: the latest one; 0 = none yet.
        assigned_rubric: `id@version` that a person chose.
        refused: code of the error that keeps a report from being made.
        not_reworded: code of the error that kept a model from being asked about the latest one.
        asked_us: since when a revision is wanted; None = none is.
    """

    session_key: int
    revision: int = 0
    assigned_rubric: str | None = None
    refused: str | None = None
    not_reworded: str | None = None
    asked_us: int | None = None
    journey_id: str | None = None
    started_us: int | None = None
    earlier: bytes | None = None


class RevisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A revision as stored; `digest` covers what is reproducible of `body`."""

    session_key: int
    revision: int
    report_id: str
    digest: str
    events_digest: str
    rubric_digest: str
    overall_score: int | None
    body: bytes
    made_us: int


class RevisionNote(msgspec.Struct, frozen=True, kw_only=True):
    """A revision in a list."""

    revision: int
    made_at: datetime
    overall_score: int | None
    digest: str


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A summary card as stored."""

    card_id: str
    session_key: int
    token_sha256: str
    content: bytes
    created_us: int
    expires_us: int
    revoked_us: int | None = None


_HEAD: Final = [report.c[name] for name in Head.__struct_fields__]
_CARD: Final = [summary_card.c[name] for name in CardRow.__struct_fields__]
_REVISION: Final = [report_revision.c[name] for name in RevisionRow.__struct_fields__]


async def heads(connection: AsyncConnection, session_keys: Collection[int]) -> dict[int, Head]:
    """Return where the reports of these sessions stand; those never asked for are left out."""
    rows = await connection.execute(select(*_HEAD).where(report.c.session_key.in_(session_keys)))
    return {row.session_key: Head(**row._mapping) for row in rows}  # noqa: SLF001 - public


async def head(connection: AsyncConnection, session_key: int) -> Head:
    """Return where the report of a session stands."""
    found = await heads(connection, [session_key])
    return found.get(session_key) or Head(session_key=session_key)


async def note_asked(work: UnitOfWork, session_keys: Collection[int], now_us: int) -> None:
    """Note that revisions are wanted since now, unless they were before."""
    rows = [{"session_key": key, "revision": 0} for key in sorted(session_keys)]
    await work.connection.execute(insert_if_absent(work, report), rows)
    wanted = report.c.session_key.in_(session_keys) & report.c.asked_us.is_(None)
    await work.connection.execute(update(report).where(wanted).values(asked_us=now_us))


async def save_head(work: UnitOfWork, changed: Head) -> None:
    """Write where a report stands."""
    values = msgspec.structs.asdict(changed)
    await work.connection.execute(insert_if_absent(work, report).values(values))
    await work.connection.execute(
        update(report).where(report.c.session_key == changed.session_key).values(values)
    )


async def add_revision(work: UnitOfWork, row: RevisionRow, rubric_body: bytes) -> None:
    """Add a revision, and the rubric that it was made by if it is not there."""
    await _keep_rubric(work, row.rubric_digest, rubric_body, row.made_us)
    await work.connection.execute(insert(report_revision), msgspec.structs.asdict(row))


async def revision(
    connection: AsyncConnection, session_key: int, number: int
) -> RevisionRow | None:
    """Return one revision of a session's report."""
    wanted = (report_revision.c.session_key == session_key) & (report_revision.c.revision == number)
    row = (await connection.execute(select(*_REVISION).where(wanted))).first()
    return None if row is None else RevisionRow(**row._mapping)  # noqa: SLF001 - public


async def revisions(connection: AsyncConnection, session_key: int) -> list[RevisionNote]:
    """Return what there is of a session's report, oldest first."""
    kept = report_revision.c
    rows = await connection.execute(
        select(kept.revision, kept.made_us, kept.overall_score, kept.digest)
        .where(kept.session_key == session_key)
        .order_by(kept.revision)
    )
    return [
        RevisionNote(
            revision=row.revision,
            made_at=from_us(row.made_us),
            overall_score=row.overall_score,
            digest=row.digest,
        )
        for row in rows
    ]


async def keep_rubric(work: UnitOfWork, body: bytes, now: datetime) -> None:
    """Keep a rubric (`rubric_json`), so that sessions which name its digest can be examined."""
    await _keep_rubric(work, hashlib.sha256(body).hexdigest(), body, to_us(now))


async def _keep_rubric(work: UnitOfWork, digest: str, body: bytes, now_us: int) -> None:
    kept = {"digest": digest, "body": body, "added_us": now_us}
    await work.connection.execute(insert_if_absent(work, report_rubric).values(kept))


async def rubric_body(connection: AsyncConnection, digest: str) -> bytes | None:
    """Return the rubric with this digest, in its canonical form."""
    wanted = select(report_rubric.c.body).where(report_rubric.c.digest == digest)
    body: bytes | None = await connection.scalar(wanted)
    return body


async def earlier_of_journey(
    connection: AsyncConnection, journey_id: str, before_us: int, session_key: int
) -> list[tuple[int, bytes]]:
    """Return `(session_key, what its report tells)` of a journey's sessions before this one.

    Anybody may use any journey id: it is for the caller to leave out other people's. The latest
    first.
    """
    is_before = or_(
        report.c.started_us < before_us,
        and_(report.c.started_us == before_us, report.c.session_key < session_key),
    )
    rows = await connection.execute(
        select(report.c.session_key, report.c.earlier)
        .where(report.c.journey_id == journey_id, is_before, report.c.earlier.is_not(None))
        .order_by(report.c.started_us.desc(), report.c.session_key.desc())
        .limit(_EARLIER_LOOKED_AT)
    )
    return [(row.session_key, row.earlier) for row in rows]


async def add_card(work: UnitOfWork, row: CardRow) -> None:
    """Add a card."""
    await work.connection.execute(insert(summary_card), msgspec.structs.asdict(row))


async def card_by_token(connection: AsyncConnection, token_sha256: str) -> CardRow | None:
    """Return the card whose address has this hash."""
    wanted = select(*_CARD).where(summary_card.c.token_sha256 == token_sha256)
    row = (await connection.execute(wanted)).first()
    return None if row is None else _card(row)


async def cards(connection: AsyncConnection, session_key: int) -> list[CardRow]:
    """Return the cards of a session, the latest first."""
    rows = await connection.execute(
        select(*_CARD)
        .where(summary_card.c.session_key == session_key)
        .order_by(summary_card.c.card_key.desc())
    )
    return list(map(_card, rows))


async def revoke_card(work: UnitOfWork, card_id: str, now_us: int) -> None:
    """End a card; what it said goes."""
    await work.connection.execute(
        update(summary_card)
        .where(summary_card.c.card_id == card_id, summary_card.c.revoked_us.is_(None))
        .values(revoked_us=now_us, content=b"{}")
    )


async def remove_session(work: UnitOfWork, session_key: int) -> None:
    """Remove every revision and card of a session, and what a model said of it."""
    await wordings.remove(work, session_key)
    for table in (report_revision, summary_card, report):
        await work.connection.execute(delete(table).where(table.c.session_key == session_key))


def _card(row: Row[Any]) -> CardRow:
    return CardRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
