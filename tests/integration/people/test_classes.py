from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from etude.examiner.learner_data import all_learner_data
from etude.files import armed
from etude.people.changes import marks
from etude.people.class_errors import (
    ClassArchivedError,
    ClassExistsError,
    ClassNotYoursError,
    ClassStaffUnknownError,
    ClassUnknownError,
    MemberIntervalError,
    MemberOverlapError,
    MemberUnknownError,
)
from etude.people.class_staff import add_teacher, remove_teacher, require_own, teachers_of
from etude.people.classes import create_class, get_class, list_classes
from etude.people.erasure import erase_learner
from etude.people.errors import (
    IdInvalidError,
    LearnerErasedError,
    LearnerUnknownError,
    NameInvalidError,
    StaffUnknownError,
    TimeOutOfRangeError,
)
from etude.people.records import HOST, Principal
from etude.people.rosters import classes_of_learner
from etude.people.scopes import Scope
from etude.store import Blobs, Database
from etude.testing.class_desk import ClassDesk

Run = Callable[[Coroutine[Any, Any, Any]], Any]
DAY = timedelta(days=1)


class KilledError(BaseException):
    pass


@pytest.fixture
def desk(database: Database, run: Run) -> ClassDesk:
    return ClassDesk(database, run)


def test_a_class_is_made_renamed_and_archived(desk: ClassDesk) -> None:
    """Each once in the audit log; what is so already changes nothing."""
    changed = desk.change(name="四年级二班", grade="4")
    assert (changed.name, changed.grade, changed.archived_at) == ("四年级二班", "4", None)
    desk.change(name="四年级二班")
    archived = desk.change(archived=True)
    assert archived.archived_at == desk.start
    desk.later()
    assert desk.change(archived=True) == archived
    assert desk.change(archived=False, grade=None).archived_at is None
    assert desk.audited() == [
        "class.created",
        "class.renamed",
        "class.archived",
        "class.restored",
        "class.renamed",
    ]
    page = desk.read(list_classes)
    assert [(each.class_id, each.grade) for each in page.items] == [("3b", None)]


def test_what_is_no_class_is_refused(desk: ClassDesk) -> None:
    """An id that is taken or none, a name that is none, a class that is not there."""

    def create(class_id: str, name: str = "x") -> None:
        desk.work(
            lambda work: create_class(
                work, class_id=class_id, name=name, actor=HOST, now=desk.clock.now()
            )
        )

    for class_id, name, error in (
        ("3b", "x", ClassExistsError),
        ("3 b", "x", IdInvalidError),
        ("3c", " ", NameInvalidError),
    ):
        with pytest.raises(error):
            create(class_id, name)
    with pytest.raises(ClassUnknownError):
        desk.change("none", name="x")
    with pytest.raises(ClassUnknownError):
        desk.read(lambda connection: get_class(connection, "3b\x00"))


def test_joining_and_leaving_are_dated(desk: ClassDesk) -> None:
    """Who was in it then is who is shown then; who left can come again."""
    start = desk.start
    desk.join("anna", start - 10 * DAY)
    desk.join("ben", start + 2 * DAY)
    assert [desk.names(start + days * DAY) for days in (-11, -10, 0, 2)] == [
        [],
        ["Anna"],
        ["Anna"],
        ["Anna", "Ben"],
    ]
    left = desk.later()
    desk.leave("anna")
    desk.later()
    desk.join("anna")
    assert desk.roster(history=True) == [
        ("Anna", start - 10 * DAY, left),
        ("Ben", start + 2 * DAY, None),
        ("Anna", start + 2 * DAY, None),
    ]
    assert desk.names(left - timedelta(microseconds=1)) == ["Anna"]
    assert desk.names(left) == []
    assert desk.audited()[1:] == ["class.joined"] * 2 + ["class.left", "class.joined"]


def test_joining_and_leaving_twice_is_once(desk: ClassDesk) -> None:
    """Nothing is entered a second time."""
    desk.join("anna")
    desk.later()
    assert desk.join("anna").starts_at == desk.start
    desk.leave("anna")
    ended = desk.roster(history=True)
    desk.later()
    desk.leave("anna")
    assert desk.roster(history=True) == ended
    assert desk.audited()[1:] == ["class.joined", "class.left"]


def test_leaving_also_takes_back_what_was_to_come(desk: ClassDesk) -> None:
    """Who was to join later does not; an end that was set comes earlier."""
    desk.join("anna", desk.start + DAY)
    desk.leave("anna")
    assert desk.roster(history=True) == []
    desk.join("anna", ends_at=desk.start + 5 * DAY)
    desk.leave("anna", desk.start + 2 * DAY)
    assert desk.roster(history=True) == [("Anna", desk.start, desk.start + 2 * DAY)]


def test_what_cannot_be_is_refused(desk: ClassDesk) -> None:
    """Each with its own error, and nothing changes."""
    desk.join("anna", ends_at=desk.start + DAY)
    before = desk.everything()
    for wanted, error in (
        (("anna",), MemberOverlapError),
        (("anna", desk.start - DAY), MemberOverlapError),
        (("anna", desk.start - DAY, desk.start - DAY), MemberIntervalError),
        (("anna", desk.start.replace(tzinfo=None)), TimeOutOfRangeError),
        (("cleo",), LearnerUnknownError),
        (("anna", None, None, "none"), ClassUnknownError),
    ):
        with pytest.raises(error):
            desk.join(*wanted)
    with pytest.raises(MemberUnknownError):
        desk.leave("ben")
    desk.change(archived=True)
    with pytest.raises(ClassArchivedError):
        desk.join("ben")
    desk.change(archived=False)
    assert desk.roster(history=True) == before[0]


