import asyncio
import json
import zipfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.examiner.learner_data import all_learner_data
from etude.files import armed
from etude.people import audit
from etude.people.changes import marks
from etude.people.devices import add_device
from etude.people.erasure import erase_learner
from etude.people.errors import (
    DeviceUnknownError,
    LearnerErasedError,
    LearnerUnknownError,
    TimeOutOfRangeError,
)
from etude.people.export import export_archive
from etude.people.learners import add_learner
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.practice.assigned import ASSIGNMENTS, AssignmentNews, CoursewarePin, LessonAddress
from etude.practice.assignments import feed, repository
from etude.practice.assignments.assigning import assign, withdraw
from etude.practice.assignments.errors import (
    AssignmentHolderError,
    AssignmentIntervalError,
    AssignmentRatioError,
    AssignmentUnknownError,
)
from etude.practice.assignments.learner_data import assignments_data
from etude.practice.assignments.records import Assignment, NewAssignment
from etude.practice.assignments.tables import assignment
from etude.store import Blobs, Database
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.web import client, service_token, services_for
from etude.web import assignments as assignments_web
from etude.web.services import Services

Run = Callable[[Coroutine[Any, Any, Any]], Any]
LESSON = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="unit1")
PIN = CoursewarePin(courseware_id="c", version=2, content_hash="sha256:0", scene_id="s")
HOUR = timedelta(hours=1)


class KilledError(BaseException):
    pass


class Desk:
    """A teacher at a database with the learner anna and the device toy-1."""

    def __init__(self, database: Database, run: Run) -> None:
        self.database = database
        self.run = run
        self.clock = ManualClock()
        self.ids = CountingIds("as")
        self.work(self._furnish)

    def work(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with self.database.transaction() as work:
                return await act(work)

        return self.run(main())

    def read(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with self.database.read() as connection:
                return await act(connection)

        return self.run(main())

    def assign(self, **wanted: Any) -> Assignment:
        fields = {"lesson": LESSON, "learner_id": "anna"} | wanted
        found: Assignment = self.work(
            lambda work: assign(
                work,
                NewAssignment(**fields),
                assignment_id=self.ids.new(),
                actor=HOST,
                now=self.clock.now(),
            )
        )
        return found

    def withdraw(self, assignment_id: str) -> Assignment:
        found: Assignment = self.work(
            lambda work: withdraw(work, assignment_id, actor=HOST, now=self.clock.now())
        )
        return found

    def told(self) -> list[AssignmentNews]:
        """What a gateway that links now is told."""
        (source,) = feed.change_sources(self.clock)
        return list(self.read(source.everything))

    def changed(self) -> list[AssignmentNews]:
        """What gateways are told about everything that was ever marked."""
        (source,) = feed.change_sources(self.clock)
        found = self.read(marks)
        keys = sorted({mark.subject_key for mark in found if mark.kind == ASSIGNMENTS})
        return list(self.read(lambda connection: source.about(connection, keys)))

    def audited(self) -> list[str]:
        page = self.read(audit.list_audit)
        return [entry.action for entry in page.items if entry.action.startswith("assignment.")]

    def rows(self) -> int:
        return len(self.read(self._rows))

    async def _rows(self, connection: Any) -> Any:
        return (await connection.execute(select(assignment.c.assignment_key))).all()

    async def _furnish(self, work: Any) -> None:
        now = self.clock.now()
        await add_learner(
            work.connection, learner_id="anna", display_name="Anna", locale="en", now=now
        )
        await add_device(work.connection, device_id="toy-1", name="Toy", now=now)


@pytest.fixture
def desk(database: Database, run: Run) -> Desk:
    return Desk(database, run)


def test_what_is_assigned_is_stored_audited_and_told(desk: Desk) -> None:
    """For a learner with all that can be said, for a device with nothing more: both are told."""
    until = desk.clock.now() + HOUR
    first = desk.assign(ends_at=until, listen_ratio=1.4, courseware=PIN)
    second = desk.assign(learner_id=None, device_id="toy-1")
    assert (first.learner_id, first.device_id, first.listen_ratio) == ("anna", None, 1.4)
    assert (first.starts_at, first.ends_at, first.courseware) == (desk.clock.now(), until, PIN)
    assert (second.learner_id, second.device_id, second.ends_at) == (None, "toy-1", None)
    one, two = (news.assigned for news in desk.told())
    assert one is not None
    assert two is not None
    assert (one.assignment_id, one.lesson, one.learner_key) == ("as001", LESSON, first.learner_key)
    assert (one.listen_ratio, one.courseware, one.device_id) == (1.4, PIN, None)
    assert (two.device_id, two.learner_key, two.ends_us) == ("toy-1", None, None)
    assert desk.changed() == desk.told()
    assert desk.audited() == ["assignment.made"] * 2


def test_withdrawn_once_it_counts_no_more(desk: Desk) -> None:
    """It stays in the list with its time; a second time changes and audits nothing."""
    made = desk.assign()
    withdrawn = desk.withdraw(made.assignment_id)
    assert withdrawn.withdrawn_at == desk.clock.now()
    desk.clock.advance(60.0)
    assert desk.withdraw(made.assignment_id) == withdrawn
    assert desk.told() == []
    assert desk.changed() == [AssignmentNews(assignment_key=made.assignment_key)]
    assert desk.audited() == ["assignment.made", "assignment.withdrawn"]
    with pytest.raises(AssignmentUnknownError):
        desk.withdraw("as999")


def test_what_is_over_is_told_to_nobody(desk: Desk) -> None:
    """A gateway that links later hears only of what counts then or later."""
    desk.assign(ends_at=desk.clock.now() + HOUR)
    later = desk.assign(starts_at=desk.clock.now() + 2 * HOUR)
    desk.clock.advance(3600.0)
    assert [news.assignment_key for news in desk.told()] == [later.assignment_key]
    assert [news.assigned is None for news in desk.changed()] == [True, False]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"device_id": "toy-1"}, AssignmentHolderError),
        ({"learner_id": None}, AssignmentHolderError),
        ({"learner_id": "nobody"}, LearnerUnknownError),
        ({"learner_id": None, "device_id": "none"}, DeviceUnknownError),
        ({"listen_ratio": 1.1}, AssignmentRatioError),
        ({"listen_ratio": float("nan")}, AssignmentRatioError),
        ({"ends_at": ManualClock().now()}, AssignmentIntervalError),
        ({"starts_at": ManualClock().now().replace(tzinfo=None)}, TimeOutOfRangeError),
    ],
)
def test_what_cannot_be_is_refused(
    desk: Desk, wanted: dict[str, Any], error: type[Exception]
) -> None:
    """Each with its own error, and nothing is stored."""
    with pytest.raises(error):
        desk.assign(**wanted)
    assert (desk.rows(), desk.audited(), desk.changed()) == (0, [], [])


