"""People, devices and tokens as values. Keys are the database's; ids are what the world sees."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

PrincipalKind = Literal["device", "learner", "staff", "service"]
Role = Literal["operator", "teacher"]
ActorKind = Literal["device", "learner", "staff", "service", "host", "publisher"]
SubjectKind = Literal[
    "device", "learner", "staff", "service", "token", "session", "manifest", "class"
]

Item = TypeVar("Item")


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking: resolved from a token, and what sessions belong to (`docs/rules.md 4`).

    `token_key` is None for a device that shows the credential it got from the gateway.
    """

    kind: PrincipalKind
    key: int
    id: str
    scopes: frozenset[str]
    token_key: int | None


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who did something, for the audit log. `token_key` is None without a token."""

    kind: ActorKind
    key: int
    token_key: int | None = None

    @classmethod
    def of(cls, principal: Principal) -> "Actor":
        """The principal as an actor."""
        return cls(kind=principal.kind, key=principal.key, token_key=principal.token_key)


# Whoever has a shell on the machine that holds the data folder.
HOST: Final = Actor(kind="host", key=0)
# Whoever has the publish token: another installation, which publishes its courses here.
PUBLISHER: Final = Actor(kind="publisher", key=0)


# Whom or what an audit entry is about: kind and surrogate key.
Subject: TypeAlias = tuple[SubjectKind, int]


class Learner(msgspec.Struct, frozen=True, kw_only=True):
    """A person who practises."""

    learner_key: int
    learner_id: str
    display_name: str
    locale: str
    created_at: datetime


class Staff(msgspec.Struct, frozen=True, kw_only=True):
    """A person who runs the installation (operator) or classes (teacher)."""

    staff_key: int
    staff_id: str
    name: str
    role: Role
    created_at: datetime


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A toy, phone or other thing that records sessions."""

    device_key: int
    device_id: str
    name: str
    created_at: datetime


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A program that acts for others."""

    service_key: int
    service_id: str


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A learner has a device from `starts_at` until just before `ends_at` (None: still).

    `learner_id` is None when the learner was erased; the time stays, so that a session of theirs
    that arrives late is refused.
    """

    device_id: str
    learner_key: int
    learner_id: str | None
    starts_at: datetime
    ends_at: datetime | None


class SchoolClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of learners. Archived, it counts no more."""

    class_key: int
    class_id: str
    name: str
    grade: str | None
    created_at: datetime
    archived_at: datetime | None


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A learner is in a class from `starts_at` until just before `ends_at` (None: still)."""

    learner_key: int
    learner_id: str
    display_name: str
    starts_at: datetime
    ends_at: datetime | None


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it may be shown: never the secret nor its hash."""

    token_key: int
    public_id: str
    kind: PrincipalKind
    principal_id: str
    label: str | None
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to whom, when. Keys and code words only: no names, no texts."""

    audit_key: int
    at: datetime
    actor: Actor
    action: str
    subject: Subject
    detail: Mapping[str, int | str]


class Page(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """A part of a list, oldest first; `next_cursor` is None at its end."""

    items: tuple[Item, ...]
    next_cursor: str | None
