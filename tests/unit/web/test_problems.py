"""The one error shape: every route, every wrong request, both languages."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import structlog
from litestar import get, post
from litestar.params import FromPath, FromQuery, JSONBody
from pydantic import SecretStr

from etude.clock import SystemClock
from etude.errors import ConflictError, EtudeError, ThrottledError
from etude.people.scopes import Scope
from etude.settings import Settings
from etude.store import Database
from etude.testing.web import client, service_token, services_for
from etude.web.app import ROUTE_HANDLERS
from etude.web.declared import EVERYWHERE, Access, declared
from etude.web.errors import DiskNotWritableError
from etude.web.health import Readiness, probe_disk
from etude.web.problems import document
from etude.web.routes import Route, routes
from etude.web.services import compose

ROUTES = routes(ROUTE_HANDLERS)
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "BREW")
PUBLIC = declared(roles=EVERYWHERE, needs=Access.PUBLIC)

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Wanted(msgspec.Struct):
    name: str
    size: int


class _TakenError(ConflictError):
    code = "TEST_TAKEN"


class _SlowDownError(ThrottledError):
    code = "TEST_SLOW_DOWN"


@post("/echo/{number:int}", opt=PUBLIC, sync_to_thread=False)
def echo(data: JSONBody[Wanted], number: FromPath[int], limit: FromQuery[int] = 1) -> Wanted:
    """Return the body."""
    return Wanted(name=data.name, size=number + limit)


@get("/broken", opt=PUBLIC, sync_to_thread=False)
def broken() -> None:
    """Fail as a defect does."""
    secret = "Xiao Ming said"
    raise RuntimeError(secret)


@get("/taken", opt=PUBLIC, sync_to_thread=False)
def taken() -> None:
    """Fail with an error whose parameters try to overwrite members."""
    raise _TakenError(status="fine", code="NONE", place="here")


@get("/slow", opt=PUBLIC, sync_to_thread=False)
def slow() -> None:
    """Ask to come again."""
    raise _SlowDownError(retry_after_s=7)


PUBLISH = "p" * 32
OWN = (echo, broken, taken, slow)


@pytest.fixture
def database(run: Run, sqlite_url: str) -> Any:
    opened: Database = run(Database.open(sqlite_url))
    yield opened
    run(opened.close())


def address(route: Route) -> str:
    parts = ("x" if part[:1] == "{" else part for part in route.path.split("/"))
    return "/".join(parts)


def assert_failure(route: Route, answer: httpx2.Response, status: int | None = None) -> Any:
    """Check the shape that every failure of this route has, and return the document."""
    if not route.declared.envelope:
        return assert_problem(answer, status)
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told.keys() == {"code", "msg", "data"}
    assert told["code"] == answer.status_code == (status or answer.status_code)
    assert told["msg"]
    assert told["data"] is None
    return None


def assert_problem(answer: httpx2.Response, status: int | None = None) -> dict[str, Any]:
    """Check the shape that failures have elsewhere, and return the document."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail", "instance", "code"} <= set(problem)
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"urn:etude:error:{problem['code']}"
    assert problem["instance"] == f"urn:uuid:{answer.headers['x-request-id']}"
    assert problem["title"]
    assert problem["detail"]
    if status is not None:
        assert answer.status_code == status
    return problem


def assert_code(problem: Any, code: str) -> None:
    """Check the code of a problem; an envelope has none."""
    assert problem is None or problem["code"] == code


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_answers_wrong_requests_with_problems(
    route: Route, run: Run, database: Database, tmp_path: Path
) -> None:
    """Wrong method, no token, unknown token, garbage: always a problem document, never a 5xx."""

    async def ask() -> None:
        services = services_for(database, tmp_path)
        token = await service_token(database, Scope.OPERATE)
        taken_methods = {each.method for each in ROUTES if each.path == route.path}
        async with client(services) as asking:
            for method in set(METHODS) - taken_methods:
                answer = await asking.request(method, address(route))
                assert_failure(route, answer, 405)
                allowed = set(answer.headers["allow"].split(", "))
                assert taken_methods <= allowed
                assert method not in allowed
            if not route.declared.public:
                for header in ({}, {"Authorization": "Basic eDp5"}):
                    answer = await asking.request(route.method, address(route), headers=header)
                    assert_code(assert_failure(route, answer, 401), "TOKEN_MISSING")
                    assert answer.headers["www-authenticate"].startswith("Bearer ")
                for wrong in ("x-not-a-token", "etd_" + "0" * 16 + "_" + "0" * 64, "\xe4" * 40):
                    header = {"Authorization": f"Bearer {wrong}".encode()}
                    answer = await asking.request(route.method, address(route), headers=header)
                    assert_code(assert_failure(route, answer, 401), "TOKEN_INVALID")
                    assert wrong not in answer.text
            asking.headers["Authorization"] = f"Bearer {token}"
            for body, media_type in (
                (b"\xff\x00{", "application/json"),
                (b"[" * 100_000, "application/json"),
                (b"null", "application/json"),
                (b"{}", "text/html"),
                (b"a=1", "multipart/form-data"),
            ):
                answer = await asking.request(
                    route.method, address(route), content=body, headers={"Content-Type": media_type}
                )
                assert answer.status_code < 500 or answer.status_code == 503
                if answer.status_code >= 400:
                    assert_failure(route, answer)

    run(ask())


