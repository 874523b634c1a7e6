import json
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.examiner.learner_data import all_learner_data
from etude.people import audit
from etude.people.class_errors import ClassArchivedError, ClassNotYoursError, ClassUnknownError
from etude.people.class_staff import add_teacher
from etude.people.classes import create_class
from etude.people.erasure import erase_learner
from etude.people.export import export_archive
from etude.people.records import HOST, Actor, Principal
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.practice.assigned import AssignmentNews, LessonAddress
from etude.practice.assignments import feed, repository
from etude.practice.assignments.assigning import assign, withdraw
from etude.practice.assignments.errors import AssignmentHolderError
from etude.practice.assignments.learner_data import assignments_data
from etude.practice.assignments.records import Assignment, NewAssignment
from etude.store import Blobs, Database
from etude.testing.class_desk import ClassDesk
from etude.testing.clocks import CountingIds
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.web import client, service_token, services_for
from etude.web import assignments as assignments_web
from etude.web.services import Services

Run = Callable[[Coroutine[Any, Any, Any]], Any]
LESSON = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="unit1")
DAY = timedelta(days=1)
LI = 1


class Desk(ClassDesk):
    """A class at a database, and what it is assigned."""

    def __init__(self, database: Database, run: Run) -> None:
        super().__init__(database, run)
        self.assignment_ids = CountingIds("as")

    def assign(self, actor: Actor | Principal = HOST, **wanted: Any) -> Assignment:
        fields = {"lesson": LESSON, "class_id": "3b"} | wanted
        return self.work(
            lambda work: assign(
                work,
                NewAssignment(**fields),
                assignment_id=self.assignment_ids.new(),
                actor=actor,
                now=self.clock.now(),
            )
        )

    def withdraw(self, assignment_id: str) -> Assignment:
        return self.work(
            lambda work: withdraw(work, assignment_id, actor=HOST, now=self.clock.now())
        )

    def news(self) -> list[AssignmentNews]:
        """What a gateway that links now is told of assignments."""
        (source,) = feed.change_sources(self.clock)
        found = self.read(source.everything)
        return [each for each in found if isinstance(each, AssignmentNews)]

    def assignments_of(self, name: str) -> list[str]:
        key = self.learner(name).learner_key
        found = self.read(lambda connection: repository.of_learner(connection, key))
        return [each.assignment_id for each in found]


@pytest.fixture
def desk(database: Database, run: Run) -> Desk:
    return Desk(database, run)


def teacher(key: int = LI) -> Principal:
    scopes = frozenset({Scope.LESSONS_ASSIGN, Scope.LEARNERS_READ})
    return Principal(kind="staff", key=key, id="x", scopes=scopes, token_key=1)


def test_a_class_is_assigned_a_lesson(desk: Desk) -> None:
    """Stored, told and audited as the class's, by its key; withdrawn like any other."""
    made = desk.assign()
    assert (made.class_id, made.learner_id, made.device_id) == ("3b", None, None)
    (told,) = desk.news()
    assert told.assigned is not None
    assert (told.assigned.class_key, told.assigned.learner_key) == (made.class_key, None)
    entries = desk.read(audit.list_audit).items
    (entry,) = [each for each in entries if each.action == "assignment.made"]
    assert entry.subject == ("class", made.class_key)
    page = desk.read(lambda c: repository.list_assignments(c, class_key=made.class_key, limit=9))
    assert page.items == (made,)
    desk.withdraw(made.assignment_id)
    assert desk.news() == []


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"learner_id": "anna"}, AssignmentHolderError),
        ({"device_id": "toy-1"}, AssignmentHolderError),
        ({"class_id": None}, AssignmentHolderError),
        ({"class_id": "none"}, ClassUnknownError),
    ],
)
def test_what_cannot_be_is_refused(
    desk: Desk, wanted: dict[str, Any], error: type[Exception]
) -> None:
    """Exactly one of the three, and a class that there is."""
    with pytest.raises(error):
        desk.assign(**wanted)
    assert desk.news() == []


def test_an_archived_class_is_assigned_nothing(desk: Desk) -> None:
    """Until it is taken back."""
    desk.change(archived=True)
    with pytest.raises(ClassArchivedError):
        desk.assign()
    desk.change(archived=False)
    desk.assign()


def test_a_teacher_assigns_to_own_classes(desk: Desk) -> None:
    """Not to others'; learners and devices as before."""
    with pytest.raises(ClassNotYoursError):
        desk.assign(teacher())
    desk.assign(teacher(), class_id=None, learner_id="anna")
    desk.work(lambda work: add_teacher(work, "3b", "li", actor=HOST, now=desk.clock.now()))
    desk.assign(teacher())
    with pytest.raises(ClassNotYoursError):
        desk.assign(teacher(LI + 1))


def test_a_learners_export_has_what_their_classes_were_assigned(desk: Desk, tmp_path: Path) -> None:
    """While they were in them: not what was over before they came, nor what came later."""
    over = desk.assign(ends_at=desk.start + DAY)
    never = desk.assign(starts_at=desk.start + 5 * DAY)
    desk.withdraw(never.assignment_id)
    standing = desk.assign()
    desk.later()
    desk.join("anna")
    own = desk.assign(class_id=None, learner_id="anna")
    desk.later()
    desk.leave("anna")
    desk.assign()
    desk.join("ben")
    assert desk.assignments_of("Anna") == [standing.assignment_id, own.assignment_id]
    assert over.assignment_id not in desk.assignments_of("Ben")
    assert never.assignment_id not in desk.assignments_of("Ben")
    registry = all_learner_data(
        desk.clock, Blobs(tmp_path, desk.clock), assignments_data(desk.clock)
    )
    key = desk.learner("Anna").learner_key

    async def exported() -> bytes:
        chunks = export_archive(desk.database, registry, key, desk.clock.now())
        return b"".join([part async for part in chunks])

    with zipfile.ZipFile(BytesIO(desk.run(exported()))) as archive:
        lines = [json.loads(each) for each in archive.read("assignments.jsonl").splitlines()]
        (stay,) = [json.loads(each) for each in archive.read("classes.jsonl").splitlines()]
    assert [each["class_id"] for each in lines] == ["3b", None]
    assert not any(name.endswith("_key") for each in lines for name in each)
    assert (stay["class_id"], stay["class_name"]) == ("3b", "三年级二班")
    desk.work(lambda work: erase_learner(work, registry, "anna", actor=HOST, now=desk.clock.now()))
    standing_ids = [each.assigned.assignment_id for each in desk.news() if each.assigned]
    assert standing.assignment_id in standing_ids
    assert own.assignment_id not in standing_ids


