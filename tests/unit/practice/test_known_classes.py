"""What a gateway chooses for learners who are in classes, against a plain reading of the rows."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.clock import from_us, to_us
from etude.gateway.link_messages import LinkFrameError
from etude.people.roster_records import InClass, LearnerClasses
from etude.practice.assigned import Assigned, AssignmentNews, LessonAddress
from etude.practice.known_assignments import FILE, KnownAssignments
from etude.testing.clocks import ManualClock

ANNA, BEN = 7, 8
MATHS, MUSIC = 7, 21  # a class may have the number of a learner
TOYS: dict[str, int | None] = {"toy-anna": ANNA, "toy-ben": BEN, "toy-nobody": None}
LESSON = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="greetings")
START_US = to_us(datetime(2026, 9, 1, 8, 0, tzinfo=UTC))


class Stay(NamedTuple):
    """A row of a roster."""

    learner: int
    of_class: int
    starts: int
    ends: int | None


class Row(NamedTuple):
    """A row of assignments: of exactly one."""

    learner: int | None
    of_class: int | None
    device: str | None
    starts: int
    ends: int | None


def covers(row: Stay | Row, at: int) -> bool:
    return row.starts <= at and (row.ends is None or at < row.ends)


def meant(device: str, at: int, stays: Sequence[Stay], rows: Sequence[Row | None]) -> int | None:
    """What the documentation says, over rows: the index of the assignment that counts."""
    learner = TOYS[device]
    classes = [stay.of_class for stay in stays if stay.learner == learner and covers(stay, at)]
    own, together, devices = [], [], []
    for key, row in enumerate(rows):
        if row is None or not covers(row, at):
            continue
        if row.learner is not None and row.learner == learner:
            own.append((row.starts, key))
        if row.of_class is not None and row.of_class in classes:
            together.append((row.starts, key))
        if row.device == device:
            devices.append((row.starts, key))
    for found in (own, together, devices):
        if found:
            return max(found)[1]
    return None


def raw(*items: msgspec.Struct) -> list[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode(item)) for item in items]


def news(key: int, row: Row | None) -> AssignmentNews:
    if row is None:
        return AssignmentNews(assignment_key=key)
    assigned = Assigned(
        assignment_key=key,
        assignment_id=str(key),
        lesson=LESSON,
        starts_us=START_US + row.starts,
        ends_us=None if row.ends is None else START_US + row.ends,
        learner_key=row.learner,
        class_key=row.of_class,
        device_id=row.device,
    )
    return AssignmentNews(assignment_key=key, assigned=assigned)


def classes_of(learner: int, stays: Sequence[Stay]) -> LearnerClasses:
    return LearnerClasses(
        learner_key=learner,
        classes=tuple(
            InClass(
                class_key=stay.of_class,
                starts_us=START_US + stay.starts,
                ends_us=None if stay.ends is None else START_US + stay.ends,
            )
            for stay in stays
            if stay.learner == learner
        ),
    )


class Room:
    """A gateway's cache, and the rows that it was told of."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.clock = ManualClock(from_us(START_US))
        self.known = self.again()
        self.stays: list[Stay] = []
        self.rows: list[Row | None] = []

    def again(self) -> KnownAssignments:
        return KnownAssignments(self.path, self.clock, TOYS.get)

    def apply(self, *items: AssignmentNews | LearnerClasses) -> None:
        for item in items:
            rosters = isinstance(item, LearnerClasses)
            take = self.known.apply_rosters if rosters else self.known.apply
            asyncio.run(take(raw(item)))

    def chosen(self, device: str) -> int | None:
        found = self.known.current(device)
        return None if found is None else found.assignment_key


@contextmanager
def rooms() -> Iterator[Room]:
    with tempfile.TemporaryDirectory() as folder:
        yield Room(Path(folder))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


TIMES = st.integers(0, 12)
LASTS = st.none() | st.integers(1, 8)


@st.composite
def stay(draw: st.DrawFn) -> Stay:
    starts, lasts = draw(TIMES), draw(LASTS)
    learner, of_class = draw(st.sampled_from((ANNA, BEN))), draw(st.sampled_from((MATHS, MUSIC)))
    return Stay(learner, of_class, starts, None if lasts is None else starts + lasts)


@st.composite
def row(draw: st.DrawFn) -> Row:
    starts, lasts = draw(TIMES), draw(LASTS)
    holder = draw(
        st.sampled_from(
            [
                *((learner, None, None) for learner in (ANNA, BEN)),
                *((None, of_class, None) for of_class in (MATHS, MUSIC)),
                *((None, None, device) for device in TOYS),
            ]
        )
    )
    return Row(*holder, starts, None if lasts is None else starts + lasts)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), stay()),
        st.tuples(st.just("leave"), st.sampled_from((ANNA, BEN))),
        st.tuples(st.just("assign"), row()),
        st.tuples(st.just("withdraw"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.integers(1, 4)),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("link"), st.none()),
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=150)
def test_a_gateway_chooses_what_the_rows_say(steps: list[tuple[str, object]]) -> None:
    """After whatever changes, restarts and new links: for every toy what a plain reading gives."""
    with rooms() as room:
        at = 0
        for what, which in steps:
            at = take(room, what, which, at)
            room.clock.set_wall(from_us(START_US + at))
            for device in TOYS:
                assert room.chosen(device) == meant(device, at, room.stays, room.rows)


