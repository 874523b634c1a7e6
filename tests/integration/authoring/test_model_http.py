"""Courses that a model writes, over the API: asked for, followed, accounted for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import select

from etude.authoring.composition import course_runs
from etude.authoring.records import RUN
from etude.clock import RandomIds
from etude.courseware.publishers import publisher_for
from etude.jobs.claims import Claims
from etude.people.scopes import Scope
from etude.people.spending.tables import model_call
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.testing.fake_author import CourseModel
from etude.testing.fake_llm import Says
from etude.web.courses import authors_of
from etude.web.services import compose

WANTED = {"author": "llm", "requirement": "A course about the way of water"}
Run = Callable[..., Any]


class Site:
    """A server with a model, an operator's token, and a worker that works when it is told to."""

    def __init__(self, database: Database, data: Path, url: str | None, **more: Any) -> None:
        settings = Settings(
            data=data,
            courseware_publish_token=SecretStr("t" * 40),
            llm_url=url,
            llm_model="small",
            llm_prices="small=1/2",
            **more,
        )
        self.database = database
        self.services = compose(settings, database)

    async def work(self) -> None:
        services = self.services
        runs = course_runs(
            self.database,
            services.clock,
            RandomIds(),
            classrooms=services.settings.classrooms,
            authors=authors_of(services),
            publisher=publisher_for(services.settings, self.database, services.clock),
        )
        claims = Claims(
            self.database,
            services.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={RUN: 10},
            periods_s={},
        )
        for job in await claims.claim(10):
            await runs(job)
            await claims.finish_rest(job)


def with_client(site: Site, run: Run, act: Callable[..., Any]) -> None:
    async def go() -> None:
        token = await web.service_token(site.database, Scope.OPERATE, name="desk")
        async with web.client(site.services, token=token) as client:
            await act(client)

    run(go())


def test_a_course_is_asked_for_followed_and_accounted_for(
    database: Database, tmp_path: Path, run: Run
) -> None:
    """Create, confirm, publish; usage beside the course, the ledger by itself, texts on request."""
    model = CourseModel()

    async def act(client: httpx2.AsyncClient) -> None:
        made = await client.post("/api/courses", json=WANTED)
        assert made.status_code == 201, made.text
        assert made.json()["usage"] is None
        path = f"/api/courses/{made.json()['courseId']}"
        await site.work()
        course = (await client.get(path)).json()
        assert (course["status"], course["author"]) == ("framework_ready", "llm")
        assert course["usage"]["calls"] == 1
        assert course["usage"]["cost"] == pytest.approx((11 + 2 * 7) / 1e6)
        started = await client.post(f"{path}/start", json={"withoutAudio": True})
        assert started.status_code == 202, started.text
        await site.work()
        assert (await client.get(f"{path}/readiness")).json()["ready"]
        assert (await client.post(f"{path}/publish")).json()["version"] == 1
        calls = (await client.get(f"{path}/calls")).json()["items"]
        assert len(calls) == len(model.asked) == 1 + 4 * 7
        assert (calls[0]["stage"], calls[0]["moduleIndex"]) == ("course-framework", None)
        assert (calls[1]["stage"], calls[1]["moduleIndex"]) == ("outlines", 0)
        assert all(one["answer"] is None and one["accepted"] for one in calls)
        told = (await client.get(f"{path}/calls", params={"answers": "true"})).json()["items"]
        assert "courseGoals" in told[0]["answer"]["text"]
        owners = {one.owner for one in await _owners(site)}
        assert len(owners) == 1
        assert next(iter(owners)).startswith("service:")

    with model.serve() as url:
        site = Site(database, tmp_path, url)
        with_client(site, run, act)


async def _owners(site: Site) -> Any:
    async with site.database.read() as connection:
        return list(await connection.execute(select(model_call.c.owner)))


