"""Tokens: how a device, learner, member of staff or service shows who it is.

`etd_<public part>_<secret>`: the public part finds the row, the secret is 256 random bits of which
only the sha256 is stored. The text exists once, in the answer to its making; nothing can show it
again, and no log or error ever holds it.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Row, Select, bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.files import crash_point
from etude.people.devices import get_device
from etude.people.errors import (
    LearnerErasedError,
    TokenExpiryError,
    TokenInvalidError,
    TokenMissingError,
    TokenUnknownError,
)
from etude.people.learners import get_learner
from etude.people.names import can_be_id, check_name
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Page, Principal, PrincipalKind, Role, Token
from etude.people.scopes import check_scopes, effective_scopes
from etude.people.services import ensure_service
from etude.people.staff import get_staff
from etude.people.tables import device, learner, service, staff, token
from etude.people.times import check_time

Entropy = Callable[[int], bytes]
_PUBLIC_BYTES: Final = 8
_SECRET_BYTES: Final = 32
_TOKEN: Final = re.compile(
    rf"etd_([0-9a-f]{{{_PUBLIC_BYTES * 2}}})_([0-9a-f]{{{_SECRET_BYTES * 2}}})"
)
# Compared with when no row was found, so that an unknown token costs what a known one does.
_NO_DIGEST: Final = bytes(32)


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token in the one moment in which its text is known. Not in its `repr`."""

    token: Token
    text: str

    def __repr__(self) -> str:
        """Name the public part only."""
        return f"NewToken({self.token.public_id})"


async def authenticate(connection: AsyncConnection, bearer: str | None, now: datetime) -> Principal:
    """Return who shows the token `bearer` (the credential of RFC 6750 §2.1, without its scheme).

    Raises:
        TokenMissingError: there is none.
        TokenInvalidError: it is malformed, unknown, expired or revoked.
        LearnerErasedError: it was the token of a learner who was erased (410, `docs/rules.md 49`).
    """
    (outcome,) = await authenticate_all(connection, [bearer], now)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def authenticate_all(
    connection: AsyncConnection, bearers: Sequence[str | None], now: datetime
) -> list[Principal | Exception]:
    """Return for each token its principal or the error that `authenticate` raises.

    One indexed query for all of them. Revocation, expiry and the role of staff count from the
    moment they are committed. Unknown and known tokens take the same work, and the refusal does not
    tell which.
    """
    parts = [_TOKEN.fullmatch(bearer) if bearer else None for bearer in bearers]
    named = {part[1] for part in parts if part is not None}
    rows = await connection.execute(_BY_PUBLIC_ID, {"public_ids": list(named)}) if named else ()
    known = {row.public_id: row for row in rows}
    return [
        _judge(known.get(part[1]), part[2], now) if part else _refusal(bearer)
        for bearer, part in zip(bearers, parts, strict=True)
    ]


def _refusal(bearer: str | None) -> Exception:
    return TokenInvalidError() if bearer else TokenMissingError()


