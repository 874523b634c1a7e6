"""Summary cards: made for a session, opened by whoever has the address, taken back."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, delete, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, PathParameter

from etude import i18n
from etude.examiner import cards
from etude.examiner.card_links import PATH
from etude.examiner.card_page import render_card, render_gone
from etude.examiner.cards import CardContent, MadeCard
from etude.examiner.serving_errors import (
    CardExpiredError,
    CardLimitError,
    CardRevokedError,
    CardUnknownError,
)
from etude.people import audit
from etude.people.records import Principal
from etude.people.scopes import Scope
from etude.sessions import reading, repository
from etude.sessions.errors import (
    SessionErasedError,
    SessionForeignError,
    SessionIdInvalidError,
    SessionUnknownError,
)
from etude.sessions.ownership import writable
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import Access, declared
from etude.web.representations import PAGE_HEADERS, page, wants_page
from etude.web.services import HttpRequest, services_of
from etude.web.uploads import SessionId

_ERRORS: Final = (
    SessionIdInvalidError,
    SessionUnknownError,
    SessionForeignError,
    SessionErasedError,
    StoreUnavailable,
)
_GONE: Final = (CardUnknownError, CardExpiredError, CardRevokedError)
Token = Annotated[
    str, PathParameter(max_length=64, description="The secret end of the card's address.")
]
CardId = Annotated[str, PathParameter(description="The card's id.")]


class CardView(CardContent, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A card: what it was given, and until when it can be opened."""

    made_at: datetime
    expires_at: datetime


@post(
    "/api/v1/sessions/{session_id:str}/summary-card",
    status_code=201,
    opt=declared(roles=("server",), needs=Scope.SESSIONS_WRITE, raises=(*_ERRORS, CardLimitError)),
    tags=["Cards"],
)
async def make_card(
    request: HttpRequest, session_id: SessionId, data: JSONBody[CardContent]
) -> MadeCard:
    """Make a card of a session; its address opens without an account and goes into a QR code."""
    reading.check_session_id(session_id)
    services = services_of(request)
    await _own(request, session_id)
    async with services.database.transaction() as work:
        session = (await repository.lock(work, [session_id])).get(session_id)
        if session is None:
            raise SessionErasedError
        return await cards.make_card(
            work,
            session,
            data,
            links=services.card_links,
            ids=services.ids,
            now=services.clock.now(),
            lifetime=timedelta(days=services.settings.card_days),
        )


@delete(
    "/api/v1/sessions/{session_id:str}/summary-card/{card_id:str}",
    opt=declared(
        roles=("server",),
        needs=(Scope.SESSIONS_WRITE, Scope.OPERATE),
        raises=(*_ERRORS, CardUnknownError),
    ),
    tags=["Cards"],
)
async def revoke_card(request: HttpRequest, session_id: SessionId, card_id: CardId) -> None:
    """Take a card back: its address answers 410 from now on. Again changes nothing."""
    reading.check_session_id(session_id)
    services, principal = services_of(request), principal_of(request)
    now = services.clock.now()
    await _revocable(request, session_id)
    async with services.database.transaction() as work:
        session = (await repository.lock(work, [session_id])).get(session_id)
        if session is None:
            raise SessionErasedError
        await cards.revoke_card(work, session, card_id, now)
        await audit.record(
            work, principal, "card.revoked", subject=("session", session.session_key), now=now
        )


async def _revocable(request: HttpRequest, session_id: str) -> None:
    """Let through whose session it is, and whoever may do everything."""
    services, principal = services_of(request), principal_of(request)
    if _operates(principal):
        now = services.clock.now()
        await reading.readable(services.database, principal, session_id, now)
    else:
        await _own(request, session_id)


async def _own(request: HttpRequest, session_id: str) -> None:
    """Let through who recorded the session, and the learner who practised.

    Raises:
        SessionUnknownError, SessionErasedError, SessionForeignError: as they say.
    """
    principal = principal_of(request)
    async with services_of(request).database.read() as connection:
        session = await repository.find(connection, session_id)
        if session is None or (principal.kind, principal.key) != ("learner", session.learner_key):
            await writable(connection, principal, session_id)


def _operates(principal: Principal) -> bool:
    return Scope.OPERATE in principal.scopes


@get(
    f"{PATH}{{token:str}}",
    opt=declared(roles=("server",), needs=Access.PUBLIC, raises=(*_GONE, StoreUnavailable)),
    responses={
        200: ResponseSpec(CardView, generate_examples=False, description="The card."),
    },
    tags=["Cards"],
)
async def show_card(request: HttpRequest, token: Token) -> Response[Any]:
    """Show a card to whoever has its address; a page to a browser."""
    services = services_of(request)
    locale = i18n.negotiate(request.headers.get("accept-language"))
    try:
        async with services.database.read() as connection:
            card = await cards.open_card(connection, token, services.clock.now())
    except _GONE as error:
        if not wants_page(request):
            raise
        return page(render_gone(error, locale), locale, status=error.status)
    if wants_page(request):
        url = services.card_links.url(token)
        return page(render_card(card, url, locale), locale)
    fields = msgspec.structs.asdict(card.content)
    view = CardView(**fields, made_at=card.made_at, expires_at=card.expires_at)
    return Response(view, headers=dict(PAGE_HEADERS))


route_handlers = [make_card, revoke_card, show_card]
