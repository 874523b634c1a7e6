"""Summary cards: what a learner hands to a teacher, opened by an address and without an account.

A card shows what it was given and nothing else: no name, no score, no way to the session.
"""

from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Ids, from_us, to_us
from etude.examiner import repository
from etude.examiner.card_links import CardLinks, token_hash
from etude.examiner.report import SummaryCard
from etude.examiner.repository import CardRow
from etude.examiner.serving_errors import (
    CardExpiredError,
    CardLimitError,
    CardRevokedError,
    CardUnknownError,
)
from etude.files import crash_point
from etude.sessions.records import SessionRow
from etude.store.work import UnitOfWork

MAX_CARDS: Final = 20
"""Living cards a session may have."""
Highlight = Annotated[str, Meta(min_length=1, max_length=200)]


class JourneyProgress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the journey has come (`docs/rules.md 30`)."""

    sessions: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    minutes: Annotated[float, Meta(ge=0, le=10_000_000)] | None = None
    last_metric: Annotated[str, Meta(max_length=100)] | float | None = None


class CardContent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a card is given, and all that it shows."""

    recap_highlights: Annotated[list[Highlight], Meta(max_length=10)]
    uncertainty_count: Annotated[int, Meta(ge=0, le=20_000)]
    journey_progress: JourneyProgress | None = None
    journey_id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


class MadeCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card that was just made; its address is shown now."""

    card_id: str
    teacher_view_url: str
    expires_at: datetime


class OpenCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card as its address shows it."""

    content: CardContent
    made_at: datetime
    expires_at: datetime


async def make_card(
    work: UnitOfWork,
    session: SessionRow,
    content: CardContent,
    *,
    links: CardLinks,
    ids: Ids,
    now: datetime,
    lifetime: timedelta,
) -> MadeCard:
    """Store a card of a session, which must be locked.

    Raises:
        CardLimitError: the session has `MAX_CARDS` living ones.
    """
    living = [
        one
        for one in await repository.cards(work.connection, session.session_key)
        if _lives(one, now)
    ]
    if len(living) >= MAX_CARDS:
        raise CardLimitError(limit=MAX_CARDS)
    card_id = ids.new()
    token = links.token(card_id)
    row = CardRow(
        card_id=card_id,
        session_key=session.session_key,
        token_sha256=token_hash(token),
        content=msgspec.json.encode(content),
        created_us=to_us(now),
        expires_us=to_us(now + lifetime),
    )
    await repository.add_card(work, row)
    crash_point("examiner.card.made")
    return MadeCard(
        card_id=card_id, teacher_view_url=links.url(token), expires_at=from_us(row.expires_us)
    )


async def open_card(connection: AsyncConnection, token: str, now: datetime) -> OpenCard:
    """Return the card at an address.

    Raises:
        CardUnknownError: there is none (any more).
        CardExpiredError, CardRevokedError: there was one.
    """
    row = await repository.card_by_token(connection, token_hash(token))
    if row is None:
        raise CardUnknownError
    if row.revoked_us is not None:
        raise CardRevokedError
    if not _lives(row, now):
        raise CardExpiredError
    return OpenCard(
        content=msgspec.json.decode(row.content, type=CardContent),
        made_at=from_us(row.created_us),
        expires_at=from_us(row.expires_us),
    )


async def revoke_card(work: UnitOfWork, session: SessionRow, card_id: str, now: datetime) -> None:
    """Take a card back; once more changes nothing. `session` must be locked.

    Raises:
        CardUnknownError: the session has no such card.
    """
    known = await repository.cards(work.connection, session.session_key)
    if card_id not in {one.card_id for one in known}:
        raise CardUnknownError
    await repository.revoke_card(work, card_id, to_us(now))
    crash_point("examiner.card.revoked")


async def card_of_report(
    connection: AsyncConnection, session_key: int, links: CardLinks, now: datetime
) -> SummaryCard | None:
    """Return the latest living card of a session, as its report names it."""
    for row in await repository.cards(connection, session_key):
        url = links.url_of(row) if _lives(row, now) else None
        if url is not None:
            return SummaryCard(card_id=row.card_id, teacher_view_url=url)
    return None


def _lives(row: CardRow, now: datetime) -> bool:
    return row.revoked_us is None and to_us(now) < row.expires_us
