"""Scenes of published courses assigned over HTTP: pinned for good, or refused by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.classroom.loading import read_classroom, write_classroom
from etude.courseware import registry
from etude.courseware.errors import ManifestWithdrawnError
from etude.courseware.gates import CourseSource
from etude.courseware.publishing import Publisher
from etude.examiner import repository as reports
from etude.files import armed
from etude.people import audit
from etude.people.changes import marks
from etude.people.learners import add_learner
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.practice.assigned import ASSIGNMENTS, CoursewarePin
from etude.practice.assignments.published_scenes import require_standing
from etude.practice.course_scenes import lesson_id_of
from etude.rubric.library import RubricLibrary, rubric_digest, rubric_json
from etude.store import Database
from etude.testing.courseware import course, module
from etude.testing.web import client, service_token, services_for
from etude.web.courseware import withdraw_here

Run = Callable[..., Any]
PATH = "/api/v1/assignments"
MODULE = {"course_id": "harbour", "module": 0}


class KilledError(BaseException):
    pass


class Office:
    """A server with the published course "harbour" (two modules) and the learner anna."""

    def __init__(self, database: Database, run: Run, data: Path) -> None:
        self.services = services_for(database, data)
        self.database = database
        self.run = run
        settings = self.services.settings
        self.classrooms = settings.classrooms
        self.publisher = Publisher(
            database,
            settings.blobs,
            self.services.clock,
            classrooms=settings.classrooms,
            legacy=settings.course_manifests,
            token="t" * 32,
        )
        self.source = course(self.classrooms)
        self.token = run(self._furnish())
        self.publish()

    async def _furnish(self) -> str:
        async with self.database.transaction() as work:
            await add_learner(
                work.connection,
                learner_id="anna",
                display_name="Anna",
                locale="en",
                now=self.services.clock.now(),
            )
        return await service_token(self.database, Scope.OPERATE)

    def publish(self) -> int:
        """Publish the course as it is now; return the version."""
        return int(self.run(self.publisher.publish(self.source, HOST)).manifest.version)

    def edit(self, index: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Change a module's classroom and take it as it is, and what builds on it."""
        classroom_id = f"harbour_{index}"
        path = self.classrooms / f"{classroom_id}.json"
        plain = msgspec.json.decode(path.read_bytes())
        change(plain)
        path.write_bytes(write_classroom(read_classroom(msgspec.json.encode(plain))))
        modules: list[Any] = []
        for at, old in enumerate(self.source.modules):
            refs = tuple(
                msgspec.structs.replace(ref, semantic_hash=modules[place].semantic_hash or "")
                for place, ref in enumerate(old.continuity)
            )
            modules.append(module(self.classrooms, f"harbour_{at}", refs))
        self.source = CourseSource(
            course_id="harbour",
            title="Harbour",
            planned=self.source.planned,
            modules=tuple(modules),
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        async def asked() -> Any:
            async with client(self.services, token=self.token) as asking:
                return await asking.request(method, path, json=body)

        return self.run(asked())

    def assign(self, **body: Any) -> Any:
        return self.ask("POST", PATH, {"learner_id": "anna"} | body)

    def pin(self, **changed: Any) -> dict[str, Any]:
        found = self.ask("GET", "/api/learn/courses/harbour").json()["modules"][0]
        return {
            "courseware_id": found["coursewareId"],
            "version": found["coursewareVersion"],
            "content_hash": found["contentHash"],
            "scene_id": "sc_5",
        } | changed

    def standing(self) -> list[str]:
        items = self.ask("GET", PATH).json()["items"]
        return [one["assignment_id"] for one in items if one["withdrawn_at"] is None]

    def read(self, act: Callable[[Any], Any]) -> Any:
        async def main() -> Any:
            async with self.database.read() as connection:
                return await act(connection)

        return self.run(main())


@pytest.fixture
def office(database: Database, run: Run, tmp_path: Path) -> Office:
    return Office(database, run, tmp_path)


def retitled(text: str) -> Callable[[dict[str, Any]], None]:
    """Change what the practice scene's sentence says."""

    def change(plain: dict[str, Any]) -> None:
        plain["scenes"][-1]["content"]["clips"][0]["text"] = text

    return change


def another(plain: dict[str, Any]) -> None:
    """Add a second practice scene."""
    scene = msgspec.json.decode(msgspec.json.encode(plain["scenes"][-1]))
    plain["scenes"].append(scene | {"id": "sc_6", "order": 6, "title": "Once more"})


def without(plain: dict[str, Any]) -> None:
    """Take the practice scene away."""
    plain["scenes"].pop()


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_courses_scene_is_assigned_as_it_is_now(office: Office) -> None:
    """The newest version's pin is stored and shown; the task is one of the scene's language."""
    answer = office.assign(course=MODULE)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["courseware"] == office.pin()
    pin = CoursewarePin(**office.pin())
    assert (made["app_id"], made["task_id"]) == ("english_learning", "shadowing")
    assert (made["lesson_id"], made["listen_ratio"]) == (lesson_id_of(pin), None)
    by_pin = office.assign(courseware=office.pin()).json()
    assert by_pin["courseware"] == made["courseware"]
    assert len(office.standing()) == 2


def test_an_assignment_keeps_its_pin_when_the_course_is_republished(office: Office) -> None:
    """Edited and published as version 2: the old one stays, the next one is the new version."""
    first = office.assign(course=MODULE).json()
    old = office.pin()
    office.edit(0, retitled("The sea swells twice."))
    assert office.publish() == 2
    second = office.assign(course=MODULE).json()
    older = office.assign(course={**MODULE, "version": 1}).json()
    shown = {one["assignment_id"]: one for one in office.ask("GET", PATH).json()["items"]}
    assert shown[first["assignment_id"]]["courseware"] == old == older["courseware"]
    assert second["courseware"]["version"] == 2
    assert second["courseware"] == office.pin()
    assert second["lesson_id"] != first["lesson_id"] == older["lesson_id"]


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        ({"course": {"course_id": "other", "module": 0}}, (404, "COURSE_UNPUBLISHED")),
        ({"course": {**MODULE, "version": 9}}, (404, "COURSE_UNPUBLISHED")),
        ({"course": {"course_id": "harbour", "module": 2}}, (404, "COURSE_MODULE_MISSING")),
        (
            {"course": {**MODULE, "scene_id": "sc_1"}},
            (404, "PRACTICE_SCENE_UNKNOWN"),
        ),
        (
            {"course": MODULE, "app_id": "mind_games", "task_id": "x"},
            (404, "TASK_UNKNOWN"),
        ),
        (
            {
                "course": MODULE,
                "app_id": "story_time",
                "task_id": "retelling",
            },
            (422, "COURSE_TASK_UNFIT"),
        ),
        ({}, (422, "ASSIGNED_LESSON")),
        ({"lesson_id": "unit1"}, (422, "ASSIGNED_LESSON")),
        ({"course": MODULE, "app_id": "x"}, (422, "ASSIGNED_LESSON")),
    ],
)  # fmt: skip
def test_what_cannot_be_assigned_is_named(
    office: Office, wanted: dict[str, Any], refusal: tuple[int, str]
) -> None:
    """Course, version, module, scene, task: its own code each, and nothing is stored."""
    assert code(office.assign(**wanted)) == refusal
    assert office.standing() == []


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"content_hash": "sha256:" + "0" * 64}, (409, "PIN_HASH_MISMATCH")),
        ({"version": 9}, (404, "COURSEWARE_UNKNOWN")),
        ({"courseware_id": "cw_other"}, (404, "COURSEWARE_UNKNOWN")),
        ({"scene_id": "nowhere"}, (404, "PRACTICE_SCENE_UNKNOWN")),
    ],
)
def test_a_pin_must_be_what_was_published(
    office: Office, changed: dict[str, Any], refusal: tuple[int, str]
) -> None:
    """Any part of it other than published: refused, by the code of that part."""
    assert code(office.assign(courseware=office.pin(**changed))) == refusal


