"""Single classrooms over HTTP: whose they are, edits by revision, files of OpenMAIC and others."""

import io
import zipfile
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
from pydantic import SecretStr

from etude.authoring.classrooms.composition import classroom_handlers, lesson_authors
from etude.authoring.classrooms.records import MAKE, REMOVE
from etude.authoring.composition import course_runs, known_authors
from etude.authoring.records import RUN
from etude.authoring.samples import SAMPLES, sample
from etude.clock import RandomIds
from etude.jobs.claims import Claims
from etude.people.learners import add_learner
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.web.courses import publisher_of
from etude.web.services import Services, compose

TEXT: Final = "cat = a small animal\ndog = an animal that barks\nhen = a bird that lays eggs"
PNG: Final = b"\x89PNG\r\n\x1a\n" + b"picture" * 40
JOBS: Final = "/api/generate-classroom"
SHELF: Final = "/api/classrooms"


class Site:
    """A server, and a worker that works when the test says so."""

    def __init__(self, database: Database, data: Path, **settings: Any) -> None:
        self.database = database
        self.services: Services = compose(Settings(data=data, **settings), database)

    async def work(self) -> None:
        services = self.services
        handlers = classroom_handlers(
            self.database,
            services.blobs,
            services.clock,
            RandomIds(),
            services.settings,
            lesson_authors(services.blobs),
        )
        runs = course_runs(
            self.database,
            services.clock,
            RandomIds(),
            classrooms=services.settings.classrooms,
            authors=known_authors(services.blobs),
            publisher=publisher_of(services),
        )
        handlers = {RUN: runs, **handlers}
        claims = Claims(
            self.database,
            services.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={MAKE: 10, REMOVE: 10, RUN: 10},
            periods_s={},
        )
        for job in await claims.claim(10):
            await handlers[job.kind](job)
            await claims.finish_rest(job)

    async def learner(self, name: str) -> str:
        """A learner's token."""
        now = self.services.clock.now()
        async with self.database.transaction() as work:
            await add_learner(
                work.connection, learner_id=name, display_name=name, locale="en", now=now
            )
            wanted = TokenRequest(
                kind="learner", principal_id=name, scopes=(Scope.CLASSROOMS_WRITE,)
            )
            return (await create_token(work.connection, wanted, now)).text

    @asynccontextmanager
    async def as_operator(self) -> Any:
        token = await web.service_token(self.database, Scope.OPERATE, name="ops")
        async with web.client(self.services, token=token) as client:
            yield client

    @asynccontextmanager
    async def as_learner(self, name: str) -> Any:
        async with web.client(self.services, token=await self.learner(name)) as client:
            yield client

    async def made(self, client: httpx2.AsyncClient, **wanted: Any) -> str:
        """The id of a classroom that was made for somebody."""
        asked = await client.post(JOBS, json={"requirement": TEXT} | wanted)
        assert asked.status_code == 202, asked.text
        await self.work()
        job = (await client.get(f"{JOBS}/{asked.json()['jobId']}")).json()
        assert job["status"] == "succeeded", job
        return str(job["result"]["classroomId"])


@pytest.fixture
def site(database: Database, tmp_path: Path) -> Site:
    return Site(database, tmp_path)


def maic(manifest: dict[str, Any] | None = None, **files: bytes) -> bytes:
    """A `.maic.zip` of a strange author."""
    stage = {"name": "Tides", "createdAt": 1796025600000, "updatedAt": 1796025600000}
    slide = {
        "id": "cv", "viewportSize": 1000, "viewportRatio": 0.5625,
        "theme": {"backgroundColor": "#ffffff", "themeColors": ["#2b6cb0"],
                  "fontColor": "#222222", "fontName": "Noto Sans"},
        "elements": [{"id": "p", "type": "image", "left": 1, "top": 1, "width": 9, "height": 9,
                      "rotate": 0, "fixedRatio": True, "src": "media/tide.png"}],
    }  # fmt: skip
    told = manifest or {
        "formatVersion": 1,
        "exportedAt": "2026-11-30T08:00:00Z",
        "appVersion": "0.3.2",
        "stage": stage,
        "agents": [
            {"name": "Ms Reef", "role": "teacher", "persona": "calm", "avatar": "a",
             "color": "#2b6cb0", "priority": 10},
            {"name": "Tomas", "role": "student", "persona": "asks", "avatar": "b",
             "color": "#c05621", "priority": 5},
        ],
        "scenes": [
            {"type": "slide", "title": "Two bulges", "order": 1, "moonPhase": "full",
             "content": {"type": "slide", "canvas": slide}, "actions": []},
        ],
        "mediaIndex": {},
    }  # fmt: skip
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", msgspec.json.encode(told))
        for name, data in (files or {"media/tide.png": PNG}).items():
            archive.writestr(name, data)
    return target.getvalue()


