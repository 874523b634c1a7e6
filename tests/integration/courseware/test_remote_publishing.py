"""Publishing at another server: a real `etude web` process, real HTTP, two databases."""

import hashlib
import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import msgspec
import pytest

from etude.courseware import receipts
from etude.courseware.errors import (
    CourseUnpublishedError,
    PublishRefusedError,
    PublishTokenMissingError,
    SourceChangedError,
)
from etude.courseware.gates import CourseSource
from etude.courseware.publish_token import PublishToken
from etude.courseware.remote_errors import (
    PublicUrlMissingError,
    PublishReceiptMismatchError,
    PublishServerError,
    PublishServerFailedError,
    PublishServerStrangeError,
    PublishServerTokenError,
    PublishServerUnreachableError,
)
from etude.courseware.sending import RemotePublisher
from etude.courseware.submission import PATH
from etude.errors import EtudeError
from etude.files import armed
from etude.people.audit import list_audit
from etude.people.records import HOST
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.courseware import course, document, lay_out, module
from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.nursery import Nursery
from etude.testing.relay import Relay

Run = Callable[..., Any]
OLD, NEW = "o" * 32, "n" * 40
ANSWER_OK, ANSWER_MADE = 200, 204


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery")) as running:
        yield running


class School:
    """A school's server, and the laptop of who makes its courses."""

    def __init__(
        self, nursery: Nursery, database: Database, run: Run, root: Path, url: str
    ) -> None:
        self.run, self.root, self.database = run, root, database
        self.classrooms = root / "laptop" / "classrooms"
        self.classrooms.mkdir(parents=True)
        self.data = root / "school"
        self.data.mkdir()
        self.server = KillableServer(
            nursery, furnish(self.data, url), {"ETUDE_COURSEWARE_PUBLISH_TOKEN": OLD}
        )
        self.clock = ManualClock()

    def start(self, **environment: str) -> None:
        self.server.environment |= environment
        self.server.start()

    def publisher(self, url: str | None = None, token: str = OLD, wire: Any = None) -> Any:
        return RemotePublisher(
            self.database,
            self.clock,
            server=url or self.server.url,
            classrooms=self.classrooms,
            token=token,
            wire=wire,
        )

    def publish(self, source: CourseSource, **how: Any) -> Any:
        return self.run(self.publisher(**how).publish(source, HOST))

    def refused(self, source: CourseSource, error: type[EtudeError], **how: Any) -> Any:
        with pytest.raises(error) as caught:
            self.publish(source, **how)
        assert self.receipt(how.get("url")) is None
        return caught.value

    def receipt(self, url: str | None = None, course_id: str = "harbour") -> Any:
        async def read() -> Any:
            async with self.database.read() as connection:
                return await receipts.newest(connection, course_id, url or self.server.url)

        return self.run(read())

    def get(self, path: str) -> httpx2.Response:
        with self.server.client("operator") as client:
            return client.get(path)

    def versions(self) -> list[int]:
        """Return the versions of the course that the school's server shows, 1 to 3."""
        asked = [self.get(f"/api/learn/courses/harbour?version={n}") for n in (1, 2, 3)]
        return [n for n, one in enumerate(asked, 1) if one.status_code == ANSWER_OK]

    def stored(self) -> list[Path]:
        return [one for one in (self.data / "blobs").rglob("*") if one.is_file()]


@pytest.fixture
def school(
    nursery: Nursery, sqlite_url: str, empty_copy: str, run: Run, tmp_path: Path
) -> Iterator[School]:
    database = run(Database.open(sqlite_url))
    made = School(nursery, database, run, tmp_path, empty_copy)
    yield made
    run(database.close())


@pytest.fixture
def empty_copy(sqlite_url: str, tmp_path: Path) -> str:
    """Another migrated database, of the school's server."""
    source = Path(sqlite_url.removeprefix("sqlite:///"))
    return f"sqlite:///{shutil.copy(source, tmp_path / 'school.db')}"


