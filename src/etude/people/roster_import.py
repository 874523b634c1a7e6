"""Importing a roster: learners who are new are made, everybody in it is in the class from now on.

All or nothing, in one transaction: one wrong line and nothing is written. Nobody leaves the class
by being absent from a file, and the same file imported again changes nothing.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Ids, from_us, to_us
from etude.people import audit
from etude.people.bindings import mark_device
from etude.people.class_errors import (
    LineDevicePromisedError,
    LineDeviceUnknownError,
    LineJoinsLaterError,
    LineLearnerTwiceError,
    LineLearnerUnknownError,
    LineNameOfManyError,
    LineOtherNameError,
    RosterInvalidError,
    RosterLineError,
)
from etude.people.classes import get_active_class
from etude.people.holders import hold_device, list_holdings
from etude.people.learners import add_learner
from etude.people.names import can_be_id
from etude.people.records import Actor, Learner, Member, Principal, SchoolClass, Subject
from etude.people.roster_files import RosterFile, RosterLine
from etude.people.rosters import roster_ever, store_members
from etude.people.tables import device, learner
from etude.store import UnitOfWork


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import has done: learners made, learners who joined, devices given to somebody.

    Attributes:
        empty_lines: numbers of the lines in which nothing stands but separators, passed over.
    """

    lines: int
    added: int
    joined: int
    devices: int
    empty_lines: tuple[int, ...] = ()


async def import_roster(
    work: UnitOfWork,
    class_id: str,
    roster: RosterFile,
    *,
    locale: str,
    actor: Actor | Principal,
    now: datetime,
    ids: Ids,
) -> Imported:
    """Bring everybody of a roster into a class, from now on.

    A line with an id is that learner, one without is who is or was in the class by that name, else
    somebody new. A device is given to its line's learner, as `hold_device` does.

    Raises:
        ClassUnknownError, ClassArchivedError: as they say.
        RosterInvalidError: with a part for every wrong line; nothing was written.
    """
    found = await get_active_class(work.connection, class_id)
    desk = await _look(work.connection, found, roster.lines, now)
    wrong = [*roster.wrong, *desk.wrong(roster.lines)]
    if wrong:
        raise invalid(wrong)
    added: list[Learner] = []
    joining: list[Learner] = []
    whose: list[tuple[str, Learner]] = []
    for each in roster.lines:
        who = desk.who(each)
        if who is None:
            who = await add_learner(
                work.connection,
                learner_id=ids.new(),
                display_name=each.name,
                locale=locale,
                now=now,
            )
            added.append(who)
        if who.learner_key not in desk.now:
            joining.append(who)
        if each.device_id is not None and desk.holders.get(each.device_id) != who.learner_key:
            whose.append((each.device_id, who))
    subjects: list[Subject] = [("learner", each.learner_key) for each in added]
    await audit.record_all(work, actor, "learner.added", subjects=subjects, now=now)
    await store_members(work, found, joining, (to_us(now), None), actor=actor, now=now)
    for device_id, who in sorted(whose, key=lambda pair: desk.devices[pair[0]]):
        await _give(work, device_id, desk.devices[device_id], who, actor=actor, now=now)
    return Imported(
        lines=len(roster.lines),
        added=len(added),
        joined=len(joining),
        devices=len(whose),
        empty_lines=roster.empty,
    )


def invalid(wrong: Iterable[RosterLineError]) -> RosterInvalidError:
    """Gather what is wrong with a roster, in order of its lines; the message names each number."""
    parts = sorted(wrong, key=lambda each: each.params["line"])
    numbers = list(dict.fromkeys(str(each.params["line"]) for each in parts))
    return RosterInvalidError(*parts, count=len(numbers), lines=", ".join(numbers))


