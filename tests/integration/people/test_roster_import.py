import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from etude.clock import RandomIds
from etude.files import armed
from etude.people.changes import marks
from etude.people.class_errors import (
    ClassArchivedError,
    ClassUnknownError,
    RosterInvalidError,
)
from etude.people.holders import hold_device
from etude.people.learners import add_learner
from etude.people.records import HOST
from etude.people.roster_files import read_roster
from etude.people.roster_import import Imported, import_roster
from etude.people.roster_records import ROSTERS
from etude.store import Database
from etude.testing.class_desk import ClassDesk

Run = Callable[[Coroutine[Any, Any, Any]], Any]
DAY = timedelta(days=1)


class KilledError(BaseException):
    pass


@pytest.fixture
def desk(database: Database, run: Run) -> ClassDesk:
    return ClassDesk(database, run)


def refused(desk: ClassDesk, data: str) -> list[tuple[str, str | float]]:
    """Codes and lines of what is wrong with a roster; that nothing changed is checked."""
    before = desk.everything()
    with pytest.raises(RosterInvalidError) as caught:
        desk.load(data)
    assert desk.everything() == before
    assert not any("learner_id" in part.params for part in caught.value.parts)
    return [(part.code, part.params["line"]) for part in caught.value.parts]


def test_a_roster_is_imported_and_again_changes_nothing(desk: ClassDesk) -> None:
    """New learners by name, known ones by id, toys in their hands; the same file is a no-op."""
    data = "name,id,device_id\n王小明,,toy-1\nAnna,anna,toy-2\n李雷\n"
    assert desk.load(data) == Imported(lines=3, added=2, joined=3, devices=2)
    assert desk.names() == ["王小明", "Anna", "李雷"]
    assert (desk.devices_of("王小明"), desk.devices_of("Anna")) == (["toy-1"], ["toy-2"])
    assert desk.told() == desk.changed()
    desk.later()
    before = desk.everything()
    assert desk.load(data) == Imported(lines=3, added=0, joined=0, devices=0)
    assert desk.everything() == before
    assert desk.load(data + "Ben,ben\n").joined == 1


def test_the_same_file_twice_at_once_is_once(desk: ClassDesk) -> None:
    """Two operators, or one who is impatient: nobody is made twice."""

    async def load() -> Imported:
        async with desk.database.transaction() as work:
            return await import_roster(
                work,
                "3b",
                read_roster(b"Cleo\nDora\n"),
                locale="en",
                actor=HOST,
                now=desk.clock.now(),
                ids=RandomIds(),
            )

    async def both() -> list[Imported]:
        return await asyncio.gather(load(), load())

    done = desk.run(both())
    assert sorted(each.added for each in done) == [0, 2]
    assert desk.names() == ["Cleo", "Dora"]


def test_a_name_is_who_is_in_the_class_or_was(desk: ClassDesk) -> None:
    """Who comes back is the same learner; who has the name elsewhere is another."""
    desk.load("Cleo\nAnna\n")
    assert len(desk.people()) == 4  # this Anna is not the one who was there
    cleo = desk.learner("Cleo")
    desk.later()
    desk.leave(cleo.learner_id)
    assert desk.load("Cleo\n") == Imported(lines=1, added=0, joined=1, devices=0)
    assert len(desk.people()) == 4
    assert [name for name, _, _ in desk.roster(history=True)] == ["Cleo", "Anna", "Cleo"]


def test_every_wrong_line_is_told_and_nothing_is_written(desk: ClassDesk) -> None:
    """What the file alone shows, and what only the database does, in order of the lines."""
    desk.join("ben", desk.start + DAY)
    data = (
        "name,id,device_id\n"
        "New,,toy-9\n"  # 2: no such toy
        ",anna\n"  # 3: no name
        "Ben,anna\n"  # 4: anna is not called so
        "Who,nobody\n"  # 5: no such learner
        "Ben,ben\n"  # 6: joins tomorrow
        "Fine\n"
        "Fine\n"  # 8: twice
    )
    assert refused(desk, data) == [
        ("ROSTER_LINE_DEVICE_UNKNOWN", 2),
        ("ROSTER_LINE_NAME", 3),
        ("ROSTER_LINE_OTHER_NAME", 4),
        ("ROSTER_LINE_LEARNER_UNKNOWN", 5),
        ("ROSTER_LINE_JOINS_LATER", 6),
        ("ROSTER_LINE_NAME_TWICE", 8),
    ]