def test_a_course_is_published_at_its_server(school: School) -> None:
    """The server has manifest and bundles, byte for byte; the receipt and its sources are kept."""
    school.start()
    source = course(school.classrooms)
    published = school.publish(source)
    assert (published.new, published.manifest.version) == (True, 1)
    manifest = school.get("/api/learn/courses/harbour")
    assert msgspec.convert(manifest.json(), type(published.manifest)) == published.manifest
    for pin in published.manifest.modules:
        shown = school.get(f"/api/coursewares/{pin.courseware_id}?version=1").json()
        assert shown["contentHash"] == pin.content_hash
        path = f"/api/coursewares/{pin.courseware_id}/bundles/1/download"
        bundle = school.get(path)
        assert bundle.headers["etag"] == f'"sha256-{hashlib.sha256(bundle.content).hexdigest()}"'
    kept = school.receipt()
    assert kept.manifest_hash == published.manifest_hash
    assert [one.source_revision_hash for one in kept.modules] == [
        one.source_revision_hash for one in source.modules
    ]


def test_the_same_again_is_the_same_version(school: School) -> None:
    """Sent again, nothing is new; a module that changed moves alone; old manifests stay."""
    school.start()
    source = course(school.classrooms)
    first, second = school.publish(source), school.publish(source)
    assert (second.new, second.manifest) == (False, first.manifest)
    before = school.get("/api/learn/courses/harbour?version=1").content
    lay_out(school.classrooms, document("harbour_1", "Module 1, again"), number=10)
    last = module(school.classrooms, "harbour_1", source.modules[1].continuity or ())
    changed = msgspec.structs.replace(source, modules=(source.modules[0], last))
    third = school.publish(changed)
    assert third.manifest.version == 2
    assert [one.courseware_version for one in third.manifest.modules] == [1, 2]
    assert school.get("/api/learn/courses/harbour?version=1").content == before
    assert school.receipt().version == 2


@pytest.mark.parametrize(
    ("server", "laptop", "taken"),
    [
        (OLD, OLD, True),
        (f"{NEW},{OLD}", OLD, True),
        (f"{NEW},{OLD}", NEW, True),
        (f"{NEW}, {OLD}", f"{NEW},{OLD}", True),
        (NEW, OLD, False),
        (OLD, f"{NEW},{OLD}", False),
        ("short", OLD, False),
        ("", OLD, False),
        (f"{NEW},short", NEW, False),
    ],
)
def test_tokens_are_rotated(school: School, server: str, laptop: str, *, taken: bool) -> None:
    """Two tokens are accepted while one takes the other's place; the first is shown, no other."""
    school.start(ETUDE_COURSEWARE_PUBLISH_TOKEN=server)
    source = course(school.classrooms)
    if taken:
        assert school.publish(source, token=laptop).new
    else:
        school.refused(source, PublishServerTokenError, token=laptop)
        assert school.versions() == []
    log = school.server.log_text()
    assert OLD not in log
    assert NEW not in log


def test_without_a_token_nothing_is_sent(school: School) -> None:
    """No or no usable token here: said before anybody is asked."""
    source = course(school.classrooms)
    for token in ("", "short", f"{OLD},{NEW},{OLD}", "ü" * 40):
        with pytest.raises(PublishTokenMissingError):
            school.publish(source, token=token)


def test_a_token_is_compared_whole() -> None:
    """A part of a token, or more than it, is none."""
    token = PublishToken(f"{NEW},{OLD}")
    assert token.accepts(OLD)
    assert token.accepts(NEW)
    for wrong in (None, "", OLD[:-1], OLD + "o", f"{NEW},{OLD}", "\udcff"):
        assert not token.accepts(wrong)


