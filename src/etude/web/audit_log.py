"""The audit log over HTTP: who did what to whom, when."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from litestar import get
from litestar.params import QueryParameter

from etude.people.audit import list_audit
from etude.people.errors import CursorInvalidError, LearnerErasedError, LearnerUnknownError
from etude.people.learners import get_learner
from etude.people.names import MAX_ID
from etude.people.paging import DEFAULT_LIMIT
from etude.people.public_ids import public_ids
from etude.people.records import AuditEntry, Subject
from etude.people.scopes import Scope
from etude.store.errors import StoreUnavailable
from etude.web.declared import declared
from etude.web.paging import Cursor, Limit
from etude.web.services import HttpRequest, services_of

LearnerFilter = Annotated[
    str | None,
    QueryParameter(
        name="learner", max_length=MAX_ID, description="Only what this learner was done to."
    ),
]


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody or something in an entry. `id` is null where there is none, or none any more."""

    kind: str
    key: int
    id: str | None


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `token_id` is the public part of the token that was shown."""

    at: datetime
    actor: Party
    token_id: str | None
    action: str
    subject: Party
    detail: Mapping[str, int | str]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the log, oldest first."""

    items: list[AuditView]
    next_cursor: str | None


@get(
    "/api/v1/audit",
    opt=declared(
        roles=("server",),
        needs=Scope.OPERATE,
        raises=(CursorInvalidError, LearnerUnknownError, LearnerErasedError, StoreUnavailable),
    ),
    tags=["People"],
)
async def show_audit(
    request: HttpRequest,
    learner: LearnerFilter = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> AuditPage:
    """List who did what to whom, when; of one learner with `learner`."""
    async with services_of(request).database.read() as connection:
        subject: Subject | None = None
        if learner is not None:
            subject = ("learner", (await get_learner(connection, learner)).learner_key)
        page = await list_audit(connection, subject=subject, cursor=cursor, limit=limit)
        ids = await public_ids(connection, [party for each in page.items for party in _of(each)])
    return AuditPage(items=[_view(each, ids) for each in page.items], next_cursor=page.next_cursor)


def _of(entry: AuditEntry) -> list[tuple[str, int]]:
    parties = [(entry.actor.kind, entry.actor.key), entry.subject]
    if entry.actor.token_key is not None:
        parties.append(("token", entry.actor.token_key))
    return [(str(kind), key) for kind, key in parties]


def _view(entry: AuditEntry, ids: Mapping[tuple[str, int], str]) -> AuditView:
    actor, (kind, key) = entry.actor, entry.subject
    return AuditView(
        at=entry.at,
        actor=Party(kind=actor.kind, key=actor.key, id=ids.get((actor.kind, actor.key))),
        token_id=None if actor.token_key is None else ids.get(("token", actor.token_key)),
        action=entry.action,
        subject=Party(kind=kind, key=key, id=ids.get((kind, key))),
        detail=entry.detail,
    )


route_handlers = [show_audit]