def test_unknown_addresses_are_problems(run: Run, database: Database, tmp_path: Path) -> None:
    """404 with a code, whatever the path looks like and whatever the method."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path)) as asking:
            for path in (
                "/",
                "/nope",
                "/api/v1",
                "/health/x",
                "/%00",
                "/%ff",
                "/../etc/passwd",
                "//",
            ):
                assert (await asking.head(path)).status_code == 404
                for method in ("GET", "POST"):
                    answer = await asking.request(method, path)
                    assert assert_problem(answer, 404)["code"] == "ROUTE_NOT_FOUND"

    run(ask())


def test_a_wrong_body_names_the_field(run: Run, database: Database, tmp_path: Path) -> None:
    """400 names the path of the field, in the body, the query and the path of the address."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path), OWN) as asking:
            wrong = await asking.post("/echo/1", json={"name": "a", "size": "b"})
            problem = assert_problem(wrong, 400)
            assert problem["code"] == "REQUEST_INVALID"
            assert [each["field"] for each in problem["errors"]] == ["body.size"]
            wrong = await asking.post("/echo/1?limit=x", json={"name": "a", "size": 1})
            assert assert_problem(wrong, 400)["field"] == "query.limit"
            assert_problem(await asking.post("/echo/x", json={"name": "a", "size": 1}), 404)
            for body in (b"{", b"[" * 500_000, b'{"name":' * 100_000, b"\xff"):
                answer = await asking.post("/echo/1", content=body)
                assert assert_problem(answer, 400)["code"] == "BODY_MALFORMED"
            right = await asking.post("/echo/1", json={"name": "a", "size": 1})
            assert right.status_code == 201

    run(ask())


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_name_in_the_query_that_the_route_does_not_know_is_refused(
    route: Route, run: Run, database: Database, tmp_path: Path
) -> None:
    """A misspelt filter is told and never passed over; who needs no token may add anything."""

    async def ask() -> None:
        settings = Settings(data=tmp_path, courseware_publish_token=SecretStr(PUBLISH))
        token = PUBLISH if Access.PUBLISH_TOKEN in route.declared.needs else None
        token = token or await service_token(database, Scope.OPERATE)
        async with client(compose(settings, database)) as asking:
            asking.headers["Authorization"] = f"Bearer {token}"
            where = address(route) + "?lerner=1&limt=2"
            answer = await asking.request(route.method, where)
            if route.declared.public:
                assert answer.status_code == (404 if "{" in route.path else 200)
                return
            problem = assert_failure(route, answer, 400)
            if problem is None:
                return
            fields = ["query.lerner", "query.limt"]
            assert [each["field"] for each in problem["errors"]] == fields

    run(ask())


@pytest.mark.parametrize("path", sorted({each.path for each in ROUTES}))
def test_options_tell_every_method_of_an_address(
    path: str, run: Run, database: Database, tmp_path: Path
) -> None:
    """All of them, also where the routes of one address are in several modules."""
    mine = [each for each in ROUTES if each.path == path]

    async def ask() -> None:
        async with client(services_for(database, tmp_path)) as asking:
            answer = await asking.options(address(mine[0]))
            refused = await asking.request("BREW", address(mine[0]))
        taken = {each.method for each in mine}
        head = {"HEAD"} if "GET" in taken else set()
        assert set(answer.headers["allow"].split(", ")) == taken | head | {"OPTIONS"}
        assert answer.headers["allow"] == refused.headers["allow"]

    run(ask())


@pytest.mark.parametrize("path", ["%ff", "%ed%a0%80", "s-1%c3"])
def test_a_path_that_is_no_text_is_refused(
    path: str, run: Run, database: Database, tmp_path: Path
) -> None:
    """Different bytes never stand for the same session; U+FFFD itself may be sent."""

    async def ask() -> None:
        token = await service_token(database, Scope.OPERATE)
        async with client(services_for(database, tmp_path)) as asking:
            asking.headers["Authorization"] = f"Bearer {token}"
            answer = await asking.get(f"/api/v1/sessions/{path}")
            assert assert_problem(answer, 400)["errors"] == [
                {"field": "path", "reason": "not UTF-8"}
            ]
            answer = await asking.get("/api/v1/sessions/%ef%bf%bd")
            assert assert_problem(answer, 404)["code"] == "SESSION_UNKNOWN"

    run(ask())


def test_a_field_is_named_as_the_caller_named_it(
    run: Run, database: Database, tmp_path: Path
) -> None:
    """The names inside the program are its own."""

    async def ask() -> None:
        token = await service_token(database, Scope.OPERATE)
        async with client(services_for(database, tmp_path)) as asking:
            asking.headers["Authorization"] = f"Bearer {token}"
            answer = await asking.get("/api/v1/sessions/s-1/events?format=xml")
            assert assert_problem(answer, 400)["field"] == "query.format"

    run(ask())


