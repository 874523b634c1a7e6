import gzip
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.people.scopes import Scope
from etude.people.staff import add_staff
from etude.people.tokens import TokenRequest, create_token
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.web import client, service_token, services_for
from etude.web import people
from etude.web.services import Services

Run = Callable[[Coroutine[Any, Any, Any]], Any]
ROSTER = "/classes/3b/roster"


class Api:
    """The routes of people, asked as an operator's service unless told otherwise."""

    def __init__(self, services: Services, asking: httpx2.AsyncClient, run: Run) -> None:
        self.services = services
        self.asking = asking
        self.run = run
        self.clock = services.clock
        self.token = run(service_token(services.database, Scope.OPERATE))

    def __call__(self, method: str, path: str, *, token: str | None = None, **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.token}", **named.pop("headers", {})}
        asked = self.asking.request(method, f"/api/v1{path}", headers=headers, **named)
        return self.run(asked)

    def made(self, class_id: str = "3b") -> None:
        answer = self("POST", "/classes", json={"name": "三年级二班", "class_id": class_id})
        assert answer.status_code == 201, answer.text

    def learner(self, name: str) -> str:
        return str(self("POST", "/learners", json={"display_name": name}).json()["learner_id"])

    def teacher(self, staff_id: str, *scopes: Scope) -> str:
        async def make() -> str:
            now = self.clock.now()
            wanted = TokenRequest(kind="staff", principal_id=staff_id, scopes=scopes)
            async with self.services.database.transaction() as work:
                await add_staff(
                    work.connection,
                    staff_id=staff_id,
                    name=staff_id,
                    role="teacher",
                    password_hash="x",
                    now=now,
                )
                return (await create_token(work.connection, wanted, now)).text

        return str(self.run(make()))

    def load(self, data: str | bytes, **named: Any) -> Any:
        content = data.encode() if isinstance(data, str) else data
        headers = {"Content-Type": "text/csv"} | named.pop("headers", {})
        return self("POST", ROSTER, content=content, headers=headers, **named)

    def names(self, query: str = "") -> list[str]:
        items = self("GET", ROSTER + query).json()["items"]
        return [each["display_name"] for each in items]

    def audited(self, action: str) -> list[tuple[str, str | None]]:
        items = self("GET", "/audit", params={"limit": "200"}).json()["items"]
        return [
            (each["subject"]["kind"], each["subject"]["id"])
            for each in items
            if each["action"] == action
        ]


@pytest.fixture
def api(database: Database, run: Run, tmp_path: Path) -> Iterator[Api]:
    services = services_for(database, tmp_path, clock=ManualClock())
    asking = client(services, people.route_handlers)
    yield Api(services, run(asking.__aenter__()), run)
    run(asking.__aexit__(None, None, None))


def test_a_class_is_made_shown_listed_changed(api: Api) -> None:
    """201 with its address; a field that is left out stays, and the audit log names the class."""
    made = api("POST", "/classes", json={"name": " 3B ", "grade": "3", "class_id": "3b"})
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/classes/3b")
    assert made.json() | {"created_at": ""} == {
        "class_id": "3b",
        "name": "3B",
        "grade": "3",
        "created_at": "",
        "archived_at": None,
    }
    assert api("GET", "/classes/3b").json() == made.json() | {"teachers": []}
    assert api("GET", "/classes").json() == {"items": [made.json()], "next_cursor": None}
    changed = api("PATCH", "/classes/3b", json={"name": "4B", "archived": True})
    assert (changed.json()["name"], changed.json()["grade"]) == ("4B", "3")
    assert changed.json()["archived_at"] is not None
    back = api("PATCH", "/classes/3b", json={"archived": False, "grade": None}).json()
    assert (back["archived_at"], back["grade"]) == (None, None)
    assert api.audited("class.created") == [("class", "3b")]
    assert len(api("POST", "/classes", json={"name": "x"}).json()["class_id"]) == 36


def test_who_is_in_it_is_dated(api: Api) -> None:
    """Put in, shown for that time, taken out; each who is shown is in the audit log."""
    api.made()
    anna, ben = api.learner("Anna"), api.learner("Ben")
    stay = {"starts_at": "2026-02-01T08:00:00+08:00", "ends_at": "2027-02-01T08:00:00+08:00"}
    put = api("PUT", f"{ROSTER}/{anna}", json=stay)
    assert (put.status_code, put.json()["starts_at"]) == (200, "2026-02-01T00:00:00Z")
    api("PUT", f"{ROSTER}/{ben}", json={})
    assert api("PUT", f"{ROSTER}/{ben}", json={}).status_code == 200
    assert api.names() == ["Anna", "Ben"]
    assert api.names("?at=2026-02-02T00:00:00Z") == ["Anna"]
    assert api("DELETE", f"{ROSTER}/{anna}").status_code == 204
    assert api("DELETE", f"{ROSTER}/{anna}").status_code == 204
    assert (api.names(), api.names("?history=true")) == (["Ben"], ["Anna", "Ben"])
    assert api("DELETE", f"{ROSTER}/{ben}?at=2026-12-01T00:00:00Z").status_code == 204
    assert api("GET", ROSTER).json()["items"][0]["ends_at"] == "2026-12-01T00:00:00Z"
    assert api.audited("class.roster_read").count(("learner", anna)) == 3
    assert api.audited("class.left") == [("learner", anna), ("learner", ben)]


