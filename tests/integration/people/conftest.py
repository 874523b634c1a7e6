"""A small school on a migrated database, SQLite and PostgreSQL."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from etude.clock import RandomIds
from etude.people import devices, holders, learners, staff, tokens
from etude.people.records import Device, Holding, Learner, PrincipalKind, Role, Staff
from etude.people.tokens import NewToken, TokenRequest
from etude.store import Database

START = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)


@dataclass
class School:
    """Stores people one transaction each; `now` is the time that counts as now."""

    database: Database
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    now: datetime = START
    ids: RandomIds = field(default_factory=RandomIds)
    two: Any = None

    def learner(self, name: str = "小提琴手") -> Learner:
        async def add() -> Learner:
            async with self.database.transaction() as work:
                return await learners.add_learner(
                    work.connection,
                    learner_id=self.ids.new(),
                    display_name=name,
                    locale="zh-CN",
                    now=self.now,
                )

        return self.run(add())

    def device(self, device_id: str = "toy-1") -> Device:
        async def add() -> Device:
            async with self.database.transaction() as work:
                return await devices.add_device(
                    work.connection, device_id=device_id, name="Toy", now=self.now
                )

        return self.run(add())

    def member(self, staff_id: str = "op", role: Role = "operator") -> Staff:
        async def add() -> Staff:
            async with self.database.transaction() as work:
                return await staff.add_staff(
                    work.connection,
                    staff_id=staff_id,
                    name="Somebody",
                    role=role,
                    password_hash="x",
                    now=self.now,
                )

        return self.run(add())

    def token(
        self,
        kind: PrincipalKind,
        principal_id: str,
        *scopes: str,
        expires_at: datetime | None = None,
        label: str | None = None,
    ) -> NewToken:
        wanted = TokenRequest(
            kind=kind,
            principal_id=principal_id,
            scopes=scopes or ("sessions:write",),
            expires_at=expires_at,
            label=label,
        )

        async def add() -> NewToken:
            async with self.database.transaction() as work:
                return await tokens.create_token(work.connection, wanted, self.now)

        return self.run(add())

    def hold(
        self, device: Device, learner: Learner, starts_at: datetime, ends_at: datetime | None = None
    ) -> Holding:
        async def add() -> Holding:
            async with self.database.transaction() as work:
                return await holders.hold_device(
                    work.connection,
                    device_id=device.device_id,
                    learner_id=learner.learner_id,
                    starts_at=starts_at,
                    ends_at=ends_at,
                )

        return self.run(add())

    def holder_at(self, device: Device, at: datetime) -> int | None:
        async def look() -> int | None:
            async with self.database.read() as connection:
                return await holders.learner_key_at(connection, device.device_key, at)

        return self.run(look())


@pytest.fixture
def school(database: Database, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> School:
    return School(database, run)
