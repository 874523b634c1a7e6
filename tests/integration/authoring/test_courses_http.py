"""Courses over HTTP: the whole way from material to a manifest, and what is refused."""

import io
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from etude.authoring.composition import course_runs, known_authors
from etude.authoring.records import RUN
from etude.authoring.samples import SAMPLES, sample
from etude.clock import RandomIds
from etude.jobs.claims import Claims
from etude.people.scopes import Scope
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.web.courses import publisher_of
from etude.web.services import Services, compose


class Site:
    """A server with an operator's token, and a worker that works when the test says so."""

    def __init__(self, database: Database, data: Path, token: str = "t" * 40) -> None:
        settings = Settings(data=data, courseware_publish_token=SecretStr(token))
        self.database = database
        self.services: Services = compose(settings, database)

    async def work(self) -> None:
        services = self.services
        runs = course_runs(
            self.database,
            services.clock,
            RandomIds(),
            classrooms=services.settings.classrooms,
            authors=known_authors(services.blobs),
            publisher=publisher_of(services),
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


def wanted(**more: Any) -> dict[str, Any]:
    text = sample(SAMPLES[0])
    return {"requirement": "Everyday", "materials": [{"name": text.name, "text": text.text}]} | more


@pytest.fixture
def site(database: Database, tmp_path: Path) -> Site:
    return Site(database, tmp_path)


def with_client(site: Site, run: Callable[..., Any], act: Callable[..., Any]) -> None:
    async def go() -> None:
        token = await web.service_token(site.database, Scope.OPERATE)
        async with web.client(site.services, token=token) as client:
            await act(client)

    run(go())


def test_from_material_to_a_manifest(site: Site, run: Callable[..., Any]) -> None:
    """Create, read, edit, confirm, make, publish; learners find the manifest; readiness agrees."""

    async def act(client: httpx2.AsyncClient) -> None:
        made = await client.post("/api/courses", json=wanted())
        assert made.status_code == 201, made.text
        path = f"/api/courses/{made.json()['courseId']}"
        early = await client.post(f"{path}/start", json={})
        assert early.status_code == 409
        await site.work()
        course = await client.get(path)
        assert course.json()["status"] == "framework_ready"
        assert len(course.json()["silentSentences"]) == 24
        framework = course.json()["framework"] | {"courseTitle": "My own title"}
        blind = await client.put(f"{path}/framework", json=framework)
        assert (blind.status_code, blind.json()["code"]) == (428, "FRAMEWORK_REVISION_MISSING")
        etag = {"If-Match": course.headers["etag"]}
        edited = await client.put(f"{path}/framework", json=framework, headers=etag)
        assert (edited.status_code, edited.json()["title"]) == (200, "My own title")
        stale = await client.put(f"{path}/framework", json=framework, headers=etag)
        assert (stale.status_code, stale.json()["code"]) == (409, "FRAMEWORK_CHANGED")
        silent = await client.post(f"{path}/start", json={})
        assert (silent.status_code, silent.json()["code"]) == (409, "COURSE_AUDIO_MISSING")
        unready = (await client.get(f"{path}/readiness")).json()
        assert not unready["ready"]
        assert {one["code"] for one in unready["blockers"]} >= {"MODULE_NOT_SUCCEEDED"}
        started = await client.post(f"{path}/start", json={"withoutAudio": True})
        assert started.status_code == 202
        assert (await client.post(f"{path}/resume")).json()["code"] == "COURSE_RUN_ACTIVE"
        await site.work()
        assert (await client.get(f"{path}/readiness")).json()["ready"]
        published = await client.post(f"{path}/publish")
        assert (published.status_code, published.json()["version"]) == (200, 1)
        again = await client.post(f"{path}/publish")
        assert again.json() == published.json() | {"new": False}
        manifest = await client.get(f"/api/learn/courses/{made.json()['courseId']}")
        assert len(manifest.json()["modules"]) == 4
        shown = (await client.get(path)).json()
        assert (shown["publishedVersion"], shown["driftedModules"]) == (1, [])

    with_client(site, run, act)


def test_recordings_of_the_material_are_practised(site: Site, run: Callable[..., Any]) -> None:
    """A recording that was uploaded becomes the clip of its sentence, with its length."""

    async def act(client: httpx2.AsyncClient) -> None:
        stored = await client.post(
            "/api/course-recordings", content=_wav(), headers={"Content-Type": "audio/wav"}
        )
        assert stored.status_code == 201, stored.text
        recordings = [
            {"name": f"{n:02d}.wav", "sha256": stored.json()["sha256"]} for n in range(1, 25)
        ]
        made = await client.post("/api/courses", json=wanted(recordings=recordings))
        path = f"/api/courses/{made.json()['courseId']}"
        await site.work()
        assert (await client.get(path)).json()["silentSentences"] == []
        await client.post(f"{path}/start", json={})
        await site.work()
        course = (await client.get(path)).json()
        assert course["status"] == "succeeded"
        assert all(one["outputDigest"]["practices"][0]["clips"] == 6 for one in course["modules"])
        assert (await client.post(f"{path}/publish")).status_code == 200

    with_client(site, run, act)


def test_every_gate_is_told(database: Database, tmp_path: Path, run: Callable[..., Any]) -> None:
    """Without a publishing token nothing is published, no run is begun, the course is free."""
    site = Site(database, tmp_path, token="")

    async def act(client: httpx2.AsyncClient) -> None:
        made = await client.post("/api/courses", json=wanted())
        path = f"/api/courses/{made.json()['courseId']}"
        await site.work()
        refused = await client.post(f"{path}/publish")
        assert (refused.status_code, refused.json()["code"]) == (
            503,
            "PUBLISH_TOKEN_NOT_CONFIGURED",
        )
        assert (await client.get(path)).json()["run"]["kind"] == "framework"
        assert (await client.post(f"{path}/framework/regenerate")).status_code == 202

    with_client(site, run, act)


def test_only_operators_make_courses(site: Site, run: Callable[..., Any]) -> None:
    """Without a token 401, without the scope 403, in the role of learners 404."""

    async def go() -> None:
        async with web.client(site.services) as client:
            assert (await client.get("/api/courses")).status_code == 401
        token = await web.service_token(site.database, Scope.SESSIONS_READ)
        async with web.client(site.services, token=token) as client:
            assert (await client.post("/api/courses", json=wanted())).status_code == 403
        settings = site.services.settings.model_copy(update={"role": "learner"})
        async with web.client(compose(settings, site.database)) as client:
            assert (await client.get("/api/courses")).status_code == 404

    run(go())


def test_unusable_bodies_are_named(site: Site, run: Callable[..., Any]) -> None:
    """Too little material, an unknown key and an unknown course have their own codes."""

    async def act(client: httpx2.AsyncClient) -> None:
        little = wanted() | {"materials": [{"name": "a.txt", "text": "One."}]}
        answer = await client.post("/api/courses", json=little)
        assert (answer.status_code, answer.json()["code"]) == (422, "MATERIAL_TOO_LITTLE")
        assert (await client.post("/api/courses", json=wanted(surprise=1))).status_code == 400
        answer = await client.get("/api/courses/nobody")
        assert (answer.status_code, answer.json()["code"]) == (404, "COURSE_UNKNOWN")
        lost = wanted(recordings=[{"name": "01.mp3", "sha256": "0" * 64}])
        assert (await client.post("/api/courses", json=lost)).json()["code"] == "BLOB_MISSING"

    with_client(site, run, act)


def _wav() -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\1" * 8000)
    return made.getvalue()