def _judge(row: Row[Any] | None, secret: str, now: datetime) -> Principal | Exception:
    stored = row.secret_sha256 if row is not None else _NO_DIGEST
    matches = hmac.compare_digest(sha256(secret.encode()).digest(), stored)
    if row is None or not matches:
        return TokenInvalidError()
    if row.learner_erased_us is not None:
        return LearnerErasedError()
    if row.revoked_us is not None or (row.expires_us is not None and row.expires_us <= to_us(now)):
        return TokenInvalidError()
    return _principal(row)


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a token is to be.

    Attributes:
        kind: what its principal is.
        principal_id: public id of the device or learner, sign-in name of staff, name of a service.
        scopes: what it allows, see `etude.people.scopes`.
        expires_at: from when on it is refused; None for never.
        label: what the operator calls it; goes with the learner at an erasure.
    """

    kind: PrincipalKind
    principal_id: str
    scopes: tuple[str, ...]
    expires_at: datetime | None = None
    label: str | None = None


async def create_token(
    connection: AsyncConnection,
    wanted: TokenRequest,
    now: datetime,
    entropy: Entropy = secrets.token_bytes,
) -> NewToken:
    """Make a token, in a transaction for writing; a service is made with its first one.

    Raises:
        TokenExpiryError, TimeOutOfRangeError: it would expire before it is made, or never.
        ScopeUnknownError, ScopeNotAllowedError: see `check_scopes`.
        NameInvalidError: the label is no name.
        DeviceUnknownError, LearnerUnknownError, LearnerErasedError, StaffUnknownError,
        IdInvalidError: there is no such principal, or a service cannot be called that.
    """
    if wanted.expires_at is not None and check_time(wanted.expires_at) <= now:
        raise TokenExpiryError(expires_at=wanted.expires_at.isoformat())
    key, role = await _principal_key(connection, wanted.kind, wanted.principal_id, now)
    scopes = check_scopes(wanted.scopes, wanted.kind, role)
    public_id, secret = entropy(_PUBLIC_BYTES).hex(), entropy(_SECRET_BYTES).hex()
    values = {
        "public_id": public_id,
        "secret_sha256": sha256(secret.encode()).digest(),
        "kind": wanted.kind,
        f"{wanted.kind}_key": key,
        "label": None if wanted.label is None else check_name(wanted.label),
        "scopes": " ".join(scopes),
        "created_us": to_us(now),
        "expires_us": None if wanted.expires_at is None else to_us(wanted.expires_at),
    }
    await connection.execute(insert(token).values(values))
    crash_point("people.token.inserted")
    made = await get_token(connection, public_id)
    return NewToken(token=made, text=f"etd_{public_id}_{secret}")


async def get_token(connection: AsyncConnection, public_id: str) -> Token:
    """Return the token with this public part; raises `TokenUnknownError`."""
    statement = _tokens().where(token.c.public_id == public_id)
    row = (await connection.execute(statement)).one_or_none() if can_be_id(public_id) else None
    if row is None:
        raise TokenUnknownError(token_id=public_id)
    return _record(row)


async def list_tokens(
    connection: AsyncConnection, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Token]:
    """Return a page of the tokens, revoked and expired ones too, oldest first."""
    statement = _tokens().where(token.c.token_key > key_after(cursor)).limit(limit + 1)
    return page((await connection.execute(statement)).all(), limit, _record, "token_key")


async def tokens_of_learner(connection: AsyncConnection, learner_key: int) -> tuple[Token, ...]:
    """Return all tokens of a learner, oldest first."""
    statement = _tokens().where(token.c.learner_key == learner_key)
    return tuple(_record(row) for row in (await connection.execute(statement)).all())


async def revoke_token(connection: AsyncConnection, public_id: str, now: datetime) -> Token:
    """Refuse the token from now on; one that is revoked already keeps its first time.

    Raises `TokenUnknownError`.
    """
    await get_token(connection, public_id)
    await connection.execute(
        update(token)
        .where(token.c.public_id == public_id, token.c.revoked_us.is_(None))
        .values(revoked_us=to_us(now))
    )
    return await get_token(connection, public_id)


async def bury_tokens(connection: AsyncConnection, learner_key: int, now: datetime) -> None:
    """Reduce the tokens of a learner to tombstones; part of the erasure.

    Public part and hash stay, both random: they are how a device that still shows the token learns
    that its learner was erased (410), and not that it has the wrong token (401).
    """
    await connection.execute(
        update(token)
        .where(token.c.learner_key == learner_key)
        .values(
            label=None,
            scopes="",
            created_us=to_us(now),
            expires_us=None,
            revoked_us=to_us(now),
            last_used_us=None,
        )
    )


def _principal(row: Row[Any]) -> Principal:
    kind: PrincipalKind = row.kind
    return Principal(
        kind=kind,
        key=getattr(row, f"{kind}_key"),
        id=getattr(row, f"{kind}_id"),
        scopes=effective_scopes(row.scopes.split(), kind, row.role),
        token_key=row.token_key,
    )


async def _principal_key(
    connection: AsyncConnection, kind: PrincipalKind, principal_id: str, now: datetime
) -> tuple[int, Role | None]:
    if kind == "device":
        return (await get_device(connection, principal_id)).device_key, None
    if kind == "learner":
        return (await get_learner(connection, principal_id, lock=True)).learner_key, None
    if kind == "staff":
        member = await get_staff(connection, principal_id)
        return member.staff_key, member.role
    return (await ensure_service(connection, principal_id, now)).service_key, None


def _joined(*extra: ColumnElement[Any]) -> Select[Any]:
    return (
        select(
            token,
            device.c.device_id,
            learner.c.learner_id,
            staff.c.staff_id,
            service.c.service_id,
            *extra,
        )
        .outerjoin(device, device.c.device_key == token.c.device_key)
        .outerjoin(learner, learner.c.learner_key == token.c.learner_key)
        .outerjoin(staff, staff.c.staff_key == token.c.staff_key)
        .outerjoin(service, service.c.service_key == token.c.service_key)
    )


def _tokens() -> Select[Any]:
    return _joined().where(learner.c.erased_us.is_(None)).order_by(token.c.token_key)


_BY_PUBLIC_ID: Final = _joined(staff.c.role, learner.c.erased_us.label("learner_erased_us")).where(
    token.c.public_id.in_(bindparam("public_ids", expanding=True))
)


def _record(row: Row[Any]) -> Token:
    return Token(
        token_key=row.token_key,
        public_id=row.public_id,
        kind=row.kind,
        principal_id=getattr(row, f"{row.kind}_id"),
        label=row.label,
        scopes=tuple(row.scopes.split()),
        created_at=from_us(row.created_us),
        expires_at=_time(row.expires_us),
        revoked_at=_time(row.revoked_us),
        last_used_at=_time(row.last_used_us),
    )


def _time(at_us: int | None) -> datetime | None:
    return None if at_us is None else from_us(at_us)
