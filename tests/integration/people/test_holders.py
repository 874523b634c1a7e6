import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from etude.people import holders
from etude.people.errors import (
    DeviceUnknownError,
    HolderIntervalError,
    HolderMissingError,
    HolderOverlapError,
    LearnerUnknownError,
)
from etude.people.tables import device_holder

MONDAY = datetime(2026, 9, 7, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
INSTANT = timedelta(microseconds=1)


def test_a_device_belongs_to_its_holder_from_start_until_just_before_the_end(school: Any) -> None:
    """Holdings are half-open: the start belongs to them, the end to whoever comes next."""
    device, ada, ben = school.device(), school.learner("Ada"), school.learner("Ben")
    school.hold(device, ada, MONDAY, MONDAY + HOUR)
    school.hold(device, ben, MONDAY + HOUR, MONDAY + 2 * HOUR)
    assert school.holder_at(device, MONDAY - INSTANT) is None
    assert school.holder_at(device, MONDAY) == ada.learner_key
    assert school.holder_at(device, MONDAY + HOUR - INSTANT) == ada.learner_key
    assert school.holder_at(device, MONDAY + HOUR) == ben.learner_key
    assert school.holder_at(device, MONDAY + 2 * HOUR) is None


def test_handing_a_device_on_ends_the_open_holding(school: Any) -> None:
    """Whoever had the device until now has it until the other one gets it."""
    device, ada, ben = school.device(), school.learner("Ada"), school.learner("Ben")
    school.hold(device, ada, MONDAY)
    school.hold(device, ben, MONDAY + HOUR)
    assert school.holder_at(device, MONDAY + HOUR - INSTANT) == ada.learner_key
    assert school.holder_at(device, MONDAY + 1000 * HOUR) == ben.learner_key


def test_an_overlap_names_the_other_holder_and_changes_nothing(school: Any) -> None:
    """A conflict says who has the device and when; the open holding stays open."""
    device, ada, ben = school.device(), school.learner("Ada"), school.learner("Ben")
    school.hold(device, ada, MONDAY + HOUR, MONDAY + 2 * HOUR)
    school.hold(device, ben, MONDAY - HOUR, MONDAY)
    with pytest.raises(HolderOverlapError) as refused:
        school.hold(device, ben, MONDAY, MONDAY + HOUR + INSTANT)
    assert refused.value.params == {
        "device_id": "toy-1",
        "holder": ada.learner_id,
        "starts_at": "2026-09-07T09:00:00+00:00",
        "ends_at": "2026-09-07T10:00:00+00:00",
    }
    assert school.holder_at(device, MONDAY) is None


def test_an_open_holding_that_begins_later_is_in_the_way(school: Any) -> None:
    """Only an open holding that began before is handed on; a later one is a conflict."""
    device, ada, ben = school.device(), school.learner("Ada"), school.learner("Ben")
    school.hold(device, ada, MONDAY)
    with pytest.raises(HolderOverlapError):
        school.hold(device, ben, MONDAY)
    with pytest.raises(HolderOverlapError):
        school.hold(device, ben, MONDAY - HOUR)
    school.hold(device, ben, MONDAY - HOUR, MONDAY)
    assert school.holder_at(device, MONDAY) == ada.learner_key


def test_two_devices_do_not_disturb_each_other(school: Any) -> None:
    """One learner may have two devices at once, and a conflict is one device's."""
    first, second, ada = school.device("a"), school.device("b"), school.learner("Ada")
    school.hold(first, ada, MONDAY)
    school.hold(second, ada, MONDAY)
    assert school.holder_at(first, MONDAY) == school.holder_at(second, MONDAY) == ada.learner_key


@pytest.mark.parametrize("length", [timedelta(0), -HOUR])
def test_an_empty_time_is_refused(school: Any, length: timedelta) -> None:
    """A holding ends after it starts."""
    device, ada = school.device(), school.learner("Ada")
    with pytest.raises(HolderIntervalError):
        school.hold(device, ada, MONDAY, MONDAY + length)


def test_giving_a_device_back_ends_the_open_holding(school: Any) -> None:
    """After its release nobody has the device; releasing it again is a conflict."""
    device, ada = school.device(), school.learner("Ada")
    school.hold(device, ada, MONDAY)

    async def release(at: datetime) -> Any:
        async with school.database.transaction() as work:
            return await holders.release_device(work.connection, device.device_id, at)

    ended = school.run(release(MONDAY + HOUR))
    assert (ended.learner_id, ended.ends_at) == (ada.learner_id, MONDAY + HOUR)
    assert school.holder_at(device, MONDAY) == ada.learner_key
    assert school.holder_at(device, MONDAY + HOUR) is None
    with pytest.raises(HolderMissingError):
        school.run(release(MONDAY + 2 * HOUR))


def test_holdings_are_listed_in_order_of_time(school: Any) -> None:
    """A device's history reads from the first holder to the last, whenever they were entered."""
    device, ada, ben = school.device(), school.learner("Ada"), school.learner("Ben")
    school.hold(device, ada, MONDAY + HOUR)
    school.hold(device, ben, MONDAY, MONDAY + HOUR)

    async def listed() -> Any:
        async with school.database.read() as connection:
            return (
                await holders.list_holdings(connection, device.device_key),
                await holders.holdings_of_learner(connection, ada.learner_key),
            )

    of_device, of_ada = school.run(listed())
    assert [one.learner_id for one in of_device] == [ben.learner_id, ada.learner_id]
    assert [(one.device_id, one.ends_at) for one in of_ada] == [("toy-1", None)]


def test_a_device_or_learner_that_is_not_there_is_named(school: Any) -> None:
    """Nobody can hold what is not registered, and nobody unknown can hold anything."""
    device, ada = school.device(), school.learner("Ada")

    async def hold(device_id: str, learner_id: str) -> None:
        async with school.database.transaction() as work:
            await holders.hold_device(
                work.connection, device_id=device_id, learner_id=learner_id, starts_at=MONDAY
            )

    with pytest.raises(DeviceUnknownError):
        school.run(hold("none", ada.learner_id))
    with pytest.raises(LearnerUnknownError):
        school.run(hold(device.device_id, "none"))


def test_two_who_take_a_device_at_once_do_not_both_get_it(school: Any) -> None:
    """Writers at the same time are put in order: no instant ever has two holders."""
    device = school.device()
    people = [school.learner(str(number)) for number in range(6)]

    async def take(learner_id: str) -> bool:
        try:
            async with school.database.transaction() as work:
                await holders.hold_device(
                    work.connection,
                    device_id=device.device_id,
                    learner_id=learner_id,
                    starts_at=MONDAY,
                    ends_at=MONDAY + HOUR,
                )
        except HolderOverlapError:
            return False
        return True

    async def race() -> list[bool]:
        return await asyncio.gather(*(take(one.learner_id) for one in people))

    assert sorted(school.run(race())) == [False] * 5 + [True]


_HOURS = st.integers(0, 12)
_WISHES = st.lists(
    st.tuples(st.integers(0, 1), _HOURS, st.one_of(st.none(), _HOURS)), min_size=1, max_size=8
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(wishes=_WISHES)
def test_no_instant_ever_has_two_holders(
    school: Any, wishes: list[tuple[int, int, int | None]]
) -> None:
    """Whatever is asked for in whatever order, each hour has the holder of a plain model."""
    device, people = _of_two(school)
    model: dict[int, int] = {}  # hour -> learner; the last hour stands for ever after
    opened: int | None = None  # when the open holding began
    for who, start, end in wishes:
        hours = set(range(start, 13 if end is None else end))
        inherited = set(range(start, 13)) if opened is not None and opened < start else set()
        legal = bool(hours) and not (hours & (model.keys() - inherited))
        try:
            school.hold(
                device,
                people[who],
                MONDAY + start * HOUR,
                None if end is None else MONDAY + end * HOUR,
            )
        except (HolderOverlapError, HolderIntervalError):
            assert not legal
            continue
        assert legal
        for hour in inherited:
            model.pop(hour, None)
        model |= dict.fromkeys(hours, people[who].learner_key)
        opened = start if end is None else None if inherited else opened
    for hour in range(13):
        assert school.holder_at(device, MONDAY + hour * HOUR) == model.get(hour)
    _assert_disjoint(school, device.device_key)


def _of_two(school: Any) -> Any:
    """One device and two learners for all examples; the holdings of the last one removed."""
    if school.two is None:
        school.two = (school.device(), [school.learner("Ada"), school.learner("Ben")])

    async def clear() -> None:
        async with school.database.transaction() as work:
            await work.connection.execute(delete(device_holder))

    school.run(clear())
    return school.two


def _assert_disjoint(school: Any, device_key: int) -> None:
    async def rows() -> Any:
        async with school.database.read() as connection:
            statement = (
                select(device_holder.c.starts_us, device_holder.c.ends_us)
                .where(device_holder.c.device_key == device_key)
                .order_by(device_holder.c.starts_us)
            )
            return (await connection.execute(statement)).all()

    stored = school.run(rows())
    for (_, ends_us), (starts_us, _) in itertools.pairwise(stored):
        assert ends_us is not None
        assert ends_us <= starts_us