@pytest.mark.parametrize("instant", ["practice.assignment.stored", "practice.assignment.withdrawn"])
def test_a_kill_before_the_commit_leaves_nothing(desk: Desk, instant: str) -> None:
    """Neither the row nor its change, its audit entry, its mark."""
    made = desk.assign()

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        desk.assign() if instant.endswith("stored") else desk.withdraw(made.assignment_id)
    assert (desk.rows(), desk.audited(), len(desk.told())) == (1, ["assignment.made"], 1)


def test_an_erased_learner_leaves_no_assignment(desk: Desk, tmp_path: Path) -> None:
    """The rows go, gateways are told, a device's own stays, and no new one is taken."""
    mine = desk.assign()
    other = desk.assign(learner_id=None, device_id="toy-1")
    blobs = Blobs(tmp_path, desk.clock)
    registry = all_learner_data(desk.clock, blobs, assignments_data(desk.clock))

    async def exported() -> bytes:
        key = mine.learner_key or 0
        return b"".join(
            [part async for part in export_archive(desk.database, registry, key, desk.clock.now())]
        )

    with zipfile.ZipFile(BytesIO(desk.run(exported()))) as archive:
        (line,) = archive.read("assignments.jsonl").splitlines()
    assert json.loads(line)["assignment_id"] == mine.assignment_id
    assert "learner_id" not in json.loads(line)
    desk.work(lambda work: erase_learner(work, registry, "anna", actor=HOST, now=desk.clock.now()))
    assert [news.assigned is None for news in desk.changed()] == [True, False]
    assert [news.assignment_key for news in desk.told()] == [other.assignment_key]
    with pytest.raises(LearnerErasedError):
        desk.assign()


def test_a_list_is_of_everybody_or_of_one(desk: Desk) -> None:
    """By learner, by device, page by page, oldest first."""
    made = [desk.assign(), desk.assign(learner_id=None, device_id="toy-1"), desk.assign()]

    def listed(**of: Any) -> tuple[list[str], str | None]:
        page = desk.read(lambda c: repository.list_assignments(c, **({"limit": 2} | of)))
        return [one.assignment_id for one in page.items], page.next_cursor

    first, cursor = listed()
    rest, end = listed(cursor=cursor)
    assert (first + rest, end) == ([one.assignment_id for one in made], None)
    assert listed(learner_key=made[0].learner_key)[0] == ["as001", "as003"]
    assert listed(device_key=made[1].device_key)[0] == ["as002"]


# Over HTTP


