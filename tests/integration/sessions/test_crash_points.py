import asyncio
from typing import Any

import pytest

from etude.files import armed
from etude.testing.school import School, body, event


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


def crash_at(name: str, count: int) -> Any:
    left = count

    def crash(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
            if left == 0:
                raise CrashError

    return armed(crash)


@pytest.fixture
def quiet_loop(school: School) -> None:
    """A task that dies with the process is no lost exception."""

    async def quiet() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    school.run(quiet())


@pytest.mark.usefixtures("quiet_loop")
@pytest.mark.parametrize(
    ("point", "stored"),
    [
        ("sessions.ingest.before_commit", 1),
        ("store.transaction.before_commit", 1),
        ("store.transaction.committed", 3),
        ("sessions.ingest.after_commit", 3),
    ],
)
def test_a_crash_around_the_commit_loses_nothing_acknowledged_and_doubles_nothing(
    school: School, point: str, stored: int
) -> None:
    """Killed there, an upload is unanswered; sent again, every event is stored exactly once."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 1)))
    with crash_at(point, 1), pytest.raises(CrashError):
        school.upload(toy, "s1", body(event("s1", 2), event("s1", 3)))
    assert len(school.stored("s1")) == stored

    school.restart()
    answer = school.upload(toy, "s1", body(event("s1", 1), event("s1", 2), event("s1", 3)))
    assert answer.duplicates_skipped == stored
    assert answer.watermark == 3
    assert len(school.stored("s1")) == 3
