"""What a token may do. Who may hold which scope is one table, for docs, issue and every request."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from etude.people.errors import ScopeForbiddenError, ScopeNotAllowedError, ScopeUnknownError
from etude.people.records import Principal, PrincipalKind, Role


class Scope(StrEnum):
    """One thing that a token may allow."""

    SESSIONS_WRITE = "sessions:write"  # upload events and recordings
    SESSIONS_READ = "sessions:read"  # read sessions, recaps, reports
    SESSIONS_REVIEW = "sessions:review"  # say what was really there, where an event was not sure
    UPLOAD_ON_BEHALF = "upload:on-behalf"  # upload for a device that the request names
    GATEWAY_LINK = "gateway:link"  # hold a gateway's link: devices online, commands to them
    LEARNERS_READ = "learners:read"  # read who the learners are
    LESSONS_ASSIGN = "lessons:assign"  # say what learners and devices are to practise
    CLASSROOMS_WRITE = "classrooms:write"  # have classrooms made, edit and take one's own
    OPERATE = "operate"  # everything, and only this: people, devices, tokens, audit


_OWN: Final = frozenset({Scope.SESSIONS_WRITE, Scope.SESSIONS_READ})
_ALL: Final = frozenset(Scope)
_BY_KIND: Final[Mapping[PrincipalKind, frozenset[Scope]]] = {
    "device": _OWN,
    "learner": _OWN | {Scope.CLASSROOMS_WRITE},
    "staff": _ALL,
    "service": _ALL,
}
_BY_ROLE: Final[Mapping[Role, frozenset[Scope]]] = {
    "operator": _ALL,
    "teacher": frozenset(
        {
            Scope.SESSIONS_READ,
            Scope.SESSIONS_REVIEW,
            Scope.LEARNERS_READ,
            Scope.LESSONS_ASSIGN,
            Scope.CLASSROOMS_WRITE,
        }
    ),
}


def allowed_scopes(kind: PrincipalKind, role: Role | None = None) -> frozenset[Scope]:
    """Return what a principal of this kind (for staff: this role) can hold at most."""
    return _BY_ROLE[role] if role is not None else _BY_KIND[kind]


def check_scopes(
    scopes: Iterable[str], kind: PrincipalKind, role: Role | None = None
) -> tuple[Scope, ...]:
    """Return the scopes once each in their usual order.

    Raises `ScopeUnknownError` for a word that is no scope (or for no word at all) and
    `ScopeNotAllowedError` for a scope that this kind of principal cannot hold.
    """
    wanted = set(scopes)
    allowed = allowed_scopes(kind, role)
    for scope in sorted(wanted) or [""]:
        if scope not in _ALL:
            raise ScopeUnknownError(scope=scope[:64], known=", ".join(Scope))
        if scope not in allowed:
            raise ScopeNotAllowedError(scope=scope, kind=role or kind)
    return tuple(scope for scope in Scope if scope in wanted)


def effective_scopes(
    granted: Iterable[str], kind: PrincipalKind, role: Role | None = None
) -> frozenset[str]:
    """Return what a token allows now: what it was granted, cut to what its principal may hold now.

    `operate` brings every other scope with it.
    """
    allowed = allowed_scopes(kind, role)
    scopes = allowed.intersection(granted)
    return allowed if Scope.OPERATE in scopes else scopes


def require(principal: Principal, scope: str) -> None:
    """Raise `ScopeForbiddenError` (403) unless the principal may do `scope`."""
    if scope not in principal.scopes:
        raise ScopeForbiddenError(scope=scope)