def test_readiness_asks_the_server(school: School) -> None:
    """What keeps a course there is told before it is sent: the server's reasons, then the gates."""
    source = course(school.classrooms)
    away = school.run(school.publisher().readiness(source))
    assert [one.code for one in away.blockers] == ["PUBLISH_SERVER_UNREACHABLE"]
    school.start()
    assert school.run(school.publisher().readiness(source)).ready
    stranger = school.run(school.publisher(token=NEW).readiness(source))
    assert [one.code for one in stranger.blockers] == ["PUBLISH_SERVER_TOKEN"]
    assert not school.run(school.publisher().readiness(source)).unprotected
    elsewhere = school.publisher(url="http://school.example", wire=_gone())
    assert school.run(elsewhere.readiness(source)).unprotected


def _gone() -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda _: httpx2.Response(404))


@pytest.mark.parametrize("role", ["ops", "learner"])
def test_only_a_server_takes_courses(school: School, role: str) -> None:
    """On other roles the routes do not exist, whatever the token."""
    school.start(ETUDE_ROLE=role)
    error = school.refused(course(school.classrooms), PublishServerStrangeError)
    assert error.params["httpStatus"] == 404


def test_a_server_of_its_own_must_know_its_address(school: School) -> None:
    """Role `server` without a public address takes nothing; with one, bundles are found there."""
    school.start(ETUDE_ROLE="server")
    source = course(school.classrooms)
    school.refused(source, PublicUrlMissingError)
    school.server.kill()
    school.start(ETUDE_PUBLIC_URL="https://etude.example.org")
    school.publish(source)
    shown = school.get("/api/coursewares/cw_harbour_0?version=1").json()
    assert shown["bundleUrl"].startswith("https://etude.example.org/api/coursewares/")
    school.server.kill()
    school.start(ETUDE_COURSEWARE_PUBLIC_BASE_URL="https://bundles.example.org/")
    shown = school.get("/api/coursewares/cw_harbour_0?version=1").json()
    assert shown["bundleUrl"].startswith("https://bundles.example.org/api/coursewares/")


@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_a_network_that_breaks(school: School, share: float) -> None:
    """Cut anywhere in the upload: nothing is visible or left over; sent again it is version 1."""
    school.start()
    source = course(school.classrooms)
    sizes = []
    school.refused(source, PublishServerUnreachableError, wire=_measuring(sizes))
    with Relay(int(school.server.url.rpartition(":")[2])) as network:
        network.cut_after(int(sizes[0] * share))
        school.refused(source, PublishServerUnreachableError, url=network.url)
        assert school.versions() == []
        _settle(lambda: school.stored() == [])
        network.cut_after(None)
        again = school.publish(source, url=network.url)
        assert school.receipt(network.url).version == 1
    assert again.manifest.version == 1


def _measuring(sizes: list[int]) -> httpx2.MockTransport:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            sizes.append(int(request.url.params["bytes"]))
        message = "measured"
        raise httpx2.ConnectError(message)

    return httpx2.MockTransport(handler)