def take(room: Room, what: str, which: object, at: int) -> int:
    """Do one step; return the time after it."""
    match what, which:
        case "join", Stay() as joined:
            room.stays.append(joined)
            room.apply(classes_of(joined.learner, room.stays))
        case "leave", int() as learner:
            left = [each for each in room.stays if each.learner == learner]
            if left:
                room.stays.remove(left[-1])
                room.apply(classes_of(learner, room.stays))
        case "assign", Row() as made:
            room.rows.append(made)
            room.apply(news(len(room.rows) - 1, made))
        case "withdraw", int() as key if key < len(room.rows):
            room.rows[key] = None
            room.apply(news(key, None))
        case "wait", int() as lasts:
            return at + lasts
        case "restart", _:
            room.known = room.again()
        case "link", _:
            told = [news(key, made) for key, made in enumerate(room.rows)]
            asyncio.run(room.known.replace(raw(*told)))
            rosters = [classes_of(learner, room.stays) for learner in (ANNA, BEN)]
            asyncio.run(room.known.replace_rosters(raw(*rosters)))
    return at


def test_the_property_sees_every_kind_win(room: Room) -> None:
    """Own, of a class, of the device: each wins where it should, so that the rule is exercised."""
    rows = [
        Row(None, None, "toy-anna", 3, None),
        Row(None, MUSIC, None, 1, None),
        Row(None, MATHS, None, 2, None),
        Row(ANNA, None, None, 0, 5),
    ]
    stays = [Stay(ANNA, MUSIC, 0, None), Stay(ANNA, MATHS, 0, 8)]
    room.apply(*(news(key, made) for key, made in enumerate(rows)), classes_of(ANNA, stays))
    seen = []
    for at in (0, 5, 8):
        room.clock.set_wall(from_us(START_US + at))
        seen.append(room.chosen("toy-anna"))
    room.apply(LearnerClasses(learner_key=ANNA))
    assert [*seen, room.chosen("toy-anna")] == [3, 2, 1, 0]


def test_dated_joining_and_leaving_need_no_link(room: Room) -> None:
    """Told long before, a learner joins and leaves on time, also after a start from the file."""
    room.apply(
        news(0, Row(None, MATHS, None, 0, None)), classes_of(ANNA, [Stay(ANNA, MATHS, 10, 20)])
    )
    for at, chosen in ((0, None), (9, None), (10, 0), (19, 0), (20, None)):
        room.clock.set_wall(from_us(START_US + at))
        assert room.chosen("toy-anna") == chosen
        assert room.again().current("toy-anna") == room.known.current("toy-anna")


def test_what_is_over_leaves_the_file(room: Room) -> None:
    """Times in classes that have ended are not kept, nor learners without any."""
    room.apply(
        classes_of(ANNA, [Stay(ANNA, MATHS, 0, 5), Stay(ANNA, MUSIC, 0, None)]),
        classes_of(BEN, [Stay(BEN, MATHS, 0, 5)]),
    )
    room.clock.set_wall(from_us(START_US) + timedelta(seconds=1))
    room.apply(news(0, None))
    kept = msgspec.json.decode(room.path.read_bytes())["rosters"]
    assert [(one["learner_key"], [of["class_key"] for of in one["classes"]]) for one in kept] == [
        (ANNA, [MUSIC])
    ]


def test_a_file_from_before_classes_is_used(room: Room) -> None:
    """What an older gateway has written counts."""
    room.apply(news(0, Row(ANNA, None, None, 0, None)))
    written = msgspec.json.decode(room.path.read_bytes())
    del written["rosters"]
    for one in written["assigned"]:
        del one["class_key"]
    room.path.write_bytes(msgspec.json.encode(written))
    assert room.again().current("toy-anna") is not None


def test_what_is_no_roster_is_refused_whole(room: Room) -> None:
    """The link is cut, and what was known counts on."""
    room.apply(
        news(0, Row(None, MATHS, None, 0, None)), classes_of(ANNA, [Stay(ANNA, MATHS, 0, 9)])
    )
    bad = [*raw(LearnerClasses(learner_key=ANNA)), msgspec.Raw(b'{"learner_key":"x"}')]
    for refuse in (room.known.replace_rosters, room.known.apply_rosters):
        with pytest.raises(LinkFrameError):
            asyncio.run(refuse(bad))
    assert room.chosen("toy-anna") == 0