def test_of_several_scenes_one_must_be_named(office: Office) -> None:
    """The answer says which there are; a module without any says that."""
    office.edit(0, another)
    office.edit(1, without)
    office.publish()
    answer = office.assign(course=MODULE)
    assert code(answer) == (409, "PRACTICE_SCENE_SEVERAL")
    assert "sc_5" in answer.json()["detail"]
    assert "sc_6 (Once more)" in answer.json()["detail"]
    named = office.assign(course={**MODULE, "scene_id": "sc_6"}).json()
    assert named["courseware"]["scene_id"] == "sc_6"
    none = office.assign(course={"course_id": "harbour", "module": 1})
    assert code(none) == (409, "PRACTICE_SCENE_NONE")


def test_a_flipped_byte_of_the_stored_bundle_is_refused(office: Office) -> None:
    """Anywhere in the file: a bundle's code, no assignment."""
    row = office.read(lambda connection: registry.version(connection, "cw_harbour_0", 1))
    file = office.services.blobs.file_of(row.bundle_sha256)
    whole = file.read_bytes()
    file.chmod(0o600)
    for at in range(0, len(whole), len(whole) // 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        answer = office.assign(course=MODULE)
        assert answer.json()["code"].startswith("BUNDLE_"), at
        assert answer.status_code in {413, 415, 422}
    file.unlink()
    gone = office.assign(course=MODULE)
    assert code(gone) == (503, "BUNDLE_STORED_MISSING")
    assert office.standing() == []


def test_the_embedded_rubric_is_kept_for_the_examiner(office: Office) -> None:
    """By its digest, once, whatever the school's folder has under its name."""
    rubric = RubricLibrary.load().get("follow-read-en")
    digest = rubric_digest(rubric)
    assert office.read(lambda connection: reports.rubric_body(connection, digest)) is None
    for _ in range(2):
        office.assign(course=MODULE)
    assert office.read(lambda c: reports.rubric_body(c, digest)) == rubric_json(rubric)


def withdraw(office: Office, version: int) -> Any:
    path = f"/api/courses/harbour/manifests/{version}/withdraw"
    return office.ask("POST", path, {"reason": "A mistake in sentence one."})


def test_what_is_withdrawn_is_assigned_to_nobody(office: Office) -> None:
    """410 from then on; assignments of it are withdrawn, told and audited; of others they stay."""
    first = office.assign(course=MODULE).json()["assignment_id"]
    shared = office.assign(course={"course_id": "harbour", "module": 1}).json()["assignment_id"]
    old = office.pin()
    office.edit(0, retitled("The sea swells twice."))
    office.publish()
    second = office.assign(course=MODULE).json()["assignment_id"]
    assert withdraw(office, 1).status_code == 204
    assert office.standing() == [shared, second]
    assert code(office.assign(courseware=old)) == (410, "MANIFEST_WITHDRAWN")
    by_course = office.assign(course={**MODULE, "version": 1})
    assert code(by_course) == (410, "MANIFEST_WITHDRAWN")
    told = {mark.subject_key for mark in office.read(marks) if mark.kind == ASSIGNMENTS}
    assert len(told) == 3
    page = office.read(audit.list_audit)
    assert sum(one.action == "assignment.withdrawn" for one in page.items) == 1
    assert withdraw(office, 1).status_code == 204  # twice is once
    assert office.standing() == [shared, second]
    assert first not in office.standing()


def test_a_withdrawal_that_dies_half_way_withdraws_nothing(office: Office) -> None:
    """Killed in the midst: version and assignment stand; asked for again, both are withdrawn."""
    office.assign(course=MODULE)

    def kill(reached: str) -> None:
        if reached == "practice.course.unassigned":
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        office.run(withdraw_here(office.services, "harbour", 1, "A mistake.", HOST))
    assert len(office.standing()) == 1
    assert office.ask("GET", "/api/learn/courses/harbour?version=1").status_code == 200
    withdraw(office, 1)
    assert office.standing() == []
    assert office.ask("GET", "/api/learn/courses/harbour?version=1").status_code == 410


def test_no_withdrawal_passes_an_assignment_by(office: Office) -> None:
    """Found before, stored after: whichever comes first, none of a withdrawn version counts."""
    pin = CoursewarePin(**office.pin())
    withdraw(office, 1)

    async def late() -> None:
        async with office.database.transaction() as work:
            await require_standing(work, pin)

    with pytest.raises(ManifestWithdrawnError):
        office.run(late())