class _Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of those whom a roster names.

    Attributes:
        by_id: learners by the ids that stand in it.
        by_name: who is or was in the class.
        now: keys of those who are in it.
        later: keys of those who are to join it.
        devices: keys of the devices that stand in it.
        holders: who has these devices now.
        promised: devices that cannot be handed on now: who has them has them until a time that is
            set, or somebody is to have them later.
    """

    by_id: Mapping[str, Learner]
    by_name: Mapping[str, Sequence[Learner]]
    now: frozenset[int]
    later: frozenset[int]
    devices: Mapping[str, int]
    holders: Mapping[str, int]
    promised: frozenset[str]

    def who(self, line: RosterLine) -> Learner | None:
        """Return the learner of a line that is right; None: somebody new."""
        if line.learner_id is not None:
            return self.by_id[line.learner_id]
        return next(iter(self._called(line.name)), None)

    def wrong(self, lines: Sequence[RosterLine]) -> list[RosterLineError]:
        """Return everything that is wrong with lines that could be read."""
        found: list[RosterLineError] = []
        taken: dict[int, int] = {}
        for line in lines:
            error = self._wrong_learner(line)
            who = self.who(line) if error is None else None
            found += self._wrong_device(line, who)
            if error is not None:
                found.append(error)
            if who is None:
                continue
            other = taken.setdefault(who.learner_key, line.line)
            if other != line.line and line.learner_id is None:
                found.append(LineLearnerTwiceError(line=line.line, other=other))
            if who.learner_key in self.later - self.now:
                found.append(LineJoinsLaterError(line=line.line))
        return found

    def _called(self, name: str) -> Sequence[Learner]:
        """Return who is meant by a name: who is in the class, or else who was."""
        called = self.by_name.get(name, ())
        return [each for each in called if each.learner_key in self.now] or called

    def _wrong_learner(self, line: RosterLine) -> RosterLineError | None:
        if line.learner_id is None:
            many = len(self._called(line.name)) > 1
            return LineNameOfManyError(line=line.line) if many else None
        who = self.by_id.get(line.learner_id)
        if who is None:
            return LineLearnerUnknownError(line=line.line)
        return None if who.display_name == line.name else LineOtherNameError(line=line.line)

    def _wrong_device(self, line: RosterLine, who: Learner | None) -> list[RosterLineError]:
        if line.device_id is None:
            return []
        if line.device_id not in self.devices:
            return [LineDeviceUnknownError(line=line.line, device_id=line.device_id[:128])]
        has_it = who is not None and self.holders.get(line.device_id) == who.learner_key
        if line.device_id not in self.promised or has_it:
            return []
        return [LineDevicePromisedError(line=line.line, device_id=line.device_id)]


async def _look(
    connection: AsyncConnection, found: SchoolClass, lines: Sequence[RosterLine], now: datetime
) -> _Desk:
    """Read all that, and keep it as it is: devices before learners, as holdings are stored."""
    devices = await _devices(connection, {each.device_id or "" for each in lines})
    members = await roster_ever(connection, found.class_key)
    learners = await _learners(
        connection,
        ids={each.learner_id or "" for each in lines},
        keys={each.learner_key for each in members},
    )
    by_name: dict[str, list[Learner]] = defaultdict(list)
    for key in {each.learner_key for each in members} & learners.keys():
        by_name[learners[key].display_name].append(learners[key])
    holders, promised = await _holdings(connection, devices, now)
    return _Desk(
        by_id={each.learner_id: each for each in learners.values()},
        by_name=by_name,
        now=frozenset(each.learner_key for each in members if _covers(each, now)),
        later=frozenset(each.learner_key for each in members if each.starts_at > now),
        devices=devices,
        holders=holders,
        promised=promised,
    )


async def _devices(connection: AsyncConnection, device_ids: Collection[str]) -> dict[str, int]:
    """Return the keys of devices, and lock them in the order of their keys."""
    statement = (
        select(device.c.device_id, device.c.device_key)
        .where(device.c.device_id.in_(_usable(device_ids)))
        .order_by(device.c.device_key)
        .with_for_update()
    )
    return {row.device_id: row.device_key for row in await connection.execute(statement)}


async def _learners(
    connection: AsyncConnection, *, ids: Collection[str], keys: Collection[int]
) -> dict[int, Learner]:
    """Return learners who are not erased, and lock them in the order of their keys."""
    statement = (
        select(learner)
        .where(or_(learner.c.learner_id.in_(_usable(ids)), learner.c.learner_key.in_(keys)))
        .order_by(learner.c.learner_key)
        .with_for_update()
    )
    return {
        row.learner_key: Learner(
            learner_key=row.learner_key,
            learner_id=row.learner_id,
            display_name=row.display_name,
            locale=row.locale,
            created_at=from_us(row.created_us),
        )
        for row in await connection.execute(statement)
        if row.erased_us is None
    }


async def _holdings(
    connection: AsyncConnection, devices: Mapping[str, int], now: datetime
) -> tuple[dict[str, int], frozenset[str]]:
    """Return who has these devices now, and which of them cannot be handed on now."""
    holders: dict[str, int] = {}
    promised: set[str] = set()
    for device_id, device_key in devices.items():
        for held in await list_holdings(connection, device_key):
            if held.ends_at is not None and held.ends_at <= now:
                continue
            if held.starts_at <= now:
                holders[device_id] = held.learner_key
            if held.starts_at >= now or held.ends_at is not None:
                promised.add(device_id)
    return holders, frozenset(promised)


async def _give(
    work: UnitOfWork,
    device_id: str,
    device_key: int,
    who: Learner,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    await hold_device(
        work.connection, device_id=device_id, learner_id=who.learner_id, starts_at=now
    )
    subjects: list[Subject] = [("device", device_key), ("learner", who.learner_key)]
    detail = {"device": device_key, "learner": who.learner_key}
    await audit.record_all(work, actor, "device.held", subjects=subjects, now=now, detail=detail)
    await mark_device(work, device_key, now)


def _usable(ids: Collection[str]) -> list[str]:
    """Return the texts that can be ids at all: a database is not asked for others."""
    return [each for each in ids if each and can_be_id(each)]


def _covers(member: Member, now: datetime) -> bool:
    return member.starts_at <= now and (member.ends_at is None or now < member.ends_at)