def test_gateways_are_told_small_items(desk: ClassDesk) -> None:
    """One learner's classes now and later, of classes that count; who is in none is told once."""
    anna, ben = desk.learner("Anna").learner_key, desk.learner("Ben").learner_key
    desk.work(
        lambda work: create_class(
            work, class_id="choir", name="Choir", actor=HOST, now=desk.clock.now()
        )
    )
    desk.join("anna", ends_at=desk.start + DAY)
    desk.join("anna", desk.start + 2 * DAY, class_id="choir")
    desk.join("ben")
    assert {key: len(of.classes) for key, of in desk.told().items()} == {anna: 2, ben: 1}
    assert desk.changed() == desk.told()
    desk.leave("ben")
    desk.later()
    assert {key: len(of.classes) for key, of in desk.told().items()} == {anna: 1}
    assert {key: len(of.classes) for key, of in desk.changed().items()} == {anna: 1, ben: 0}
    desk.change("choir", archived=True)
    assert desk.told() == {}
    desk.change("choir", archived=False)
    assert list(desk.told()) == [anna]


def test_archiving_marks_everybody_in_it(desk: ClassDesk) -> None:
    """Gateways hear of each when the class goes and when it is back; of a new name nobody."""
    desk.load("Cleo\nDora\n")
    before = len(desk.read(marks))
    desk.change(name="x")
    assert len(desk.read(marks)) == before
    desk.change(archived=True)
    desk.change(archived=False)
    assert len(desk.read(marks)) == before + 4


def test_teachers_have_own_classes(desk: ClassDesk) -> None:
    """Added once, seen in their list; others are refused; an operator and a service see all."""
    found = desk.read(lambda connection: get_class(connection, "3b"))

    def teach(change: Any, staff_id: str) -> None:
        desk.work(lambda work: change(work, "3b", staff_id, actor=HOST, now=desk.clock.now()))

    def sees(principal: Principal) -> bool:
        try:
            desk.read(lambda connection: require_own(connection, principal, found))
        except ClassNotYoursError:
            return False
        return True

    def asking(kind: Any, key: int, *scopes: str) -> Principal:
        return Principal(kind=kind, key=key, id="x", scopes=frozenset(scopes), token_key=1)

    for _ in range(2):
        teach(add_teacher, "li")
    assert desk.read(lambda connection: teachers_of(connection, found.class_key)) == ("li",)
    assert desk.audited()[1:] == ["class.teacher_added"] * 2  # of the class, and of the teacher
    li, wu = 1, 2
    assert sees(asking("staff", li, Scope.LESSONS_ASSIGN))
    assert not sees(asking("staff", wu, Scope.LESSONS_ASSIGN))
    assert sees(asking("staff", wu, Scope.OPERATE))
    assert sees(asking("service", wu, Scope.LESSONS_ASSIGN))
    own = [desk.read(lambda c, key=key: list_classes(c, staff_key=key)).items for key in (li, wu)]
    assert [len(each) for each in own] == [1, 0]
    teach(remove_teacher, "li")
    assert not sees(asking("staff", li, Scope.LESSONS_ASSIGN))
    for staff_id, error in (("li", ClassStaffUnknownError), ("none", StaffUnknownError)):
        with pytest.raises(error):
            teach(remove_teacher, staff_id)


def test_an_erased_learner_is_on_no_roster(desk: ClassDesk, tmp_path: Path) -> None:
    """Not in its history either; gateways are told; others stay."""
    anna, ben = desk.learner("Anna").learner_key, desk.learner("Ben").learner_key
    for name in ("anna", "ben"):
        desk.join(name)
    of_anna = desk.read(lambda connection: classes_of_learner(connection, anna))
    assert [(each.class_id, each.class_name, each.ends_at) for each in of_anna] == [
        ("3b", "三年级二班", None)
    ]
    registry = all_learner_data(desk.clock, Blobs(tmp_path, desk.clock))
    desk.work(lambda work: erase_learner(work, registry, "anna", actor=HOST, now=desk.clock.now()))
    assert [name for name, _, _ in desk.roster(history=True)] == ["Ben"]
    assert {key: len(of.classes) for key, of in desk.changed().items()} == {anna: 0, ben: 1}
    assert list(desk.told()) == [ben]
    with pytest.raises(LearnerErasedError):
        desk.join("anna")


@pytest.mark.parametrize(
    ("instant", "act"),
    [
        ("people.class.changed", lambda desk: desk.change(archived=True)),
        ("people.class.left", lambda desk: desk.leave("anna")),
        ("people.class.joined", lambda desk: desk.join("ben")),
    ],
)
def test_a_kill_before_the_commit_leaves_nothing(
    desk: ClassDesk, instant: str, act: Callable[[ClassDesk], object]
) -> None:
    """Neither the change nor its entry nor its mark."""
    desk.join("anna")

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    before = desk.everything()
    with armed(kill), pytest.raises(KilledError):
        act(desk)
    assert desk.everything() == before
    assert desk.read(lambda connection: get_class(connection, "3b")).archived_at is None
