import json
from typing import Any

import pytest

from etude.sessions import reading, repository
from etude.sessions.errors import SessionTooLongError
from etude.sessions.export import lines_within
from etude.testing.school import School, body, event


def test_a_session_is_held_in_memory_within_a_limit_only(school: School) -> None:
    """As many bytes as allowed come in order; one more is refused before the rest is read."""
    sent = body(event("s1", 1), event("s1", 2))
    school.upload(school.device("toy-1"), "s1", sent)
    row = school.row("s1")
    size_bytes = len(sent) - 2
    held = school.run(lines_within(school.database, row, size_bytes))
    assert held == sent.splitlines()
    with pytest.raises(SessionTooLongError):
        school.run(lines_within(school.database, row, size_bytes - 1))


def test_every_line_in_quarantine_can_be_reached(school: School) -> None:
    """Pages of two show five newcomers, each once, in order of receipt."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 1)))
    for ts in range(10, 15):
        school.upload(toy, "s1", body(event("s1", 1, ts=float(ts))))
    session_key = school.row("s1").session_key

    async def pages() -> list[list[float]]:
        found, cursor = [], None
        async with school.database.read() as connection:
            while True:
                page = await reading.quarantined(connection, session_key, cursor=cursor, limit=2)
                found.append([json.loads(each.line)["ts"] for each in page.items])
                cursor = page.next_cursor
                if cursor is None:
                    return found

    assert school.run(pages()) == [[10.0, 11.0], [12.0, 13.0], [14.0]]


def test_of_many_gaps_the_first_thousand_are_named(school: School) -> None:
    """Every second number is missing: the answer stays small, and begins at the lowest."""
    every_second = [event("s1", number) for number in range(2, 2_204, 2)]
    school.upload(school.device("toy-1"), "s1", body(*every_second))

    async def gaps() -> Any:
        async with school.database.read() as connection:
            return await repository.missing(connection, school_row)

    school_row = school.row("s1")
    found = school.run(gaps())
    assert found[:2] == [(1, 1), (3, 3)]
    assert len(found) == repository.MAX_GAPS
