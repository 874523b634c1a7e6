import io
import json
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.people.scopes import Scope
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.web import client, service_token, services_for
from etude.web import people
from etude.web.services import Services

Run = Callable[[Coroutine[Any, Any, Any]], Any]
START = "2026-09-01T08:00:00+08:00"


class Api:
    """The routes of people, asked with the token of an operator's service unless told otherwise."""

    def __init__(self, services: Services, asking: httpx2.AsyncClient, run: Run) -> None:
        self.services = services
        self.asking = asking
        self.run = run
        self.token = run(service_token(services.database, Scope.OPERATE))

    def __call__(self, method: str, path: str, *, token: str | None = None, **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.token}", **named.pop("headers", {})}
        asked = self.asking.request(method, f"/api/v1{path}", headers=headers, **named)
        return self.run(asked)

    def learner(self, name: str = "Ada") -> str:
        answer = self("POST", "/learners", json={"display_name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["learner_id"])

    def device(self, device_id: str = "toy-1") -> str:
        answer = self("POST", "/devices", json={"device_id": device_id, "name": "Toy"})
        assert answer.status_code == 201, answer.text
        return device_id

    def audited(self, **query: str) -> list[tuple[str, str | None]]:
        items = self("GET", "/audit", params=query).json()["items"]
        return [(each["action"], each["subject"]["id"]) for each in items]


@pytest.fixture
def api(database: Database, run: Run, tmp_path: Path) -> Iterator[Api]:
    services = services_for(database, tmp_path, clock=ManualClock())
    asking = client(services, people.route_handlers)
    yield Api(services, run(asking.__aenter__()), run)
    run(asking.__aexit__(None, None, None))


def test_a_learner_is_added_shown_listed_and_each_read_is_audited(api: Api) -> None:
    """201 with its address; every look at the record is in the log, the list too."""
    made = api("POST", "/learners", json={"display_name": " 爱达 ", "locale": "en"})
    learner_id = made.json()["learner_id"]
    assert made.status_code == 201
    assert made.headers["location"] == f"/api/v1/learners/{learner_id}"
    shown = api("GET", f"/learners/{learner_id}")
    assert shown.json() == made.json() | {"display_name": "爱达", "locale": "en"}
    assert api("GET", "/learners").json() == {"items": [shown.json()], "next_cursor": None}
    assert api.audited(learner=learner_id) == [
        ("learner.added", learner_id),
        ("learner.read", learner_id),
        ("learner.listed", learner_id),
    ]


def test_an_erased_learner_is_gone_everywhere(api: Api) -> None:
    """202, then 410 at every address of the learner, and in no list."""
    learner_id = api.learner()
    erased = api("DELETE", f"/learners/{learner_id}")
    assert (erased.status_code, erased.json()) == (202, {"status": "erased", "files": "queued"})
    for method, path in (("GET", ""), ("GET", "/export"), ("DELETE", "")):
        answer = api(method, f"/learners/{learner_id}{path}")
        assert (answer.status_code, answer.json()["code"]) == (410, "LEARNER_ERASED")
        assert learner_id not in answer.text
    assert api("GET", "/learners").json()["items"] == []
    assert api.audited()[-1] == ("learner.erased", None)


def test_a_learners_token_is_refused_as_gone_after_the_erasure(api: Api) -> None:
    """A device that shows the token of an erased learner is told 410."""
    learner_id = api.learner()
    token = api(
        "POST",
        "/tokens",
        json={"kind": "learner", "principal_id": learner_id, "scopes": ["sessions:write"]},
    ).json()["token"]
    assert api("GET", "/devices", token=token).status_code == 403
    api("DELETE", f"/learners/{learner_id}")
    answer = api("GET", "/devices", token=token)
    assert (answer.status_code, answer.json()["code"]) == (410, "LEARNER_ERASED")


def test_an_export_is_one_archive(api: Api) -> None:
    """The answer is a ZIP with a file name, and the export is audited."""
    learner_id = api.learner("Ada")
    answer = api("GET", f"/learners/{learner_id}/export")
    assert answer.headers["content-type"] == "application/zip"
    assert f"learner-{learner_id}.zip" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert json.loads(archive.read("learner.json"))["display_name"] == "Ada"
    assert api.audited(learner=learner_id)[-1] == ("learner.exported", learner_id)


def test_a_device_goes_from_hand_to_hand(api: Api) -> None:
    """Held, handed on, refused where somebody else has it, given back: as the list then says."""
    device_id, ada, ben = api.device("AA:BB:CC"), api.learner("Ada"), api.learner("Ben")
    path = f"/devices/{device_id}/holders"
    first = api("POST", path, json={"learner_id": ada, "starts_at": START})
    assert (first.status_code, first.headers["location"]) == (201, f"/api/v1{path}")
    second = {"learner_id": ben, "starts_at": "2026-09-02T08:00:00+08:00"}
    assert api("POST", path, json=second).status_code == 201
    conflict = api("POST", path, json=second | {"learner_id": ada})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "HOLDER_OVERLAP")
    assert (conflict.json()["holder"], conflict.json()["starts_at"]) == (
        ben,
        "2026-09-02T00:00:00+00:00",
    )
    ended = api("POST", f"/devices/{device_id}/release", json={"at": "2026-09-03T00:00:00Z"})
    assert (ended.status_code, ended.json()["ends_at"]) == (200, "2026-09-03T00:00:00Z")
    listed = api("GET", path).json()
    assert [(each["learner_id"], each["ends_at"]) for each in listed] == [
        (ada, "2026-09-02T00:00:00Z"),
        (ben, "2026-09-03T00:00:00Z"),
    ]
    assert api.audited(learner=ben)[1:] == [("device.held", ben), ("device.released", ben)]


def test_a_device_without_an_id_gets_one(api: Api) -> None:
    """Who has no serial number to give is given an id."""
    made = api("POST", "/devices", json={"name": "Tablet 3"}).json()
    assert api("GET", f"/devices/{made['device_id']}").json() == made
    assert api("GET", "/devices").json()["items"] == [made]


def test_a_device_is_registered_once(api: Api) -> None:
    """The second registration is a conflict that names the id."""
    api.device()
    again = api("POST", "/devices", json={"device_id": "toy-1", "name": "Toy"})
    assert (again.status_code, again.json()["code"]) == (409, "DEVICE_EXISTS")


def test_a_token_is_shown_once_and_revoked_at_once(api: Api) -> None:
    """The text is in the first answer only, and nothing keeps that answer; 204, then 401."""
    api.device()
    wish = {"kind": "device", "principal_id": "toy-1", "scopes": ["sessions:read"], "label": "x"}
    made = api("POST", "/tokens", json=wish)
    shown = made.json()
    token_id, text = shown["token_id"], shown.pop("token")
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    assert made.headers["location"] == f"/api/v1/tokens/{token_id}"
    assert api("GET", f"/tokens/{token_id}").json() == shown
    listed = api("GET", "/tokens").text
    assert token_id in listed
    assert text[-64:] not in listed
    assert api("GET", "/devices", token=text).status_code == 403
    for _ in range(2):
        revoked = api("DELETE", f"/tokens/{token_id}")
        assert (revoked.status_code, revoked.content) == (204, b"")
    assert api("GET", "/devices", token=text).status_code == 401
    assert api.audited()[-2:] == [("token.revoked", token_id)] * 2


def test_lists_go_on_where_they_stopped(api: Api) -> None:
    """Following the cursors shows everything once; a made-up cursor is refused."""
    everyone = [api.learner(str(number)) for number in range(5)]
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = api("GET", "/learners", params=query).json()
        found += [each["learner_id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == everyone
    bad = api("GET", "/learners", params={"cursor": "bm90aGluZw"})
    assert (bad.status_code, bad.json()["code"]) == (400, "CURSOR_INVALID")
    for limit in ("0", "201", "x"):
        assert api("GET", "/learners", params={"limit": limit}).status_code == 400


def test_a_reader_of_learners_can_only_read_them(api: Api) -> None:
    """`learners:read` opens the list and the record, and nothing else."""
    learner_id = api.learner()
    token = api.run(service_token(api.services.database, Scope.LEARNERS_READ))
    allowed = {("GET", "/learners"), ("GET", f"/learners/{learner_id}")}
    asked = {
        *allowed,
        ("POST", "/learners"),
        ("DELETE", f"/learners/{learner_id}"),
        ("GET", f"/learners/{learner_id}/export"),
        ("GET", "/devices"),
        ("GET", "/tokens"),
        ("GET", "/audit"),
    }
    for method, path in asked:
        body = {"json": {"display_name": "x"}} if method == "POST" else {}
        status = api(method, path, token=token, **body).status_code
        assert status == (200 if (method, path) in allowed else 403)


WRONG_BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/learners", {}),
    ("/learners", {"display_name": ""}),
    ("/learners", {"display_name": "x" * 201}),
    ("/learners", {"display_name": 7}),
    ("/learners", {"display_name": "a\x00b"}),
    ("/learners", {"display_name": "  "}),
    ("/learners", {"display_name": "Ada", "locale": "fr"}),
    ("/learners", {"display_name": "Ada", "admin": True}),
    ("/devices", {"name": "Toy", "device_id": "a/b"}),
    ("/devices", {"name": "Toy", "device_id": ""}),
    ("/devices", {"name": "Toy", "device_id": "x" * 129}),
    ("/devices/toy-1/holders", {"learner_id": "x"}),
    ("/devices/toy-1/holders", {"learner_id": "x", "starts_at": "2026-09-01T08:00:00"}),
    ("/devices/toy-1/holders", {"learner_id": "x", "starts_at": "0001-01-01T00:00:00+14:00"}),
    ("/devices/toy-1/holders", {"learner_id": "x", "starts_at": "9999-12-31T23:59:59-14:00"}),
    (
        "/devices/toy-1/holders",
        {"learner_id": "x", "starts_at": START, "ends_at": START},
    ),
    ("/devices/toy-1/release", {"at": None}),
    ("/tokens", {"kind": "device", "principal_id": "toy-1", "scopes": []}),
    ("/tokens", {"kind": "device", "principal_id": "toy-1", "scopes": ["root"]}),
    ("/tokens", {"kind": "device", "principal_id": "toy-1", "scopes": ["operate"]}),
    ("/tokens", {"kind": "robot", "principal_id": "toy-1", "scopes": ["operate"]}),
    ("/tokens", {"kind": "service", "principal_id": "a b", "scopes": ["operate"]}),
    (
        "/tokens",
        {
            "kind": "service",
            "principal_id": "x",
            "scopes": ["operate"],
            "expires_at": "2020-01-01T00:00:00Z",
        },
    ),
]


def test_a_body_that_breaks_a_rule_is_refused_and_nothing_is_kept(api: Api) -> None:
    """400 or 422 with a code, and the lists are as before."""
    api.device()
    for path, body in WRONG_BODIES:
        answer = api("POST", path, json=body)
        assert answer.status_code in {400, 422}, f"{body} {answer.text}"
        assert answer.headers["content-type"] == "application/problem+json"
    assert api("GET", "/learners").json()["items"] == []
    assert len(api("GET", "/devices").json()["items"]) == 1
    assert len(api("GET", "/tokens").json()["items"]) == 1
    assert api("GET", "/devices/toy-1/holders").json() == []


def test_a_body_that_is_no_object_is_refused(api: Api) -> None:
    """Broken JSON is 400 and never a fault of the server."""
    for body in (b"", b"{", b"[]", b'{"display_name": "\\ud800"}', b"\xff", b"1"):
        headers = {"Content-Type": "application/json"}
        answer = api("POST", "/learners", content=body, headers=headers)
        assert answer.status_code in {400, 422}, f"{body!r} {answer.text}"


def test_a_strange_id_is_not_found(api: Api) -> None:
    """Whatever stands in the place of an id, the answer is 404; what is no text is 400."""
    paths = ("/learners/{}", "/learners/{}/export", "/devices/{}", "/devices/{}/holders")
    for broken in ("%ED%A0%80", "%FF"):
        assert api("GET", f"/learners/{broken}").status_code == 400, broken
    for strange in ("%00", "..%2F", "%E6%9D%8E", "a" * 5000):
        for path in paths:
            assert api("GET", path.format(strange)).status_code == 404, strange
        assert api("DELETE", f"/tokens/{strange}").status_code == 404, strange
    assert api("GET", "/audit", params={"learner": "\x00"}).status_code == 404


def test_what_is_not_there_is_named(api: Api) -> None:
    """Unknown learners, devices, tokens and staff are 404, each with its code."""
    device_id = api.device()
    holding = {"learner_id": "nobody", "starts_at": START}
    asked = {
        "LEARNER_UNKNOWN": api("POST", f"/devices/{device_id}/holders", json=holding),
        "DEVICE_UNKNOWN": api("POST", "/devices/none/holders", json=holding),
        "TOKEN_UNKNOWN": api("DELETE", "/tokens/0000"),
        "STAFF_UNKNOWN": api(
            "POST",
            "/tokens",
            json={"kind": "staff", "principal_id": "nobody", "scopes": ["operate"]},
        ),
    }
    assert {code: answer.json()["code"] for code, answer in asked.items()} == {
        code: code for code in asked
    }
    assert {answer.status_code for answer in asked.values()} == {404}


def test_the_log_shows_who_acted_by_their_public_names(api: Api) -> None:
    """An entry names the actor, the token's public part and the subject as people know them."""
    api.device()
    (entry,) = api("GET", "/audit").json()["items"]
    assert entry["actor"] == {"kind": "service", "key": 1, "id": "test"}
    assert entry["token_id"] == api.token.split("_")[1]
    assert entry["subject"] == {"kind": "device", "key": 1, "id": "toy-1"}
    assert entry["at"] == "2026-03-01T09:00:00Z"
