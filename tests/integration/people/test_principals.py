from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select

from etude.people import devices, learners, services, staff
from etude.people.errors import (
    DeviceExistsError,
    DeviceUnknownError,
    IdInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    StaffExistsError,
    StaffUnknownError,
)
from etude.people.tables import device, learner


def reading(school: Any, function: Any, *arguments: Any, **named: Any) -> Any:
    async def read() -> Any:
        async with school.database.read() as connection:
            return await function(connection, *arguments, **named)

    return school.run(read())


def writing(school: Any, function: Any, *arguments: Any, **named: Any) -> Any:
    async def write() -> Any:
        async with school.database.transaction() as work:
            return await function(work.connection, *arguments, **named)

    return school.run(write())


def test_a_learner_is_found_by_id_and_key_as_stored(school: Any) -> None:
    """What was stored is what is read, with an aware time."""
    school.now += timedelta(microseconds=1)
    ada = school.learner("爱达 O'Neill 🎻")
    assert reading(school, learners.get_learner, ada.learner_id) == ada
    assert reading(school, learners.get_learner_by_key, ada.learner_key) == ada
    assert ada.created_at == school.now


def test_a_learner_who_is_not_there_is_unknown(school: Any) -> None:
    """An id that nobody has is 404, by id and by key."""
    with pytest.raises(LearnerUnknownError):
        reading(school, learners.get_learner, "nobody")
    with pytest.raises(LearnerUnknownError):
        reading(school, learners.get_learner_by_key, 99)


def test_a_buried_learner_is_gone_for_ever(school: Any) -> None:
    """A tombstone answers 410 by id and by key, is in no list, and holds neither name nor id."""
    ada, ben = school.learner("Ada"), school.learner("Ben")
    writing(school, learners.bury_learner, ada.learner_key, school.now)
    with pytest.raises(LearnerErasedError):
        reading(school, learners.get_learner, ada.learner_id)
    with pytest.raises(LearnerErasedError):
        reading(school, learners.get_learner_by_key, ada.learner_key)
    with pytest.raises(LearnerErasedError):
        writing(school, learners.bury_learner, ada.learner_key, school.now)
    assert reading(school, learners.list_learners).items == (ben,)

    async def row(connection: Any) -> Any:
        return (await connection.execute(select(learner).order_by("learner_key"))).first()

    kept = reading(school, row)
    assert (kept.learner_id, kept.display_name, kept.locale, kept.created_us) == (None,) * 4
    assert kept.erased_us is not None


def test_a_surrogate_key_is_never_given_twice(school: Any) -> None:
    """Even after its row is gone a key points at nobody else: the audit log relies on it."""
    last = school.device("a")
    writing(school, lambda connection: connection.execute(delete(device)))
    assert school.device("b").device_key > last.device_key


def test_lists_of_learners_come_in_pages_without_gaps(school: Any) -> None:
    """Every learner is on one page exactly, also when one is erased between two pages."""
    everyone = [school.learner(str(number)) for number in range(5)]
    first = reading(school, learners.list_learners, limit=2)
    writing(school, learners.bury_learner, everyone[0].learner_key, school.now)
    second = reading(school, learners.list_learners, limit=2, cursor=first.next_cursor)
    third = reading(school, learners.list_learners, limit=2, cursor=second.next_cursor)
    assert [*first.items, *second.items, *third.items] == everyone
    assert third.next_cursor is None


def test_a_device_is_registered_once(school: Any) -> None:
    """The id of a device is taken for ever by the first who registers it."""
    toy = school.device("AA:BB:CC:00:11:22")
    assert reading(school, devices.get_device, "AA:BB:CC:00:11:22") == toy
    with pytest.raises(DeviceExistsError):
        school.device("AA:BB:CC:00:11:22")
    assert reading(school, devices.list_devices).items == (toy,)
    with pytest.raises(DeviceUnknownError):
        reading(school, devices.get_device, "aa:bb:cc:00:11:22")


def test_staff_sign_in_under_one_name_each(school: Any) -> None:
    """A sign-in name is unique; operators are counted, so that the first one is made once."""
    assert reading(school, staff.count_operators) == 0
    op = school.member("op")
    li = school.member("li@school.example", "teacher")
    assert reading(school, staff.count_operators) == 1
    assert reading(school, staff.get_staff, "op") == op
    assert reading(school, staff.list_staff).items == (op, li)
    with pytest.raises(StaffExistsError):
        school.member("op")


@pytest.mark.parametrize("staff_id", ["", " op", "op op", "-op", "李", "x" * 65, "a\x00", "a\n"])
def test_a_sign_in_name_is_plain(school: Any, staff_id: str) -> None:
    """A sign-in name that is hard to type or to tell apart is refused."""
    with pytest.raises(IdInvalidError):
        school.member(staff_id)


def test_a_password_is_replaced_by_name(school: Any) -> None:
    """The stored hash is the last one set; an unknown name has none."""
    school.member("op")
    writing(school, staff.set_password, "op", "new hash")
    assert reading(school, staff.password_hash_of, "op") == "new hash"
    assert reading(school, staff.password_hash_of, "nobody") is None
    with pytest.raises(StaffUnknownError):
        writing(school, staff.set_password, "nobody", "hash")


def test_a_service_is_made_once(school: Any) -> None:
    """Naming a service twice is the same service."""
    first = writing(school, services.ensure_service, "gateway", school.now)
    assert writing(school, services.ensure_service, "gateway", school.now) == first


def test_the_database_itself_refuses_half_a_tombstone(school: Any) -> None:
    """A learner's row is whole or a tombstone, whoever writes it."""
    from sqlalchemy.exc import IntegrityError  # noqa: PLC0415 - beside the one use

    with pytest.raises(IntegrityError):
        writing(
            school,
            lambda connection: connection.execute(
                insert(learner).values(learner_id="x", display_name="Ada", erased_us=1)
            ),
        )
    counted = reading(
        school, lambda connection: connection.scalar(select(func.count()).select_from(learner))
    )
    assert counted == 0
