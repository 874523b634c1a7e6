from datetime import timedelta
from typing import Any

import pytest

from etude.people import audit
from etude.people.records import HOST, Actor, Principal

OPERATOR = Principal(kind="staff", key=7, id="op", scopes=frozenset(), token_key=3)


def entered(school: Any, *arguments: Any, **named: Any) -> None:
    async def enter() -> None:
        async with school.database.transaction() as work:
            await audit.record(work, *arguments, now=school.now, **named)

    school.run(enter())


def listed(school: Any, **named: Any) -> Any:
    async def read() -> Any:
        async with school.database.read() as connection:
            return await audit.list_audit(connection, **named)

    return school.run(read())


def test_an_entry_says_who_did_what_to_whom_and_when(school: Any) -> None:
    """Actor, token, action, subject, time and details come back as entered."""
    entered(
        school, OPERATOR, "token.revoked", subject=("token", 9), detail={"kind": "device", "n": 2}
    )
    entered(school, HOST, "learner.erased", subject=("learner", 4))
    first, second = listed(school).items
    assert first.actor == Actor(kind="staff", key=7, token_key=3)
    assert (first.action, first.subject, first.at) == ("token.revoked", ("token", 9), school.now)
    assert first.detail == {"kind": "device", "n": 2}
    assert second.actor == HOST


def test_the_log_of_one_subject_is_its_own_list(school: Any) -> None:
    """Who touched this learner is answered without everybody else's entries, in pages."""
    for number in range(5):
        school.now += timedelta(seconds=1)
        entered(school, OPERATOR, "learner.read", subject=("learner", 1))
        entered(school, OPERATOR, "learner.read", subject=("learner", 100 + number))
        entered(school, OPERATOR, "device.read", subject=("device", 1))
    first = listed(school, subject=("learner", 1), limit=3)
    second = listed(school, subject=("learner", 1), limit=3, cursor=first.next_cursor)
    assert [len(first.items), len(second.items)] == [3, 2]
    assert {entry.subject for entry in (*first.items, *second.items)} == {("learner", 1)}
    assert second.next_cursor is None


def test_an_action_on_many_is_entered_for_each(school: Any) -> None:
    """Reading a list of learners is one entry a learner; of nobody it is none."""

    async def enter() -> None:
        async with school.database.transaction() as work:
            for keys in ((1, 2, 3), ()):
                await audit.record_all(
                    work,
                    OPERATOR,
                    "learner.listed",
                    subjects=[("learner", key) for key in keys],
                    now=school.now,
                )

    school.run(enter())
    assert [entry.subject[1] for entry in listed(school).items] == [1, 2, 3]


@pytest.mark.parametrize(
    ("action", "detail"),
    [
        ("Ada read", {}),
        ("learner.read", {"name": "Ada Lovelace"}),
        ("learner.read", {"Ada": 1}),
        ("learner.read", {"name": "李"}),
        ("learner.read", {"text": ""}),
    ],
)
def test_names_and_texts_cannot_be_entered(
    school: Any, action: str, detail: dict[str, str | int]
) -> None:
    """Only code words and numbers are let in, and the refusal does not repeat what was tried."""
    with pytest.raises(ValueError, match="a-z0-9") as refused:
        entered(school, OPERATOR, action, subject=("learner", 1), detail=detail)
    assert "Ada" not in str(refused.value)
    assert listed(school).items == ()


def test_an_entry_goes_with_its_transaction(school: Any) -> None:
    """What did not happen is not in the log."""

    async def fail() -> None:
        async with school.database.transaction() as work:
            await audit.record(
                work, OPERATOR, "learner.erased", subject=("learner", 1), now=school.now
            )
            raise KeyError

    with pytest.raises(KeyError):
        school.run(fail())
    assert listed(school).items == ()


def test_nothing_in_the_module_changes_or_removes_an_entry() -> None:
    """The log is append-only: the module has no statement but insert and select."""
    assert not {"update", "delete"} & set(vars(audit))
