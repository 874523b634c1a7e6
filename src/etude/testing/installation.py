"""A small installation for black-box tests: learners, toys, and a token for each who may ask.

Everything else about it is looked at from outside, over HTTP.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import SystemClock
from etude.net import tls_context
from etude.people.devices import add_device
from etude.people.holders import hold_device
from etude.people.learners import add_learner
from etude.people.records import PrincipalKind
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.store import Database
from etude.testing.server import ServerProcess

HELD_SINCE: Final = timedelta(days=90)
PATIENCE_S: Final = 60.0
_PRACTICE: Final = (Scope.SESSIONS_WRITE, Scope.SESSIONS_READ)
_SENDERS: Final[tuple[tuple[PrincipalKind, str, tuple[Scope, ...]], ...]] = (
    ("device", "toy-1", _PRACTICE),
    ("device", "toy-2", _PRACTICE),
    ("learner", "anna", (*_PRACTICE, Scope.CLASSROOMS_WRITE)),
    ("learner", "ben", (*_PRACTICE, Scope.CLASSROOMS_WRITE)),
    ("service", "gateway", (*_PRACTICE, Scope.UPLOAD_ON_BEHALF)),
    ("service", "operator", (Scope.OPERATE,)),
)


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """A data folder with a migrated database, and the tokens of those who use it.

    `toy-1` has been held by `anna` for 90 days, `toy-2` by `ben`; `operator` may do everything.
    """

    data: Path
    database_url: str
    tokens: Mapping[str, str]

    def client(self, url: str, name: str | None = None) -> httpx2.Client:
        """Return a client of the server at `url` with the token of `name`; without one, none."""
        headers = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx2.Client(
            base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False, verify=tls_context()
        )


class Served(NamedTuple):
    """A running server and the installation that it serves."""

    server: ServerProcess
    installation: Installation

    def client(self, name: str | None = None) -> httpx2.Client:
        """Return a client with the token of `name`; without one, none."""
        return self.installation.client(self.server.url, name)


def furnish(data: Path, database_url: str) -> Installation:
    """Add learners, toys, holders and tokens to a migrated database."""
    return Installation(
        data=data, database_url=database_url, tokens=asyncio.run(_furnished(database_url))
    )


async def _furnished(database_url: str) -> dict[str, str]:
    now = SystemClock().now()
    async with await Database.open(database_url) as database, database.transaction() as work:
        for learner, toy in (("anna", "toy-1"), ("ben", "toy-2")):
            await _add(work.connection, learner, toy, now)
        return {
            name: (
                await create_token(
                    work.connection,
                    TokenRequest(kind=kind, principal_id=name, scopes=scopes),
                    now,
                )
            ).text
            for kind, name, scopes in _SENDERS
        }


async def _add(connection: AsyncConnection, learner: str, toy: str, now: datetime) -> None:
    await add_learner(
        connection, learner_id=learner, display_name=learner.title(), locale="en", now=now
    )
    await add_device(connection, device_id=toy, name=toy, now=now)
    await hold_device(connection, device_id=toy, learner_id=learner, starts_at=now - HELD_SINCE)
