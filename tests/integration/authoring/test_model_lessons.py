"""Lessons on their own that a model writes, over the API: outline, edits, kills, quota, erasure."""

from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from etude.authoring.classrooms.composition import classroom_handlers
from etude.authoring.classrooms.records import MAKE, REMOVE
from etude.clock import RandomIds
from etude.files import armed
from etude.jobs.claims import Claims
from etude.people.erasure import erase_learner
from etude.people.learners import add_learner
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.spending.tables import model_call
from etude.people.tokens import TokenRequest, create_token
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.testing.clocks import ManualClock
from etude.testing.fake_author import CourseModel
from etude.web.classroom_jobs import lesson_authors_of
from etude.web.services import compose

MOST_ATTEMPTS = 20  # seven questions, each killed after its answer
JOBS = "/api/generate-classroom"
WANTED = {"author": "llm", "requirement": "Where does the rain come from?"}
Run = Callable[..., Any]


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


class Site:
    """A server with a model, and a worker that works when the test says so."""

    def __init__(self, database: Database, data: Path, url: str, **settings: Any) -> None:
        self.database = database
        self.clock = ManualClock()
        made = Settings(data=data, llm_url=url, llm_model="small", **settings)
        self.services = compose(made, database, self.clock)

    async def work(self) -> None:
        services = self.services
        handlers = classroom_handlers(
            self.database,
            services.blobs,
            self.clock,
            RandomIds(),
            services.settings,
            lesson_authors_of(services),
        )
        self.clock.advance(60)
        claims = Claims(
            self.database,
            self.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={MAKE: 50, REMOVE: 10},
            periods_s={},
        )
        for job in await claims.claim(10):
            await handlers[job.kind](job)
            await claims.finish_rest(job)

    @asynccontextmanager
    async def as_learner(self, name: str) -> Any:
        now = self.clock.now()
        async with self.database.transaction() as work:
            await add_learner(
                work.connection, learner_id=name, display_name=name, locale="en", now=now
            )
            wanted = TokenRequest(
                kind="learner", principal_id=name, scopes=(Scope.CLASSROOMS_WRITE,)
            )
            token = (await create_token(work.connection, wanted, now)).text
        async with web.client(self.services, token=token) as client:
            yield client

    async def calls(self) -> int:
        async with self.database.read() as connection:
            rows = await connection.execute(select(func.count()).select_from(model_call))
            return int(rows.scalar_one())


@pytest.fixture
def model() -> CourseModel:
    return CourseModel()


@pytest.fixture
def address(model: CourseModel) -> Iterator[str]:
    with model.serve() as url:
        yield url


def test_a_question_becomes_a_lesson(
    database: Database, tmp_path: Path, run: Run, model: CourseModel, address: str
) -> None:
    """A learner's question in words is outlined and written at once, without goals of a course."""
    site = Site(database, tmp_path, address)

    async def go() -> None:
        async with site.as_learner("mia") as client:
            asked = await client.post(JOBS, json=WANTED)
            assert asked.status_code == 202, asked.text
            await site.work()
            job = (await client.get(f"{JOBS}/{asked.json()['jobId']}")).json()
            assert job["status"] == "succeeded", job
            shown = await client.get(f"/api/classrooms/{job['result']['classroomId']}")
            document = shown.json()
            assert document["stage"]["name"] == "The way of a drop"
            kinds = [scene["type"] for scene in document["scenes"]]
            assert kinds == ["slide"] * 3 + ["interactive", "quiz", "pbl", "slide"]
            assert len(model.asked) == 7

    run(go())