def test_however_many_lines_are_wrong_each_number_is_named(desk: ClassDesk) -> None:
    """In the message itself: a terminal shows only some of the parts."""
    with pytest.raises(RosterInvalidError) as caught:
        desk.load("x,y,z,w\n" * 100)
    assert caught.value.params["count"] == 100
    assert str(caught.value.params["lines"]).endswith("98, 99, 100")


def test_who_is_meant_must_be_clear(desk: ClassDesk) -> None:
    """Two of one name in the class need ids; of several who were, too; of those in it, one."""
    desk.load("Cleo\n")
    twin = desk.work(
        lambda work: add_learner(
            work.connection,
            learner_id="twin",
            display_name="Cleo",
            locale="en",
            now=desk.clock.now(),
        )
    )
    desk.join(twin.learner_id)
    assert refused(desk, "Cleo\n") == [("ROSTER_LINE_NAME_OF_MANY", 1)]
    first = desk.learner("Cleo").learner_id
    assert desk.load(f"Cleo,{first}\nCleo,twin\n").joined == 0
    desk.later()
    desk.leave("twin")
    assert desk.load("Cleo\n").joined == 0
    desk.leave(first)
    assert refused(desk, "Cleo\n") == [("ROSTER_LINE_NAME_OF_MANY", 1)]


def test_a_toy_is_handed_on_unless_it_is_promised(desk: ClassDesk) -> None:
    """An open holding ends, as with `hold`; one that is dated stays, and the line is told."""

    def hold(device_id: str, learner_id: str, days: int, until: int | None = None) -> None:
        desk.work(
            lambda work: hold_device(
                work.connection,
                device_id=device_id,
                learner_id=learner_id,
                starts_at=desk.start + days * DAY,
                ends_at=None if until is None else desk.start + until * DAY,
            )
        )

    hold("toy-1", "anna", -3)
    hold("toy-2", "anna", -3, 3)
    assert desk.load("Ben,ben,toy-1\n").devices == 1
    assert desk.devices_of("Ben") == ["toy-1"]
    assert refused(desk, "Ben,ben,toy-2\n") == [("ROSTER_LINE_DEVICE_PROMISED", 1)]
    assert desk.load("Anna,anna,toy-2\n").devices == 0  # has it until then


def test_no_roster_for_a_class_that_does_not_count(desk: ClassDesk) -> None:
    """Archived or unknown: nobody is made."""
    before = desk.people()
    desk.change(archived=True)
    for class_id, error in (("3b", ClassArchivedError), ("none", ClassUnknownError)):
        with pytest.raises(error):
            desk.load("Cleo\n", class_id)
    assert desk.people() == before


def test_a_class_of_45_is_a_small_change(desk: ClassDesk) -> None:
    """One mark and one item of below 150 bytes a learner; of one who joins then, one more."""
    desk.load("".join(f"Learner {number}\n" for number in range(45)))
    told = desk.told()
    assert len(told) == 45
    assert max(len(msgspec.json.encode(each)) for each in told.values()) < 150
    assert len([m for m in desk.read(marks) if m.kind == ROSTERS]) == 45
    desk.join("anna")
    assert len([m for m in desk.read(marks) if m.kind == ROSTERS]) == 46


@pytest.mark.parametrize(
    "instant", ["people.class.joined", "people.holder.previous_closed", "people.change.marked"]
)
def test_a_kill_in_an_import_leaves_nothing(desk: ClassDesk, instant: str) -> None:
    """Neither learners nor places nor toys in hands, and the next run is whole."""

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    before, data = desk.everything(), "Cleo,,toy-1\nDora\n"
    with armed(kill), pytest.raises(KilledError):
        desk.load(data)
    assert desk.everything() == before
    assert desk.load(data) == Imported(lines=2, added=2, joined=2, devices=1)