def test_json_routes_take_plain_json_only(run: Run, database: Database, tmp_path: Path) -> None:
    """Another media type or a content encoding is 415; over 1 MiB is 413."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path), OWN) as asking:
            for media_type in ("text/plain", "application/msgpack", "multipart/form-data"):
                header = {"content-type": media_type}
                answer = await asking.post("/echo/1", content=b"{}", headers=header)
                assert assert_problem(answer, 415)["expected"] == "application/json"
            header = {"content-encoding": "gzip"}
            answer = await asking.post("/echo/1", content=b"{}", headers=header)
            assert assert_problem(answer, 415)["code"] == "ENCODING_UNSUPPORTED"
            assert answer.headers["accept-encoding"] == "gzip, zstd"
            answer = await asking.post("/echo/1", content=b" " * (1024 * 1024 + 1))
            assert assert_problem(answer, 413)["limit_bytes"] == 1024 * 1024

    run(ask())


def test_a_defect_shows_nothing_of_itself(run: Run, database: Database, tmp_path: Path) -> None:
    """500: neither answer nor log holds the exception's words; the log has type and place."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path), OWN) as asking:
            with structlog.testing.capture_logs() as lines:
                answer = await asking.get("/broken")
            assert assert_problem(answer, 500)["code"] == "INTERNAL"
            assert "Xiao Ming" not in answer.text + json.dumps(lines)
            failed = next(line for line in lines if line["action"] == "http.failed")
            assert failed["error"] == "RuntimeError"
            assert "broken" in failed["where"]
            assert failed["request_id"] == answer.headers["x-request-id"]

    run(ask())


def test_parameters_never_overwrite_the_members(
    run: Run, database: Database, tmp_path: Path
) -> None:
    """An error's parameters become members, except where RFC 9457 or we have one of that name."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path), OWN) as asking:
            problem = assert_problem(await asking.get("/taken"), 409)
            assert (problem["code"], problem["place"]) == ("TEST_TAKEN", "here")

    run(ask())


def test_throttling_says_when_to_come_again(run: Run, database: Database, tmp_path: Path) -> None:
    """`retry_after_s` of an error becomes `Retry-After`."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path), OWN) as asking:
            assert (await asking.get("/slow")).headers["retry-after"] == "7"

    run(ask())


@pytest.mark.parametrize(
    ("wish", "locale", "title"),
    [("zh-CN,en;q=0.5", "zh-CN", "未找到"), ("de", "en", "Not found"), (None, "en", "Not found")],
)
def test_problems_speak_the_callers_language(
    wish: str | None, locale: str, title: str, run: Run, database: Database, tmp_path: Path
) -> None:
    """`Accept-Language` chooses; `Content-Language` says what was chosen."""

    async def ask() -> None:
        async with client(services_for(database, tmp_path)) as asking:
            headers = {} if wish is None else {"Accept-Language": wish}
            answer = await asking.get("/nope", headers=headers)
            assert assert_problem(answer, 404)["title"] == title
            assert answer.headers["content-language"] == locale

    run(ask())


def test_a_missing_message_is_no_failure() -> None:
    """An error without a message still gets its document, with the title for its detail."""

    class NamelessError(EtudeError):
        code = "TEST_NAMELESS"
        status = 409

    problem = json.loads(document(NamelessError(), (), "id", "en"))
    assert (problem["code"], problem["detail"]) == ("TEST_NAMELESS", "Conflict")


def test_ready_tells_what_is_wrong(run: Run, tmp_path: Path, sqlite_url: str) -> None:
    """`/ready` is 200 with schema and disk in order, 503 with a code when the folder is gone."""

    async def ask() -> None:
        async with await Database.open(sqlite_url) as database:
            here = services_for(database, tmp_path, clock=SystemClock())
            async with client(here) as asking:
                assert (await asking.get("/ready")).json() == {"status": "ready"}
            empty = tmp_path / "empty"
            empty.mkdir()
            async with client(services_for(database, empty)) as asking:
                problem = assert_problem(await asking.get("/ready"), 503)
                assert problem["code"] == "SCHEMA_BEHIND"
                assert (await asking.get("/health")).json() == {"status": "ok"}

    run(ask())


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The probe names the system's reason, and leaves nothing behind when it can write."""
    with pytest.raises(DiskNotWritableError) as raised:
        probe_disk(tmp_path / "gone")
    assert raised.value.params["reason"]
    probe_disk(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_probes_touch_the_disk_once_a_second(run: Run, database: Database, tmp_path: Path) -> None:
    """However many ask at the same time, one check answers them all."""
    checks: list[int] = []

    async def count(_: object) -> None:
        checks.append(1)
        await asyncio.sleep(0)

    async def ask() -> None:
        readiness = Readiness(count)
        services = services_for(database, tmp_path)
        await asyncio.gather(*(readiness.check(services) for _ in range(50)))
        assert len(checks) == 1

    run(ask())
