"""Tokens over HTTP: make, list, revoke."""

from datetime import datetime
from typing import Annotated, Final

import msgspec
from litestar import Response, delete, get, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta

from etude.people import audit
from etude.people.errors import (
    CursorInvalidError,
    DeviceUnknownError,
    IdInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    NameInvalidError,
    ScopeNotAllowedError,
    StaffUnknownError,
    TimeOutOfRangeError,
    TokenExpiryError,
    TokenUnknownError,
)
from etude.people.names import MAX_DEVICE_ID, MAX_NAME
from etude.people.paging import DEFAULT_LIMIT
from etude.people.records import PrincipalKind, Subject, Token
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, get_token, list_tokens, revoke_token
from etude.people.tokens import create_token as make_token
from etude.store.errors import StoreUnavailable
from etude.web.auth import principal_of
from etude.web.declared import declared
from etude.web.devices import Instant
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

PATH: Final = "/api/v1/tokens"
TokenId = Annotated[str, PathParameter(description="The public part: 16 digits behind `etd_`.")]


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to make, for a device, learner or member of staff, or for a service by its name."""

    kind: PrincipalKind
    principal_id: Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=len(Scope))]
    expires_at: Instant | None = None
    label: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None = None


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret. `last_used_at` is right to about a minute."""

    token_id: str
    kind: PrincipalKind
    principal_id: str
    label: str | None
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class MadeToken(TokenView, frozen=True, kw_only=True):
    """A token just made. `token` is shown this once; only its hash is kept."""

    token: str


class TokenPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the list of tokens, revoked and expired ones too, oldest first."""

    items: list[TokenView]
    next_cursor: str | None


@post(
    PATH,
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(
            DeviceUnknownError,
            LearnerUnknownError,
            LearnerErasedError,
            StaffUnknownError,
            IdInvalidError,
            NameInvalidError,
            ScopeNotAllowedError,
            TokenExpiryError,
            TimeOutOfRangeError,
            StoreUnavailable,
        ),
    ),
    tags=["People"],
)
async def create_token(request: HttpRequest, data: JSONBody[NewToken]) -> Response[MadeToken]:
    """Make a token and show it, this once. A service is made with its first token."""
    services, now = services_of(request), services_of(request).clock.now()
    wanted = TokenRequest(
        kind=data.kind,
        principal_id=data.principal_id,
        scopes=tuple(data.scopes),
        expires_at=data.expires_at,
        label=data.label,
    )
    async with services.database.transaction() as work:
        made = await make_token(work.connection, wanted, now)
        subject: Subject = ("token", made.token.token_key)
        await audit.record(work, principal_of(request), "token.made", subject=subject, now=now)
    shown = MadeToken(token=made.text, **msgspec.structs.asdict(_view(made.token)))
    headers = {"Location": f"{PATH}/{made.token.public_id}", "Cache-Control": "no-store"}
    return Response(shown, status_code=201, headers=headers)


@get(
    PATH,
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(CursorInvalidError, StoreUnavailable)
    ),
    tags=["People"],
)
async def show_tokens(
    request: HttpRequest, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> TokenPage:
    """List the tokens, never with their secrets."""
    async with services_of(request).database.read() as connection:
        page = await list_tokens(connection, cursor=cursor, limit=limit)
    return TokenPage(items=[_view(each) for each in page.items], next_cursor=page.next_cursor)


@get(
    PATH + "/{token_id:str}",
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(TokenUnknownError, StoreUnavailable)
    ),
    tags=["People"],
)
async def show_token(request: HttpRequest, token_id: TokenId) -> TokenView:
    """Show a token without its secret."""
    async with services_of(request).database.read() as connection:
        return _view(await get_token(connection, token_id))


@delete(
    PATH + "/{token_id:str}",
    status_code=204,
    opt=declared(
        roles=("server",), needs=Scope.OPERATE, raises=(TokenUnknownError, StoreUnavailable)
    ),
    tags=["People"],
)
async def remove_token(request: HttpRequest, token_id: TokenId) -> None:
    """Revoke a token: it is refused from the next request on. Revoking it again changes nothing."""
    services, now = services_of(request), services_of(request).clock.now()
    async with services.database.transaction() as work:
        revoked = await revoke_token(work.connection, token_id, now)
        subject: Subject = ("token", revoked.token_key)
        await audit.record(work, principal_of(request), "token.revoked", subject=subject, now=now)


def _view(token: Token) -> TokenView:
    return TokenView(
        token_id=token.public_id,
        kind=token.kind,
        principal_id=token.principal_id,
        label=token.label,
        scopes=list(token.scopes),
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.last_used_at,
    )


route_handlers = [create_token, show_tokens, show_token, remove_token]