# Over HTTP


class Api:
    def __init__(self, services: Services, asking: httpx2.AsyncClient, run: Run) -> None:
        self.services = services
        self.asking = asking
        self.run = run
        self.operator = run(service_token(services.database, Scope.OPERATE))
        self.teachers = {name: self._teacher(name) for name in ("li", "wu")}

    def _teacher(self, name: str) -> str:
        async def make() -> str:
            wanted = TokenRequest(
                kind="staff",
                principal_id=name,
                scopes=(Scope.LESSONS_ASSIGN, Scope.LEARNERS_READ),
            )
            async with self.services.database.transaction() as work:
                now = self.services.clock.now()
                return (await create_token(work.connection, wanted, now)).text

        return str(self.run(make()))

    def __call__(self, method: str, path: str, *, token: str | None = None, **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.operator}"}
        address = f"/api/v1{path}"
        return self.run(self.asking.request(method, address, headers=headers, **named))


@pytest.fixture
def api(desk: Desk, run: Run, tmp_path: Path) -> Iterator[Api]:
    lesson = tmp_path / "lessons" / "english_learning" / "shadowing" / "lessons" / "unit1"
    write_lesson(lesson, [Part(name="01.mp3", text="one", lasts_ms=300)])
    services = services_for(desk.database, tmp_path, clock=desk.clock)
    asking = client(services, assignments_web.route_handlers)
    yield Api(services, run(asking.__aenter__()), run)
    run(asking.__aexit__(None, None, None))


BODY = {"app_id": "english_learning", "task_id": "shadowing", "lesson_id": "unit1"}


def test_over_http_a_teacher_assigns_to_own_classes(api: Api, desk: Desk) -> None:
    """Made, listed and withdrawn by who teaches it; another teacher is refused each."""
    li, wu = api.teachers["li"], api.teachers["wu"]
    desk.work(lambda work: add_teacher(work, "3b", "li", actor=HOST, now=desk.clock.now()))
    refused = api("POST", "/assignments", token=wu, json=BODY | {"class_id": "3b"})
    assert (refused.status_code, refused.json()["code"]) == (403, "CLASS_NOT_YOURS")
    made = api("POST", "/assignments", token=li, json=BODY | {"class_id": "3b"})
    assert made.status_code == 201, made.text
    assert (made.json()["class_id"], made.json()["learner_id"]) == ("3b", None)
    assert api("GET", "/assignments?class=3b", token=li).json()["items"] == [made.json()]
    path = f"/assignments/{made.json()['assignment_id']}"
    for method, asked in (("GET", "/assignments?class=3b"), ("DELETE", path)):
        assert api(method, asked, token=wu).json()["code"] == "CLASS_NOT_YOURS"
    assert api("DELETE", path, token=li).status_code == 204
    assert desk.news() == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"class_id": "3b", "learner_id": "anna"}, 422, "ASSIGNMENT_HOLDER"),
        ({"class_id": "none"}, 404, "CLASS_UNKNOWN"),
        ({"class_id": ""}, 400, "REQUEST_INVALID"),
        ({"class_id": "old"}, 409, "CLASS_ARCHIVED"),
    ],
)
def test_over_http_each_mistake_has_its_code(
    api: Api, desk: Desk, body: dict[str, Any], status: int, code: str
) -> None:
    """And nothing was assigned."""
    desk.work(
        lambda work: create_class(
            work, class_id="old", name="Old", actor=HOST, now=desk.clock.now()
        )
    )
    desk.change("old", archived=True)
    answer = api("POST", "/assignments", json=BODY | body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert desk.news() == []


# At the command line


def test_at_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
) -> None:
    """A class is made, assigned to, listed with it, archived: then nothing more is assigned."""
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_DATABASE_URL", database_url)
    lesson = tmp_path / "lessons" / "english_learning" / "shadowing" / "lessons" / "unit1"
    write_lesson(lesson, [Part(name="01.mp3", text="one", lasts_ms=300)])

    def shell(*arguments: str) -> tuple[int, Any]:
        code = run_command([*arguments, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out.strip() else None

    path = "english_learning/shadowing/unit1"
    assert shell("class", "create", "3B", "--id", "3b")[0] == exits.OK
    code, made = shell("assign", "lesson", path, "--class", "3b")
    assert (code, made["class_id"]) == (exits.OK, "3b")
    assert [one["class_id"] for one in shell("assign", "list")[1]] == ["3b"]
    assert shell("assign", "lesson", path, "--class", "none")[0] == exits.NOT_FOUND
    both = shell("assign", "lesson", path, "--class", "3b", "--device", "toy-1")
    assert both[0] == exits.REFUSED
    assert shell("assign", "withdraw", made["assignment_id"])[0] == exits.OK
    assert shell("class", "archive", "3b")[0] == exits.OK
    assert shell("assign", "lesson", path, "--class", "3b")[0] == exits.REFUSED