def test_a_learner_has_a_classroom_made(site: Site, run: Callable[..., Any]) -> None:
    """A learner asks, follows, gets a classroom; another learner sees nothing of it."""

    async def go() -> None:
        async with site.as_learner("kim") as kim, site.as_learner("li") as li:
            asked = await kim.post(JOBS, json={"requirement": TEXT, "language": "en"})
            assert asked.status_code == 202, asked.text
            job = asked.json()
            assert asked.headers["location"] == job["pollUrl"]
            assert {"jobId", "status", "step", "message", "pollUrl", "pollIntervalMs"} <= set(job)
            assert (job["status"], job["done"], job["progress"]) == ("queued", False, 0)
            await site.work()
            path = f"{JOBS}/{job['jobId']}"
            done = (await kim.get(path, headers={"Accept-Language": "zh-CN"})).json()
            assert (done["status"], done["done"], done["progress"]) == ("succeeded", True, 100)
            assert done["message"] == "课堂已完成"
            classroom = done["result"]["classroomId"]
            shown = await kim.get(f"{SHELF}/{classroom}")
            assert len(shown.json()["scenes"]) == done["result"]["scenesCount"]
            again = {"If-None-Match": shown.headers["etag"]}
            assert (await kim.get(f"{SHELF}/{classroom}", headers=again)).status_code == 304
            assert len((await kim.get(SHELF)).json()["items"]) == 1
            assert len((await kim.get(JOBS)).json()["items"]) == 1
            for found in (
                await li.get(path),
                await li.post(f"{path}/cancel"),
                await li.post(f"{path}/confirm"),
                await li.get(f"{path}/outline"),
                await li.get(f"{SHELF}/{classroom}"),
                await li.get(f"{SHELF}/{classroom}/export"),
                await li.get(f"{SHELF}/{classroom}/media/x.png"),
                await li.delete(f"{SHELF}/{classroom}"),
                await li.put(
                    f"{SHELF}/{classroom}",
                    content=shown.content,
                    headers={"If-Match": shown.headers["etag"], "Content-Type": "application/json"},
                ),
            ):
                assert found.status_code == 404, (found.request.url, found.text)
            assert (await li.get(SHELF)).json()["items"] == []
            assert (await li.get(JOBS)).json()["items"] == []
        async with site.as_operator() as ops:
            assert (await ops.get(f"{SHELF}/{classroom}")).status_code == 200

    run(go())


def test_who_may_not_ask(site: Site, run: Callable[..., Any]) -> None:
    """Without a token 401, without the scope 403; recordings are for operators to name."""

    async def go() -> None:
        async with web.client(site.services) as nobody:
            assert (await nobody.post(JOBS, json={"requirement": TEXT})).status_code == 401
        token = await web.service_token(site.database, Scope.UPLOAD_ON_BEHALF, name="gateway")
        async with web.client(site.services, token=token) as gateway:
            assert (await gateway.post(JOBS, json={"requirement": TEXT})).status_code == 403
        async with site.as_learner("kim") as kim:
            named = [{"name": "01.mp3", "sha256": "0" * 64}]
            refused = await kim.post(JOBS, json={"requirement": TEXT, "recordings": named})
            assert (refused.status_code, refused.json()["code"]) == (
                403, "CLASSROOM_RECORDINGS_FORBIDDEN",
            )  # fmt: skip

    run(go())