def test_a_roster_is_posted_as_csv(api: Api) -> None:
    """Also packed; the same again changes nothing; what is new has the language asked for."""
    api.made()
    data = "name\nAnna\n王小明\n"
    done = api.load(data, params={"locale": "en"})
    assert (done.status_code, done.json()) == (
        200,
        {"lines": 2, "added": 2, "joined": 2, "devices": 0, "empty_lines": []},
    )
    again = api.load(gzip.compress(data.encode()), headers={"Content-Encoding": "gzip"})
    assert again.json() == {"lines": 2, "added": 0, "joined": 0, "devices": 0, "empty_lines": []}
    assert {each["locale"] for each in api("GET", "/learners").json()["items"]} == {"en"}
    assert api.names() == ["Anna", "王小明"]


def test_wrong_lines_are_all_told(api: Api) -> None:
    """422 with each line's number, code and words in the caller's language, and no name."""
    api.made()
    answer = api.load("Anna\n,x\nBen,nobody\n", headers={"Accept-Language": "zh-CN"})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["lines"]) == (
        422,
        "ROSTER_INVALID",
        "2, 3",
    )
    assert [(each["line"], each["code"]) for each in problem["errors"]] == [
        (2, "ROSTER_LINE_NAME"),
        (3, "ROSTER_LINE_LEARNER_UNKNOWN"),
    ]
    assert problem["errors"][0]["message"].startswith("第 2 行")
    assert "Ben" not in answer.text
    assert api("GET", "/learners").json()["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "named", "status", "code"),
    [
        ("GET", "/classes/none", {}, 404, "CLASS_UNKNOWN"),
        ("GET", "/classes/none/roster", {}, 404, "CLASS_UNKNOWN"),
        ("GET", "/classes/3b/roster?at=2026-02-02T00:00:00", {}, 422, "TIME_OUT_OF_RANGE"),
        ("POST", "/classes", {"json": {"name": "x", "class_id": "3b"}}, 409, "CLASS_EXISTS"),
        ("POST", "/classes", {"json": {"name": "x", "class_id": "3 b"}}, 400, "REQUEST_INVALID"),
        ("POST", "/classes", {"json": {"name": " "}}, 422, "NAME_INVALID"),
        ("PATCH", "/classes/3b", {"json": {"name": None}}, 400, "REQUEST_INVALID"),
        ("PUT", "/classes/3b/roster/nobody", {"json": {}}, 404, "LEARNER_UNKNOWN"),
        ("PUT", "/classes/3b/teachers/nobody", {}, 404, "STAFF_UNKNOWN"),
        ("POST", ROSTER, {"json": {}}, 415, "MEDIA_TYPE_UNSUPPORTED"),
    ],
)
def test_each_mistake_has_its_code(
    api: Api, method: str, path: str, named: dict[str, Any], status: int, code: str
) -> None:
    """And nothing was changed."""
    api.made()
    answer = api(method, path, **named)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert len(api("GET", "/classes").json()["items"]) == 1


def test_what_is_no_roster_has_its_code(api: Api) -> None:
    """Nothing in it, another encoding, too many lines, an archived class, never in it."""
    api.made()
    ben = api.learner("Ben")
    codes = [
        api.load(data).json()["code"]
        for data in ("", "王小明".encode("gb18030"), "x\n" * 1001, "x" * 600_000)
    ]
    assert codes == [
        "ROSTER_EMPTY",
        "ROSTER_FILE_UNREADABLE",
        "ROSTER_TOO_LONG",
        "BODY_TOO_LARGE",
    ]
    assert api("DELETE", f"{ROSTER}/{ben}").json()["code"] == "CLASS_MEMBER_UNKNOWN"
    api("PATCH", "/classes/3b", json={"archived": True})
    assert api.load("Anna\n").json()["code"] == "CLASS_ARCHIVED"
    assert api("PUT", f"{ROSTER}/{ben}", json={}).json()["code"] == "CLASS_ARCHIVED"


def test_a_teacher_sees_own_classes_and_changes_none(api: Api) -> None:
    """Added by an operator; not others'; what changes rosters needs `operate`."""
    for class_id in ("3b", "4a"):
        api.made(class_id)
    li = api.teacher("li", Scope.LEARNERS_READ)
    wu = api.teacher("wu", Scope.LESSONS_ASSIGN)
    api.load("Anna\n")
    assert api("GET", "/classes", token=li).json()["items"] == []
    assert api("GET", ROSTER, token=li).json()["code"] == "CLASS_NOT_YOURS"
    assert api("PUT", "/classes/3b/teachers/li").status_code == 204
    assert api("GET", "/classes/3b", token=li).json()["teachers"] == ["li"]
    assert [one["class_id"] for one in api("GET", "/classes", token=li).json()["items"]] == ["3b"]
    assert len(api("GET", ROSTER, token=li).json()["items"]) == 1
    assert api("GET", "/classes/4a", token=li).json()["code"] == "CLASS_NOT_YOURS"
    assert api("GET", "/classes", token=wu).json()["code"] == "FORBIDDEN_SCOPE"
    for method, path in (
        ("POST", "/classes"),
        ("PATCH", "/classes/3b"),
        ("PUT", "/classes/3b/teachers/li"),
        ("DELETE", "/classes/3b/teachers/li"),
        ("PUT", f"{ROSTER}/x"),
        ("DELETE", f"{ROSTER}/x"),
        ("POST", ROSTER),
    ):
        assert api(method, path, token=li, json={}).json()["code"] == "FORBIDDEN_SCOPE"
    assert api("DELETE", "/classes/3b/teachers/li").status_code == 204
    assert api("DELETE", "/classes/3b/teachers/li").json()["code"] == "CLASS_STAFF_UNKNOWN"
    assert api("GET", ROSTER, token=li).json()["code"] == "CLASS_NOT_YOURS"
