"""A class at a database: for tests of rosters and of what is assigned to classes."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people import audit, roster_feed
from etude.people.changes import marks
from etude.people.classes import ClassChange, change_class, create_class, get_class
from etude.people.devices import add_device
from etude.people.holders import holdings_of_learner
from etude.people.learners import add_learner, list_learners
from etude.people.records import HOST, Learner, Member, Role, SchoolClass
from etude.people.roster_files import read_roster
from etude.people.roster_import import Imported, import_roster
from etude.people.roster_records import ROSTERS, LearnerClasses
from etude.people.rosters import join_class, leave_class, roster_at, roster_ever
from etude.people.staff import add_staff
from etude.store import Database, UnitOfWork
from etude.testing.clocks import CountingIds, ManualClock

Result = TypeVar("Result")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
_CHANGES: Final = ("class.", "learner.added", "device.held")
_STAFF: Final[tuple[tuple[str, Role], ...]] = (("li", "teacher"), ("wu", "teacher"))


class ClassDesk:
    """An operator at a database: class `3b`, learners `anna` and `ben`, two toys, two teachers."""

    def __init__(self, database: Database, run: Run) -> None:
        """Work on an open, migrated database; `run` runs a coroutine on its loop."""
        self.database = database
        self.run = run
        self.clock = ManualClock()
        self.start = self.clock.now()
        self.ids = CountingIds("l")
        self.work(self._furnish)

    async def _furnish(self, work: UnitOfWork) -> None:
        now = self.clock.now()
        for name in ("anna", "ben"):
            await add_learner(
                work.connection, learner_id=name, display_name=name.title(), locale="en", now=now
            )
        for device_id in ("toy-1", "toy-2"):
            await add_device(work.connection, device_id=device_id, name="Toy", now=now)
        for staff_id, role in _STAFF:
            await add_staff(
                work.connection,
                staff_id=staff_id,
                name="Somebody",
                role=role,
                password_hash="x",  # noqa: S106 - nobody signs in
                now=now,
            )
        await create_class(work, class_id="3b", name="三年级二班", actor=HOST, now=now)

    def work(self, act: Callable[[UnitOfWork], Awaitable[Result]]) -> Result:
        """Await `act(work)` in a transaction."""

        async def main() -> Result:
            async with self.database.transaction() as work:
                return await act(work)

        found: Result = self.run(main())
        return found

    def read(self, act: Callable[[AsyncConnection], Awaitable[Result]]) -> Result:
        """Await `act(connection)`."""

        async def main() -> Result:
            async with self.database.read() as connection:
                return await act(connection)

        found: Result = self.run(main())
        return found

    def later(self, days: float = 1) -> datetime:
        """Let days pass; return what time it is."""
        self.clock.advance(days * 86_400)
        return self.clock.now()

    def change(self, class_id: str = "3b", **change: str | bool | None) -> SchoolClass:
        """Rename, archive or take back a class."""
        return self.work(
            lambda work: change_class(
                work,
                class_id,
                msgspec.convert(change, ClassChange),
                actor=HOST,
                now=self.clock.now(),
            )
        )

    def join(
        self,
        learner_id: str,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        class_id: str = "3b",
    ) -> Member:
        """Put a learner into a class, from now."""
        return self.work(
            lambda work: join_class(
                work,
                class_id,
                learner_id,
                starts_at=starts_at or self.clock.now(),
                ends_at=ends_at,
                actor=HOST,
                now=self.clock.now(),
            )
        )

    def leave(self, learner_id: str, at: datetime | None = None, class_id: str = "3b") -> None:
        """Take a learner out of a class, now."""
        self.work(
            lambda work: leave_class(
                work,
                class_id,
                learner_id,
                at=at or self.clock.now(),
                actor=HOST,
                now=self.clock.now(),
            )
        )

    def load(self, data: str, class_id: str = "3b") -> Imported:
        """Import a roster."""
        return self.work(
            lambda work: import_roster(
                work,
                class_id,
                read_roster(data.encode()),
                locale="zh-CN",
                actor=HOST,
                now=self.clock.now(),
                ids=self.ids,
            )
        )

    def everything(self) -> object:
        """All that an import could change."""
        return self.roster(history=True), self.people(), self.audited(), len(self.read(marks))

    def roster(
        self, at: datetime | None = None, class_id: str = "3b", *, history: bool = False
    ) -> list[tuple[str, datetime, datetime | None]]:
        """Who is in a class at a time, and when; or everybody who ever was."""

        async def look(connection: AsyncConnection) -> tuple[Member, ...]:
            found = await get_class(connection, class_id)
            if history:
                return await roster_ever(connection, found.class_key)
            return await roster_at(connection, found.class_key, at or self.clock.now())

        members = self.read(look)
        return [(each.display_name, each.starts_at, each.ends_at) for each in members]

    def names(self, at: datetime | None = None, class_id: str = "3b") -> list[str]:
        """Who is in a class at a time."""
        return [name for name, _, _ in self.roster(at, class_id)]

    def people(self) -> list[tuple[str, str]]:
        """Ids and names of all learners."""
        page = self.read(lambda connection: list_learners(connection, limit=200))
        return [(each.learner_id, each.display_name) for each in page.items]

    def learner(self, name: str) -> Learner:
        """The first learner with a name."""
        page = self.read(lambda connection: list_learners(connection, limit=200))
        return next(each for each in page.items if each.display_name == name)

    def devices_of(self, name: str) -> list[str]:
        """Which devices a learner has until further notice."""
        key = self.learner(name).learner_key
        held = self.read(lambda connection: holdings_of_learner(connection, key))
        return [each.device_id for each in held if each.ends_at is None]

    def audited(self) -> list[str]:
        """Actions on classes, learners, holdings, in order."""
        page = self.read(lambda connection: audit.list_audit(connection, limit=200))
        return [entry.action for entry in page.items if entry.action.startswith(_CHANGES)]

    def told(self) -> dict[int, LearnerClasses]:
        """What a gateway that links now is told, by learner."""
        (source,) = roster_feed.change_sources(self.clock)
        return _by_learner(self.read(source.everything))

    def changed(self) -> dict[int, LearnerClasses]:
        """What gateways are told about everybody who was ever marked."""
        (source,) = roster_feed.change_sources(self.clock)
        keys = sorted({mark.subject_key for mark in self.read(marks) if mark.kind == ROSTERS})
        return _by_learner(self.read(lambda connection: source.about(connection, keys)))


def _by_learner(told: Sequence[msgspec.Struct]) -> dict[int, LearnerClasses]:
    items = msgspec.convert(msgspec.to_builtins(told), list[LearnerClasses])
    return {each.learner_key: each for each in items}