def _settle(done: Callable[[], bool]) -> None:
    """Wait until the server has noticed what happened to its caller."""

    deadline_s = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_lost_answer(school: School) -> None:
    """The server published and its answer was lost: nothing is noted; again, the same version.

    Both audit logs have it once.
    """
    school.start()
    source = course(school.classrooms)

    class Losing(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            answer = super().handle_request(request)
            if request.method == "POST":
                answer.read()
                message = "the answer was lost"
                raise httpx2.ReadError(message)
            return answer

    school.refused(source, PublishServerUnreachableError, wire=Losing())
    assert school.versions() == [1]
    again = school.publish(source)
    assert (again.new, again.manifest.version) == (False, 1)
    assert school.versions() == [1]
    entries = school.get("/api/v1/audit").json()["items"]
    published = [one for one in entries if one["action"] == "course.published"]
    assert [(one["actor"]["kind"], one["subject"]["key"]) for one in published] == [
        ("publisher", 1)
    ]

    async def here() -> Any:
        async with school.database.read() as connection:
            return (await list_audit(connection)).items

    (entry,) = school.run(here())
    assert (entry.actor, entry.action, entry.subject) == (
        HOST,
        "course.published",
        ("manifest", 1),
    )


def test_a_server_that_is_full(school: School) -> None:
    """Files that cannot grow: refused by its code, nothing visible or left over."""
    school.start()
    source = course(school.classrooms)
    _, hard = resource.prlimit(school.server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(school.server.pid, resource.RLIMIT_FSIZE, (3_000, hard))
    error = school.refused(source, PublishServerFailedError)
    assert error.params["remoteCode"] == "DISK_FULL"
    resource.prlimit(school.server.pid, resource.RLIMIT_FSIZE, (hard, hard))
    assert school.versions() == []
    assert school.stored() == []
    assert school.publish(source).manifest.version == 1


def test_a_redirect_is_not_followed(school: School) -> None:
    """The token goes to the configured address and nowhere else."""
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        error = school.refused(course(school.classrooms), PublishServerStrangeError, url=url)
        server.shutdown()
    assert error.params["reason"] == "redirect"
    assert [one.partition("?")[0] for one in asked] == [PATH]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda told: told.update(courseId="other"), "courseId"),
        (lambda told: told.update(manifestVersion=9), "manifestHash"),
        (lambda told: told.update(manifestHash="sha256:" + "0" * 64), "manifestHash"),
        (lambda told: told["modules"].pop(), "modules"),
        (lambda told: told["modules"][1].update(index=0), "modules[1].index"),
        (lambda told: told["modules"][1].update(coursewareId="x"), "modules[1].coursewareId"),
        (
            lambda told: told["modules"][0].update(contentHash="sha256:" + "0" * 64),
            "modules[0].contentHash",
        ),
        (
            lambda told: told["modules"][0].update(bundleSha256="0" * 64),
            "modules[0].bundleSha256",
        ),
        (lambda told: told["modules"][0].update(coursewareVersion=7), "manifestHash"),
        (lambda told: told.pop("modules"), "receipt"),
    ],
)
def test_a_receipt_must_say_what_was_sent(
    school: School, change: Callable[[dict[str, Any]], None], part: str
) -> None:
    """Whatever part of the receipt differs from what was frozen: refused, nothing noted."""
    school.start()

    class Lying(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            answer = super().handle_request(request)
            if request.method == "GET":
                return answer
            told = json.loads(answer.read())
            change(told)
            return httpx2.Response(200, json=told)

    error = school.refused(course(school.classrooms), PublishReceiptMismatchError, wire=Lying())
    assert error.params["part"] == part


def test_a_change_while_it_is_sent(school: School) -> None:
    """A classroom that changes before all of it was sent: the server never sees the end of it."""
    school.start()
    source = course(school.classrooms)

    def change(name: str) -> None:
        if name == "courseware.publish.sending":
            (school.classrooms / "harbour_0" / "media" / "new.png").write_bytes(b"new")

    with armed(change):
        school.refused(source, SourceChangedError)
    assert school.versions() == []
    _settle(lambda: school.stored() == [])


def test_a_stored_bundle_that_is_damaged_there(school: School) -> None:
    """The server's bytes of equal content are damaged: the operator is told which, by index."""
    school.start()
    source = course(school.classrooms)
    school.publish(source)
    sha256 = school.get("/api/coursewares/cw_harbour_1/bundles/1/download").headers["etag"][8:-1]
    path = school.data / "blobs" / sha256[:2] / sha256[2:4] / sha256
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(PublishRefusedError) as caught:
        school.publish(source)
    assert [(one.params["moduleIndex"], one.code) for one in caught.value.parts] == [
        (1, "BUNDLE_DAMAGED")
    ]
    path.unlink()
    with pytest.raises(PublishRefusedError) as caught:
        school.publish(source)
    assert [one.code for one in caught.value.parts] == ["BUNDLE_STORED_MISSING"]
    assert caught.value.params["earliestFailedIndex"] == 1


def test_courses_are_not_mixed(school: School) -> None:
    """A courseware that belongs to another course there is refused."""
    school.start()
    source = course(school.classrooms)
    school.publish(source)
    other = msgspec.structs.replace(source, course_id="lighthouse")
    with pytest.raises(PublishRefusedError) as caught:
        school.publish(other)
    assert [one.code for one in caught.value.parts] == ["COURSEWARE_FOREIGN"] * 2
    assert school.get("/api/learn/courses/lighthouse").status_code == 404


def test_an_older_manifest_there_is_wrapped(school: School) -> None:
    """A record that an older system left on the server stays; the next version is its plus one."""
    folder = school.data / "course-manifests"
    folder.mkdir()
    (folder / "harbour.json").write_bytes(b'{"courseId": "harbour", "version": 7, "title": "Old"}')
    school.start()
    assert school.get("/api/learn/courses/harbour").json()["code"] == "MANIFEST_UNPINNED"
    published = school.publish(course(school.classrooms))
    assert published.manifest.version == 8
    assert school.receipt().version == 8
    assert school.get("/api/learn/courses/harbour").json()["version"] == 8
    assert school.get("/api/learn/courses/harbour?version=7").status_code == 409


def test_nothing_is_held_in_memory(school: School) -> None:
    """Bundles of 40 MB go through the server in blocks: its memory stays what it was."""
    school.start()
    plain = document("harbour_0", "Module 0")
    film = {"id": "f", "type": "video", "left": 0, "top": 0, "width": 9, "height": 9}
    board = {"id": "wb_2", "elements": [film | {"src": "media/film.mp4"}]}
    plain["stage"]["whiteboard"].append(board)
    lay_out(school.classrooms, plain, media_bytes=40 << 20)
    only = module(school.classrooms, "harbour_0", ())
    source = CourseSource(
        course_id="harbour", title="Harbour", planned=(only.module_id,), modules=(only,)
    )
    before = _peak_mb(school.server.pid)
    assert school.publish(source).new
    assert _peak_mb(school.server.pid) - before < 30


def _peak_mb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(one.split()[1]) // 1024 for one in lines if one.startswith("VmHWM"))


def test_a_withdrawal_reaches_the_server(school: School) -> None:
    """Withdrawn there and noted here, with an entry in both audit logs; twice is once there."""
    school.start()
    source = course(school.classrooms)
    school.publish(source)
    withdraw = school.publisher().withdraw
    school.run(withdraw("harbour", 1, "rights", actor=HOST))
    assert school.get("/api/learn/courses/harbour").status_code == 410
    assert "rights" in school.get("/api/learn/courses/harbour?version=1").json()["detail"]
    assert school.receipt() is None
    entries = [
        one
        for one in school.get("/api/v1/audit").json()["items"]
        if one["action"] == "course.withdrawn"
    ]
    (entry,) = entries
    assert (entry["actor"]["kind"], entry["subject"]["key"]) == ("publisher", 1)
    assert entry["detail"] == {"course": "harbour"}
    assert "rights" not in json.dumps(entry)
    school.run(withdraw("harbour", 1, "again", actor=HOST))
    assert "rights" in school.get("/api/learn/courses/harbour?version=1").json()["detail"]

    async def here() -> list[str]:
        async with school.database.read() as connection:
            return [one.action for one in (await list_audit(connection)).items]

    assert school.run(here()) == ["course.published", *["course.withdrawn"] * 2]
    again = school.publish(source)
    assert (again.new, again.manifest.version) == (True, 2)
    with pytest.raises(CourseUnpublishedError):
        school.run(withdraw("harbour", 7, "rights", actor=HOST))
    with pytest.raises(PublishServerError):
        school.run(school.publisher(token=NEW).withdraw("harbour", 2, "x", actor=HOST))