def test_over_the_quota(database: Database, run: Callable[..., Any], tmp_path: Path) -> None:
    """Too many at once and too many a day are 429 with `Retry-After`; imports count too."""
    site = Site(database, tmp_path, classrooms_at_once=1, classrooms_a_day=2)

    async def go() -> None:
        async with site.as_learner("kim") as kim:
            wanted = {"requirement": TEXT}
            assert (await kim.post(JOBS, json=wanted)).status_code == 202
            busy = await kim.post(JOBS, json=wanted)
            assert (busy.status_code, busy.json()["code"]) == (429, "CLASSROOM_JOBS_AT_ONCE")
            assert busy.headers["retry-after"] == "30"
            await site.work()
            kept = await kim.post(
                f"{SHELF}/import", content=maic(), headers={"Content-Type": "application/zip"}
            )
            assert kept.status_code == 201, kept.text
            for late in (
                await kim.post(JOBS, json=wanted),
                await kim.post(
                    f"{SHELF}/import", content=maic(), headers={"Content-Type": "application/zip"}
                ),
            ):
                assert (late.status_code, late.json()["code"]) == (429, "CLASSROOMS_A_DAY")
                assert 80_000 < int(late.headers["retry-after"]) <= 86_400
        folder = site.services.settings.classrooms
        assert not [one for one in folder.iterdir() if one.name.startswith(".draft")]

    run(go())


def test_preview_over_http(site: Site, run: Callable[..., Any]) -> None:
    """With material: 428 without a revision, 412 with an old one, 422 with paths, then made."""
    part = sample(SAMPLES[-1] if SAMPLES[-1].endswith(".md") else "water-cycle.md").text

    async def go() -> None:
        async with site.as_operator() as ops:
            text = "## " + part.split("\n## ")[1]
            wanted = {"requirement": "Up", "materials": [{"name": "a.md", "text": text}]}
            asked = (await ops.post(JOBS, json=wanted)).json()
            path = f"{JOBS}/{asked['jobId']}"
            early = await ops.get(f"{path}/outline")
            assert (early.status_code, early.json()["code"]) == (409, "CLASSROOM_JOB_STATE")
            await site.work()
            job = (await ops.get(path)).json()
            assert (job["status"], job["step"], job["outlineRevision"]) == (
                "waiting", "awaiting_outline_confirmation", 1,
            )  # fmt: skip
            shown = await ops.get(f"{path}/outline")
            outline = shown.json()["outline"]
            assert shown.json()["silentSentences"]
            outline["title"] = "Up and away"
            del outline["scenes"][-1]
            assert (await ops.put(f"{path}/outline", json=outline)).status_code == 428
            old = {"If-Match": '"9"'}
            stale = await ops.put(f"{path}/outline", json=outline, headers=old)
            assert (stale.status_code, stale.json()["code"]) == (412, "LESSON_OUTLINE_CHANGED")
            match = {"If-Match": shown.headers["etag"]}
            wrong = outline | {"scenes": [outline["scenes"][0] | {"type": "quiz"}]}
            bad = await ops.put(f"{path}/outline", json=wrong, headers=match)
            assert bad.status_code == 422
            assert [one["path"] for one in bad.json()["errors"]] == ["scenes[0].type", "scenes"]
            edited = await ops.put(f"{path}/outline", json=outline, headers=match)
            assert edited.headers["etag"] == '"2"'
            assert (await ops.post(f"{path}/confirm", headers=match)).status_code == 412
            confirmed = await ops.post(f"{path}/confirm", headers={"If-Match": '"2"'})
            assert confirmed.status_code == 202, confirmed.text
            await site.work()
            job = (await ops.get(path)).json()
            assert (job["status"], job["totalScenes"]) == ("succeeded", len(outline["scenes"]))
            made = (await ops.get(job["result"]["url"].partition("8080")[2])).json()
            assert made["stage"]["name"] == "Up and away"
            assert (await ops.post(f"{path}/cancel")).status_code == 409

    run(go())


def test_unusable_requests(site: Site, run: Callable[..., Any]) -> None:
    """Text without a lesson in it, unknown fields and authors are refused by their names."""

    async def go() -> None:
        async with site.as_operator() as ops:
            for body, status, code in (
                ({"requirement": "Teach volcanoes."}, 422, "LESSON_MATERIAL_TOO_LITTLE"),
                ({}, 422, "LESSON_MATERIAL_TOO_LITTLE"),
                ({"requirement": TEXT, "author": "llm"}, 422, "AUTHOR_UNKNOWN"),
                ({"requirement": TEXT, "taskEngineMode": True}, 422, "LESSON_STEPS_MISSING"),
                ({"requirement": TEXT, "pdfContent": {}}, 400, "REQUEST_INVALID"),
                ({"requirement": 7}, 400, "REQUEST_INVALID"),
            ):
                refused = await ops.post(JOBS, json=body)
                assert (refused.status_code, refused.json()["code"]) == (status, code), body
            assert (await ops.get(JOBS)).json()["items"] == []

    run(go())