def test_an_outline_is_edited_before_it_is_written(
    database: Database, tmp_path: Path, run: Run, model: CourseModel, address: str
) -> None:
    """With a mode, the outline waits; scenes may be reworded, added and left out before."""
    site = Site(database, tmp_path, address)

    async def go() -> None:
        async with site.as_learner("mia") as client:
            asked = await client.post(JOBS, json=WANTED | {"interactiveMode": True})
            path = f"{JOBS}/{asked.json()['jobId']}"
            await site.work()
            assert "Most scenes are interactive" in model.asked[0].last
            found = await client.get(f"{path}/outline")
            outline = found.json()["outline"]
            etag = {"If-Match": found.headers["etag"]}
            scenes = outline["scenes"]
            assert len(scenes) == 6
            new = {"id": "mine", "type": "interactive", "title": "My own idea"}
            outline["scenes"] = [scenes[0] | {"title": "Look up"}, new]
            wrong = outline | {"scenes": [scenes[0], scenes[0]]}
            refused = await client.put(f"{path}/outline", json=wrong, headers=etag)
            assert refused.json()["code"] == "LESSON_OUTLINE_INVALID"
            practice = new | {"id": "p", "type": "practice", "title": "Say it"}
            silent = outline | {"scenes": [new, practice]}
            refused = await client.put(f"{path}/outline", json=silent, headers=etag)
            assert refused.json()["code"] == "LESSON_OUTLINE_INVALID"
            edited = await client.put(f"{path}/outline", json=outline, headers=etag)
            assert edited.status_code == 200, edited.text
            await client.post(f"{path}/confirm", json={})
            await site.work()
            job = (await client.get(path)).json()
            assert job["status"] == "succeeded", job
            shown = await client.get(f"/api/classrooms/{job['result']['classroomId']}")
            titles = [scene["title"] for scene in shown.json()["scenes"]]
            assert titles[1:] == ["Look up", "My own idea"]
            assert len(model.asked) == 3

    run(go())


def test_a_killed_lesson_is_paid_once(
    database: Database, tmp_path: Path, run: Run, model: CourseModel, address: str
) -> None:
    """The process dies after each recorded answer; every question is asked once."""
    site = Site(database, tmp_path, address)
    kills = 0

    def crash(reached: str) -> None:
        nonlocal kills
        if reached == "authoring.call.recorded":
            kills += 1
            raise CrashError

    async def go() -> None:
        async with site.as_learner("mia") as client:
            asked = await client.post(JOBS, json=WANTED)
            path = f"{JOBS}/{asked.json()['jobId']}"
            for _ in range(MOST_ATTEMPTS):
                job = (await client.get(path)).json()
                if job["done"]:
                    break
                try:
                    with armed(crash):
                        await site.work()
                except CrashError:
                    continue
            assert job["status"] == "succeeded", job
            assert kills == len(model.asked) == await site.calls() == 7

    run(go())


def test_a_lesson_draws_on_the_owner_s_day(
    database: Database, tmp_path: Path, run: Run, address: str
) -> None:
    """What a learner may spend a day bounds lessons as it bounds courses."""
    site = Site(database, tmp_path, address, llm_quota="tokens=10000")

    async def go() -> None:
        async with site.as_learner("mia") as client:
            asked = await client.post(JOBS, json=WANTED)
            await site.work()
            job = (await client.get(f"{JOBS}/{asked.json()['jobId']}")).json()
            assert job["status"] == "failed"
            assert job["error"]["code"] == "QUOTA_SPENT"

    run(go())


def test_what_was_answered_goes_with_its_learner(
    database: Database, tmp_path: Path, run: Run, address: str
) -> None:
    """After a learner is erased, nothing that a model said to them is in the ledger."""
    site = Site(database, tmp_path, address)

    async def go() -> None:
        async with site.as_learner("mia") as client:
            await client.post(JOBS, json=WANTED)
            await site.work()
        assert await site.calls() == 7
        await _erase(site)
        assert await site.calls() == 0

    run(go())


async def _erase(site: Site) -> None:
    async with site.database.transaction() as work:
        registry = site.services.learner_data
        await erase_learner(work, registry, "mia", actor=HOST, now=site.clock.now())