class Api:
    def __init__(self, services: Services, asking: httpx2.AsyncClient, run: Run) -> None:
        self.services = services
        self.asking = asking
        self.run = run
        self.token = self.made(Scope.LESSONS_ASSIGN)

    def made(self, *scopes: Scope) -> str:
        token: str = self.run(
            service_token(self.services.database, *scopes, name=str(scopes[0]).replace(":", "-"))
        )
        return token

    def __call__(self, method: str, path: str = "", *, token: str = "", **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        address = f"/api/v1/assignments{path}"
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


def test_over_http_it_is_assigned_listed_and_withdrawn(api: Api, desk: Desk) -> None:
    """What is shown is what was asked for; every learner shown is in the audit log."""
    wanted = BODY | {"learner_id": "anna", "starts_at": "2026-03-02T09:00:00+08:00"}
    answer = api("POST", json=wanted | {"ends_at": "2026-03-03T09:00:00Z", "listen_ratio": 1.5})
    assert answer.status_code == 201, answer.text
    shown = answer.json()
    assert answer.headers["Location"].endswith(shown["assignment_id"])
    assert (shown["learner_id"], shown["device_id"]) == ("anna", None)
    assert (shown["starts_at"], shown["ends_at"]) == (
        "2026-03-02T01:00:00Z",
        "2026-03-03T09:00:00Z",
    )
    api("POST", json=BODY | {"device_id": "toy-1"})
    assert len(api("GET").json()["items"]) == 2
    (one,) = api("GET", "?learner=anna").json()["items"]
    assert one == shown
    assert [row["device_id"] for row in api("GET", "?device=toy-1").json()["items"]] == ["toy-1"]
    assert api("DELETE", f"/{shown['assignment_id']}").status_code == 204
    assert api("DELETE", f"/{shown['assignment_id']}").status_code == 204
    assert api("GET", "?learner=anna").json()["items"][0]["withdrawn_at"] is not None
    assert desk.audited().count("assignment.listed") == 3


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"learner_id": "anna", "lesson_id": "unit9"}, 404, "LESSON_NOT_INSTALLED"),
        ({"learner_id": "anna", "app_id": "nothing"}, 404, "TASK_UNKNOWN"),
        ({"learner_id": "anna", "task_id": "repeater"}, 422, "TASK_NOT_ASSIGNABLE"),
        ({"learner_id": "anna", "lesson_id": "../unit1"}, 400, "REQUEST_INVALID"),
        ({"learner_id": "anna", "lesson_id": "unit1\n"}, 400, "REQUEST_INVALID"),
        ({"learner_id": "anna", "listen_ratio": 2}, 400, "REQUEST_INVALID"),
        ({"learner_id": "anna", "starts_at": "2026-03-02T09:00:00"}, 400, "REQUEST_INVALID"),
        ({}, 422, "ASSIGNMENT_HOLDER"),
        ({"learner_id": "nobody"}, 404, "LEARNER_UNKNOWN"),
        ({"device_id": "nothing"}, 404, "DEVICE_UNKNOWN"),
    ],
)
def test_over_http_each_mistake_has_its_code(
    api: Api, desk: Desk, body: dict[str, Any], status: int, code: str
) -> None:
    """And nothing was stored."""
    answer = api("POST", json=BODY | body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert desk.rows() == 0


def test_who_may_assign(api: Api, desk: Desk) -> None:
    """`lessons:assign` or `operate`; reading learners or sessions is not enough."""
    others = api.made(Scope.LEARNERS_READ, Scope.SESSIONS_READ)
    operator = api.made(Scope.OPERATE)
    for method, path in (("POST", ""), ("GET", ""), ("DELETE", "/as001")):
        answer = api(method, path, token=others, **({"json": BODY} if method == "POST" else {}))
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN_SCOPE")
    assert desk.rows() == 0
    answer = api("POST", token=operator, json=BODY | {"learner_id": "anna"})
    assert answer.status_code == 201
    unknown = api("DELETE", "/nothing", token=operator)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "ASSIGNMENT_UNKNOWN")


# At the command line


def test_at_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
) -> None:
    """Assign, list, withdraw, each with --json; what is wrong has its exit code."""
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_DATABASE_URL", database_url)
    lesson = tmp_path / "lessons" / "english_learning" / "shadowing" / "lessons" / "unit1"
    write_lesson(lesson, [Part(name="01.mp3", text="one", lasts_ms=300)])

    async def furnish() -> None:
        async with await Database.open(database_url) as database, database.transaction() as work:
            now = ManualClock().now()
            await add_device(work.connection, device_id="toy-1", name="Toy", now=now)

    asyncio.run(furnish())

    def shell(*arguments: str) -> tuple[int, Any]:
        code = run_command(["assign", *arguments, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out.strip() else None

    path = "english_learning/shadowing/unit1"
    times = ("--from", "2026-09-01T08:00:00+08:00", "--until", "2026-09-08T08:00:00+08:00")
    code, made = shell("lesson", path, "--device", "toy-1", *times, "--ratio", "1.3")
    assert code == exits.OK
    assert (made["device_id"], made["lesson_id"], made["listen_ratio"]) == ("toy-1", "unit1", 1.3)
    assert shell("list") == (exits.OK, [made])
    code, withdrawn = shell("withdraw", made["assignment_id"])
    assert code == exits.OK
    assert withdrawn["withdrawn_at"] is not None
    assert shell("lesson", "unit1", "--device", "toy-1")[0] == exits.REFUSED
    assert shell("lesson", path, "--device", "toy-1", "--learner", "anna")[0] == exits.REFUSED
    assert shell("lesson", f"{path}9", "--device", "toy-1")[0] == exits.NOT_FOUND
    assert shell("lesson", path, "--learner", "nobody")[0] == exits.NOT_FOUND
    assert shell("withdraw", "nothing")[0] == exits.NOT_FOUND