def test_edit_by_hand(site: Site, run: Callable[..., Any]) -> None:
    """A document is replaced by its revision: 428, 412, 422 with the path; files stay."""

    async def go() -> None:
        async with site.as_operator() as ops:
            path = f"{SHELF}/{await site.made(ops)}"
            shown = await ops.get(path)
            document, match = shown.json(), {"If-Match": shown.headers["etag"]}
            document["scenes"][0]["title"] = "By hand"
            document["stage"]["name"] = "Animals"
            assert (await ops.put(path, json=document)).status_code == 428
            stale = await ops.put(path, json=document, headers={"If-Match": '"sha256:0"'})
            assert (stale.status_code, stale.json()["code"]) == (412, "CLASSROOM_CHANGED")
            bad = msgspec.json.decode(msgspec.json.encode(document))
            bad["scenes"][1]["content"]["canvas"]["elements"][0]["left"] = "far"
            wrong = await ops.put(path, json=bad, headers=match)
            assert wrong.status_code == 422
            assert [one["path"] for one in wrong.json()["errors"]] == [
                "scenes[1].content.canvas.elements[0].left"
            ]
            other = document | {"id": "k-other", "stage": document["stage"] | {"id": "k-other"}}
            for one in other["scenes"]:
                one["stageId"] = "k-other"
            assert (await ops.put(path, json=other, headers=match)).status_code == 422
            for one in document["scenes"]:
                one["stageId"] = document["id"]
            kept = await ops.put(path, json=document, headers=match)
            assert kept.status_code == 200, kept.text
            assert kept.headers["etag"] == f'"{kept.json()["revision"]}"'
            now = await ops.get(path)
            assert (now.json()["scenes"][0]["title"], now.headers["etag"]) == (
                "By hand", kept.headers["etag"],
            )  # fmt: skip
            assert (await ops.put(path, json=document, headers=match)).status_code == 412
            assert (await ops.get(SHELF)).json()["items"][0]["title"] == "Animals"
            plain = await ops.put(
                path, content=b"{", headers=match | {"Content-Type": "text/plain"}
            )
            assert plain.status_code == 415

    run(go())


def test_in_and_out_of_openmaic(site: Site, run: Callable[..., Any]) -> None:
    """A `.maic.zip` comes in with a report, shows its pictures, goes out, comes in again alike."""

    async def go() -> None:
        async with site.as_operator() as ops:
            zipped = {"Content-Type": "application/zip"}
            brought = await ops.post(f"{SHELF}/import", content=maic(), headers=zipped)
            assert brought.status_code == 201, brought.text
            told = brought.json()
            assert (told["title"], told["scenesCount"]) == ("Tides", 1)
            assert [(one["path"], one["code"]) for one in told["losses"]] == [
                ("scenes[0].moonPhase", "key_dropped")
            ]
            assert told["losses"][0]["message"]
            path = f"{SHELF}/{told['classroomId']}"
            source = (await ops.get(path)).json()["scenes"][0]["content"]["canvas"]["elements"][0][
                "src"
            ]
            picture = await ops.get(f"{path}/{source}")
            assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
            assert "sandbox" in picture.headers["content-security-policy"]
            part = await ops.get(f"{path}/{source}", headers={"Range": "bytes=1-3"})
            assert (part.status_code, part.content) == (206, b"PNG")
            assert part.headers["content-range"] == f"bytes 1-3/{len(PNG)}"
            over = await ops.get(f"{path}/{source}", headers={"Range": "bytes=9999-"})
            assert over.status_code == 416
            known = {"If-None-Match": picture.headers["etag"]}
            assert (await ops.get(f"{path}/{source}", headers=known)).status_code == 304
            assert (await ops.get(f"{path}/media/none.png")).status_code == 404
            assert (await ops.get(f"{path}/media/..%2F..%2Fetude.db")).status_code == 404
            out = await ops.get(f"{path}/export", params={"format": "maic.zip"})
            assert out.headers["content-type"] == "application/zip"
            assert out.headers["etude-losses"] == "0"
            assert zipfile.ZipFile(io.BytesIO(out.content)).testzip() is None
            assert (await ops.get(f"{path}/export")).content == out.content
            again = await ops.post(f"{SHELF}/import", content=out.content, headers=zipped)
            assert again.json()["losses"] == []
            plain = await ops.get(f"{path}/export", params={"format": "json"})
            assert plain.json()["stage"]["name"] == "Tides"
            third = await ops.post(
                f"{SHELF}/import",
                content=plain.content,
                headers={"Content-Type": "application/json"},
            )
            assert third.status_code == 201, third.text
            lost = {one["code"] for one in third.json()["losses"]}
            assert lost == {"media_missing", "element_dropped"}
            own = f"{SHELF}/{await site.made(ops)}"
            losses = (await ops.get(f"{own}/export/losses")).json()
            assert "mode_dropped" in {one["code"] for one in losses["losses"]}
            removed = await ops.delete(path)
            assert (removed.status_code, removed.content) == (204, b"")
            assert (await ops.get(path)).status_code == 404
            assert (await ops.delete(path)).status_code == 404
            assert len((await ops.get(SHELF)).json()["items"]) == 3
        folder = site.services.settings.classrooms
        assert not [one for one in folder.iterdir() if one.name.startswith(".draft")]

    run(go())