def test_why_a_course_failed_is_told_by_path(database: Database, tmp_path: Path, run: Run) -> None:
    """A framework that breaks its contract twice leaves every violation beside the run."""
    model = CourseModel()
    model.play("course-framework", Says('{"courseTitle": ""}'), Says('{"courseTitle": ""}'))

    async def act(client: httpx2.AsyncClient) -> None:
        made = await client.post("/api/courses", json=WANTED)
        await site.work()
        course = (await client.get(f"/api/courses/{made.json()['courseId']}")).json()
        assert (course["status"], course["errorCode"]) == ("failed", "MODEL_ANSWER_REFUSED")
        problems = course["run"]["problems"]
        assert {"courseTitle", "/"} <= {one["path"] for one in problems}
        assert all("course-framework" in one["detail"] for one in problems)

    with model.serve() as url:
        site = Site(database, tmp_path, url)
        with_client(site, run, act)


@pytest.mark.parametrize(
    ("wanted", "status", "code"),
    [
        (WANTED | {"videoGeneration": True}, 422, "COURSE_OPTION_UNAVAILABLE"),
        (WANTED | {"webSearch": True}, 422, "COURSE_OPTION_UNAVAILABLE"),
        (WANTED | {"imageGeneration": True}, 422, "COURSE_OPTION_UNAVAILABLE"),
        (WANTED | {"requirement": " "}, 422, "COURSE_REQUEST_EMPTY"),
        ({"requirement": "Water"}, 422, "MATERIAL_TOO_LITTLE"),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(
    database: Database, tmp_path: Path, run: Run, wanted: Any, status: int, code: str
) -> None:
    """Options that nothing here has, and requests that say nothing, make no course."""

    async def act(client: httpx2.AsyncClient) -> None:
        answer = await client.post("/api/courses", json=wanted)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert (await client.get("/api/courses")).json()["items"] == []

    with_client(Site(database, tmp_path, "http://127.0.0.1:9/v1"), run, act)


def test_a_spent_quota_is_429_with_the_time_to_wait(
    database: Database, tmp_path: Path, run: Run
) -> None:
    """Who has nothing left today is told before a course is stored, and when to come back."""

    async def act(client: httpx2.AsyncClient) -> None:
        answer = await client.post("/api/courses", json=WANTED)
        assert (answer.status_code, answer.json()["code"]) == (429, "QUOTA_SPENT")
        assert 0 < int(answer.headers["retry-after"]) <= 86_400

    site = Site(database, tmp_path, "http://127.0.0.1:9/v1", llm_quota="tokens=0")
    with_client(site, run, act)


def test_without_a_model_there_is_no_such_author(
    database: Database, tmp_path: Path, run: Run
) -> None:
    """Nothing is configured: the author is not known, and everything else is as it was."""

    async def act(client: httpx2.AsyncClient) -> None:
        answer = await client.post("/api/courses", json=WANTED)
        assert (answer.status_code, answer.json()["code"]) == (422, "AUTHOR_UNKNOWN")

    with_client(Site(database, tmp_path, None), run, act)


def test_a_course_outlives_its_model(database: Database, tmp_path: Path, run: Run) -> None:
    """A course whose model is gone can still be read, and says why it cannot go on."""
    model = CourseModel()
    with model.serve() as url:
        site = Site(database, tmp_path, url)

        async def begin(client: httpx2.AsyncClient) -> None:
            made = await client.post("/api/courses", json=WANTED)
            await site.work()
            found.append(f"/api/courses/{made.json()['courseId']}")

        found: list[str] = []
        with_client(site, run, begin)
    later = Site(database, tmp_path, None)

    async def look(client: httpx2.AsyncClient) -> None:
        assert (await client.get(found[0])).json()["status"] == "framework_ready"
        await client.post(f"{found[0]}/start", json={"withoutAudio": True})
        await later.work()
        assert (await client.get(found[0])).json()["errorCode"] == "AUTHOR_UNKNOWN"

    with_client(later, run, look)
