"""Published courses over HTTP: manifests, registry, bundles in parts, tombstones, roles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.courseware.bundle import Bundle
from etude.courseware.checking import check_bundle
from etude.courseware.publishing import Publisher
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.store import Database
from etude.testing.courseware import course
from etude.testing.web import client, service_token, services_for

Run = Callable[..., Any]
PATH = "/api/coursewares/cw_harbour_0/bundles/1/download"


class Site:
    """The web application over a published course."""

    def __init__(self, database: Database, run: Run, data: Path, role: Any = "all") -> None:
        self.services = services_for(database, data, role=role)
        self.run = run
        settings = self.services.settings
        self.publisher = Publisher(
            database,
            settings.blobs,
            self.services.clock,
            classrooms=settings.classrooms,
            legacy=settings.course_manifests,
            token="t" * 32,
        )

    def publish(self) -> Any:
        return self.run(self.publisher.publish(course(self.services.settings.classrooms), HOST))

    def ask(self, path: str, method: str = "GET", **options: Any) -> Any:
        token = options.pop("token", None)

        async def asked() -> Any:
            async with client(self.services, token=token) as asking:
                return await asking.request(method, path, **options)

        return self.run(asked())


@pytest.fixture
def site(database: Database, run: Run, tmp_path: Path) -> Site:
    made = Site(database, run, tmp_path)
    made.publish()
    return made


def test_courses_and_manifest(site: Site) -> None:
    """The list names the course; the manifest comes as it was published, with an ETag."""
    (entry,) = site.ask("/api/learn/courses").json()["items"]
    assert (entry["courseId"], entry["version"], entry["modules"]) == ("harbour", 1, 2)
    answer = site.ask("/api/learn/courses/harbour?version=1")
    assert answer.json()["modules"][1]["coursewareId"] == "cw_harbour_1"
    known = {"If-None-Match": answer.headers["etag"]}
    assert site.ask("/api/learn/courses/harbour", headers=known).status_code == 304


def test_registry_and_bundle_agree(site: Site, tmp_path: Path) -> None:
    """What is downloaded is the bundle whose hash registry and manifest have."""
    pin = site.ask("/api/learn/courses/harbour").json()["modules"][0]
    row = site.ask("/api/coursewares/cw_harbour_0?version=1").json()
    assert row["contentHash"] == pin["contentHash"]
    assert row["bundleUrl"].endswith(PATH)
    answer = site.ask(PATH)
    file = tmp_path / "got.zip"
    file.write_bytes(answer.content)
    with Bundle.open(file) as bundle:
        check_bundle(bundle, "cw_harbour_0", pin["contentHash"])
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert int(answer.headers["content-length"]) == row["sizeBytes"] == len(answer.content)
    assert answer.headers["content-type"] == "application/zip"


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=10-", slice(10, None)),
        ("bytes=-5", slice(-5, None)),
        ("bytes=5-99999999999", slice(5, None)),
        ("bytes=-99999999999", slice(0, None)),
    ],
)
def test_a_part(site: Site, asked: str, part: slice) -> None:
    """A range is answered with 206, exactly these bytes, and where they are."""
    whole = site.ask(PATH).content
    answer = site.ask(PATH, headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == whole[part]
    first = range(len(whole))[part].start
    expected = f"bytes {first}-{first + len(answer.content) - 1}/{len(whole)}"
    assert answer.headers["content-range"] == expected


@pytest.mark.parametrize("asked", ["bytes=0-1,4-5", "items=0-1", "bytes=9-2", "bytes=-", "bytes=x"])
def test_what_is_no_single_range_is_the_whole(site: Site, asked: str) -> None:
    """Several ranges or unknown forms give the whole bundle."""
    assert site.ask(PATH, headers={"Range": asked}).status_code == 200


def test_ranges_and_etags(site: Site) -> None:
    """Outside is 416; If-Range of other bytes is the whole; a known ETag is 304."""
    etag = site.ask(PATH).headers["etag"]
    assert etag.startswith('"sha256-')
    outside = site.ask(PATH, headers={"Range": "bytes=99999999-"})
    assert (outside.status_code, outside.json()["code"]) == (416, "RANGE_UNSATISFIABLE")
    part = {"Range": "bytes=0-1"}
    assert site.ask(PATH, headers=part | {"If-Range": etag}).status_code == 206
    assert site.ask(PATH, headers=part | {"If-Range": '"other"'}).status_code == 200
    assert site.ask(PATH, headers={"If-None-Match": etag}).status_code == 304


def test_what_there_is_not(site: Site) -> None:
    """Unknown courses, versions and coursewares have their codes."""
    for path, code in (
        ("/api/learn/courses/none", "COURSE_UNPUBLISHED"),
        ("/api/learn/courses/harbour?version=9", "COURSE_UNPUBLISHED"),
        ("/api/coursewares/none", "COURSEWARE_UNKNOWN"),
        ("/api/coursewares/cw_harbour_0/bundles/9/download", "COURSEWARE_UNKNOWN"),
    ):
        answer = site.ask(path)
        assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_an_older_manifest_is_refused(site: Site) -> None:
    """A course without pins answers 409, and the newest is not put in its place."""
    folder = site.services.settings.course_manifests
    folder.mkdir()
    (folder / "old.json").write_bytes(b'{"courseId":"old","version":2,"modules":[]}')
    answer = site.ask("/api/learn/courses/old")
    assert (answer.status_code, answer.json()["code"]) == (409, "MANIFEST_UNPINNED")


def test_withdrawal(site: Site, database: Database) -> None:
    """An operator withdraws: manifest, registry and bundle are 410, with the reason."""
    path = "/api/courses/harbour/manifests/1/withdraw"
    body = {"reason": "Picture rights"}
    assert site.ask(path, "POST", json=body).status_code == 401
    reader = site.run(service_token(database, Scope.SESSIONS_READ, name="reader"))
    assert site.ask(path, "POST", json=body, token=reader).status_code == 403
    operator = site.run(service_token(database, Scope.OPERATE, name="operator"))
    assert site.ask(path, "POST", json=body, token=operator).status_code == 204
    gone = site.ask("/api/learn/courses/harbour")
    assert (gone.status_code, gone.json()["reason"]) == (410, "Picture rights")
    for each in ("/api/coursewares/cw_harbour_0?version=1", PATH):
        assert site.ask(each).status_code == 410
    assert site.ask("/api/learn/courses").json()["items"] == []


@pytest.mark.parametrize(
    ("role", "reads", "withdraws"),
    [("ops", 404, 401), ("server", 200, 404), ("learner", 200, 404), ("all", 200, 401)],
)
def test_roles(
    database: Database, run: Run, tmp_path: Path, role: str, reads: int, withdraws: int
) -> None:
    """A route that is not in the role does not exist."""
    site = Site(database, run, tmp_path, role)
    assert site.ask("/api/learn/courses").status_code == reads
    path = "/api/courses/harbour/manifests/1/withdraw"
    assert site.ask(path, "POST", json={"reason": "x"}).status_code == withdraws