def test_a_module_is_edited_by_hand_and_accepted(
    database: Database, run: Callable[..., Any], tmp_path: Path
) -> None:
    """An edited module drifts and cannot be published until its source is accepted; then it is."""
    site = Site(database, tmp_path, courseware_publish_token=SecretStr("t" * 40))

    async def go() -> None:
        async with site.as_operator() as ops:
            text = sample(SAMPLES[0])
            wanted = {"materials": [{"name": text.name, "text": text.text}]}
            course = (await ops.post("/api/courses", json=wanted)).json()
            path = f"/api/courses/{course['courseId']}"
            await site.work()
            started = await ops.post(f"{path}/start", json={"withoutAudio": True})
            assert started.status_code == 202, started.text
            await site.work()
            first = await ops.post(f"{path}/publish")
            assert first.status_code == 200, first.text
            last = (await ops.get(path)).json()["modules"][-1]
            room = f"{SHELF}/{last['classroomId']}"
            shown = await ops.get(room)
            document = shown.json()
            document["scenes"][0]["title"] = "By hand"
            edited = await ops.put(room, json=document, headers={"If-Match": shown.headers["etag"]})
            assert edited.status_code == 200, edited.text
            refused = await ops.post(f"{path}/publish")
            assert refused.status_code in {409, 422}
            assert {one["code"] for one in refused.json()["errors"]} >= {"SEMANTIC_DRIFT"}
            taken = await ops.post(f"{path}/accept-source/{last['index']}")
            assert taken.status_code == 200, taken.text
            again = await ops.post(f"{path}/publish")
            assert again.status_code == 200, again.text
            assert (again.json()["new"], again.json()["version"]) == (True, 2)
            kept = await ops.delete(room)
            assert (kept.status_code, kept.json()["code"]) == (409, "CLASSROOM_IN_COURSE")
            assert kept.json()["course"] == course["courseId"]
        async with site.as_learner("kim") as kim:
            assert (await kim.get(room)).status_code == 404

    run(go())


def test_hostile_archives(site: Site, run: Callable[..., Any]) -> None:
    """Archives that lead outside, explode or are none are refused by their codes; nothing stays."""
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"[" + b" " * (40 << 20))

    async def go() -> None:
        async with site.as_operator() as ops:
            for body, kind, status, code in (
                (maic(**{"../../evil.png": PNG}), "application/zip", 422, "ARCHIVE_NAME"),
                (bomb.getvalue(), "application/zip", 413, "ARCHIVE_BOMB"),
                (b"PK nothing", "application/zip", 415, "ARCHIVE_NOT_ZIP"),
                (maic({"formatVersion": 9}), "application/zip", 422, "ARCHIVE_MANIFEST"),
                (b"", "application/zip", 415, "ARCHIVE_NOT_ZIP"),
                (b"[1]", "application/json", 400, "CLASSROOM_NOT_JSON"),
                (b'{"dslVersion": "9.0.0"}', "application/json", 422, "CLASSROOM_TOO_NEW"),
                (b"x", "text/html", 415, "MEDIA_TYPE_UNSUPPORTED"),
            ):
                refused = await ops.post(
                    f"{SHELF}/import", content=body, headers={"Content-Type": kind}
                )
                assert (refused.status_code, refused.json()["code"]) == (status, code), code
            assert (await ops.get(SHELF)).json()["items"] == []
        assert list(site.services.settings.classrooms.iterdir()) == []
        assert not (site.services.settings.data.parent / "evil.png").exists()

    run(go())
