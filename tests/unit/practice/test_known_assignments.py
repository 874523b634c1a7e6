import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from etude.clock import to_us
from etude.files import Files, armed
from etude.gateway.link_messages import LinkFrameError
from etude.practice.assigned import Assigned, AssignmentNews, CoursewarePin, LessonAddress
from etude.practice.known_assignments import FILE, KnownAssignments
from etude.testing.clocks import ManualClock

ANNA, BEN = 7, 8
TOY = "02:00:00:00:00:01"
LESSON = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="greetings")
PIN = CoursewarePin(courseware_id="c", version=2, content_hash="sha256:0", scene_id="s")


class KilledError(BaseException):
    pass


class Room:
    """A gateway's cache on a toy that `holder` has."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "gateway" / FILE
        self.clock = ManualClock()
        self.holder: int | None = ANNA
        self.known = self.again()

    def again(self, files: Files | None = None) -> KnownAssignments:
        return KnownAssignments(self.path, self.clock, lambda _: self.holder, files)

    def made(self, key: int, learner: int | None = None, **more: object) -> Assigned:
        fields = {"starts_us": to_us(self.clock.now()), "listen_ratio": 1.3, "courseware": PIN}
        return Assigned(
            assignment_key=key,
            assignment_id=f"as-{key}",
            lesson=LESSON,
            learner_key=learner,
            device_id=TOY if learner is None else None,
            **(fields | more),
        )

    def current(self) -> str | None:
        found = self.known.current(TOY)
        return None if found is None else found.assignment_id


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def raw(*items: Assigned | int) -> Sequence[msgspec.Raw]:
    news = [
        AssignmentNews(assignment_key=item)
        if isinstance(item, int)
        else AssignmentNews(assignment_key=item.assignment_key, assigned=item)
        for item in items
    ]
    return [msgspec.Raw(msgspec.json.encode(item)) for item in news]


def test_who_has_the_toy_decides(room: Room) -> None:
    """Anna's on Anna's toy, Ben's once he has it, the toy's own when nobody's counts."""
    told = raw(room.made(1, ANNA), room.made(2, BEN), room.made(3))
    asyncio.run(room.known.replace(told))
    assert room.current() == "as-1"
    room.holder = BEN
    assert room.current() == "as-2"
    room.holder = None
    assert room.current() == "as-3"
    assert room.known.current("another") is None


def test_changes_are_taken_as_they_come(room: Room) -> None:
    """Made, changed, withdrawn, told twice; one that is over counts no more by itself."""
    until = to_us(room.clock.now() + timedelta(hours=1))
    asyncio.run(room.known.apply(raw(room.made(1, ANNA), room.made(2, ANNA, ends_us=until))))
    asyncio.run(room.known.apply(raw(room.made(2, ANNA, ends_us=until), 99)))
    assert (room.current(), len(room.known)) == ("as-2", 2)
    room.clock.advance(3600.0)
    assert room.current() == "as-1"
    asyncio.run(room.known.apply(raw(1, 1)))
    assert (room.current(), len(room.known)) == (None, 0)


def test_what_was_told_outlives_the_process(room: Room) -> None:
    """A start while web is dead knows it all, also what begins later, and forgets what is over."""
    later = to_us(room.clock.now() + timedelta(hours=1))
    over = room.made(9, ANNA, starts_us=later - 7_200_000_000, ends_us=later - 3_600_000_000)
    asyncio.run(
        room.known.replace(raw(room.made(1, ANNA), room.made(2, ANNA, starts_us=later), over))
    )
    room.known = room.again()
    assert (room.current(), len(room.known)) == ("as-1", 2)
    assert room.known.current(TOY) == room.made(1, ANNA)
    room.clock.advance(3600.0)
    assert room.current() == "as-2"
    assert room.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"format":9,"assigned":[]}'])
def test_a_damaged_file_is_begun_anew(room: Room, content: bytes) -> None:
    """Nothing of it is used, and the next change replaces it."""
    room.path.parent.mkdir()
    room.path.write_bytes(content)
    room.known = room.again()
    assert room.current() is None
    asyncio.run(room.known.apply(raw(room.made(1, ANNA))))
    room.known = room.again()
    assert room.current() == "as-1"


@pytest.mark.parametrize(
    ("instant", "kept"),
    [
        ("practice.known_assignments.before", "as-1"),
        ("files.replace.written", "as-1"),
        ("files.replace.renamed", "as-2"),
        ("practice.known_assignments.written", "as-2"),
    ],
)
def test_a_kill_leaves_the_old_file_or_the_new_one(room: Room, instant: str, kept: str) -> None:
    """Whatever the instant, the file is whole."""
    asyncio.run(room.known.replace(raw(room.made(1, ANNA))))

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        asyncio.run(room.known.replace(raw(room.made(2, ANNA))))
    room.known = room.again()
    assert room.current() == kept


def test_what_is_no_assignment_is_refused_whole(room: Room) -> None:
    """The link is cut, and what was known counts on."""
    asyncio.run(room.known.replace(raw(room.made(1, ANNA))))
    bad = [*raw(room.made(2, ANNA)), msgspec.Raw(b'{"assignment_key":"x"}')]
    for take in (room.known.replace, room.known.apply):
        with pytest.raises(LinkFrameError):
            asyncio.run(take(bad))
    assert (room.current(), len(room.known)) == ("as-1", 1)


def test_a_full_disk_changes_nothing_in_memory(room: Room) -> None:
    """What cannot be written counts all the same, until the process ends."""
    room.path.parent.parent.joinpath("gateway").write_text("a file where the folder should be")
    asyncio.run(room.known.apply(raw(room.made(1, ANNA))))
    assert room.current() == "as-1"
