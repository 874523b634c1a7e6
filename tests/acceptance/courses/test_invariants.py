"""The seven invariants of the large course mode, by number, on the product as it is put together.

A course is made by the outline author from a sample that ships, published, and read over HTTP as
learners read it. Each invariant is the name of its test.
"""

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import httpx2
import msgspec
import pytest
from pydantic import SecretStr

from etude.authoring.authors import OutlineAuthor
from etude.authoring.errors import CourseStateError
from etude.authoring.publication import standing
from etude.authoring.records import Course
from etude.classroom.actions import Speech
from etude.classroom.digest import semantic_hash
from etude.classroom.library import ClassroomLibrary
from etude.classroom.model import InteractiveContent, PracticeContent
from etude.courseware.bundle import Bundle
from etude.courseware.errors import PinHashMismatchError, PublishRefusedError
from etude.courseware.loading import Loaded, Pin, Registered, load_courseware
from etude.courseware.receipts import HERE
from etude.errors import EtudeError
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.testing.workshop import Workshop
from etude.web.services import compose

Run = Callable[..., Any]
TOKEN = "t" * 40


class House:
    """An installation of role `all`: its workshop, and what anybody sees of it over HTTP."""

    def __init__(self, run: Run, data: Path, url: str) -> None:
        self.run, self.data = run, data
        self.settings = Settings(
            data=data, database_url=url, courseware_publish_token=SecretStr(TOKEN)
        )
        self.database: Database = run(Database.open(url))
        self.workshop = Workshop(self.settings, self.database)
        self.services = compose(self.settings, self.database)
        self.library = ClassroomLibrary(self.settings.classrooms)

    def get(self, path: str, **how: Any) -> httpx2.Response:
        async def ask() -> httpx2.Response:
            async with web.client(self.services) as client:
                return await client.get(path, **how)

        answer: httpx2.Response = self.run(ask())
        return answer

    def course(self, course_id: str) -> Course:
        found: Course = self.run(self.workshop.courses.get(course_id))
        return found

    def manifest(self, course_id: str, version: int) -> httpx2.Response:
        return self.get(f"/api/learn/courses/{course_id}?version={version}")

    def bundle(self, pin: dict[str, Any]) -> bytes:
        path = f"/api/coursewares/{pin['coursewareId']}/bundles/{pin['coursewareVersion']}/download"
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.content

    def seen(self, course_id: str, version: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """Return everything that learners see of a version: manifest, registry, bundles."""
        manifest = self.manifest(course_id, version)
        assert manifest.status_code == 200, manifest.text
        parts = []
        for pin in manifest.json()["modules"]:
            asked = f"/api/coursewares/{pin['coursewareId']}?version={pin['coursewareVersion']}"
            parts.append((self.get(asked).content, self.bundle(pin)))
        return manifest.content, parts

    def load(self, pin: dict[str, Any], cache: Path, **changed: Any) -> Loaded:
        """Load a module as a learner's player does, everything over HTTP."""
        told = pin | changed

        def ask(courseware_id: str, version: int) -> Registered | None:
            answer = self.get(f"/api/coursewares/{courseware_id}?version={version}")
            if answer.status_code == 404:
                return None
            return msgspec.json.decode(answer.content, type=Registered)

        def download(registered: Registered, file: BinaryIO) -> None:
            file.write(
                self.bundle(
                    {
                        "coursewareId": registered.courseware_id,
                        "coursewareVersion": registered.version,
                    }
                )
            )

        wanted = Pin(
            courseware_id=told["coursewareId"],
            version=told["coursewareVersion"],
            content_hash=told["contentHash"],
        )
        return load_courseware(wanted, ask, download, cache)


@pytest.fixture
def house(run: Run, tmp_path: Path, sqlite_copy: Callable[[Path], str]) -> Iterator[House]:
    data = tmp_path / "data"
    data.mkdir()
    made = House(run, data, sqlite_copy(data))
    yield made
    run(made.database.close())


@pytest.fixture
def finished(laptop: Any, run: Run) -> Iterator[tuple[House, Course]]:
    """An installation with a made course, from the copy that the folder's fixtures keep."""
    made = House(run, laptop.data, laptop.database_url)
    yield made, made.course(laptop.course_id)
    run(made.database.close())


def test_invariant_1_no_module_job_before_a_person_confirms(house: House) -> None:
    """The framework stage ends at framework_ready: no module, no classroom, no job that waits."""
    course: Course = house.run(house.workshop.planned())
    assert course.status == "framework_ready"
    assert course.framework is not None
    assert {one.status for one in course.modules} == {"pending"}
    assert house.library.ids() == ()
    with sqlite3.connect(house.data / "etude.db") as database:
        waiting = database.execute("SELECT count(*) FROM job WHERE state IN ('queued', 'running')")
        assert waiting.fetchone() == (0,)
    with pytest.raises(CourseStateError):
        house.run(house.workshop.courses.retry(course.course_id, 0))
    assert house.run(house.workshop.work()) == 0


def test_invariant_2_snapshot_digest_and_exact_refs(finished: tuple[House, Course]) -> None:
    """Each module has its prompt and digest; later ones refer exactly to what was really made."""
    house, course = finished
    for module in course.modules:
        assert course.framework is not None
        spec = course.framework.modules[module.index]
        assert module.prompt == spec.generation_prompt
        assert module.digest is not None
        stored = house.library.read(str(module.classroom_id))
        assert module.digest.semantic_hash == semantic_hash(stored)
        assert module.refs is not None
        assert [(ref.module_index, ref.classroom_id, ref.semantic_hash) for ref in module.refs] == [
            (one.index, one.classroom_id, one.digest and one.digest.semantic_hash)
            for one in course.modules[: module.index]
        ]


def test_invariant_3_a_failed_module_stops_the_rest(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Module 1 cannot be made: it failed, 2 and 3 are never begun, nothing can be published."""
    made = OutlineAuthor.module

    async def failing(self: OutlineAuthor, order: Any, draft: Any) -> Any:
        if order.index == 1:
            message = "no"
            raise RuntimeError(message)
        return await made(self, order, draft)

    monkeypatch.setattr(OutlineAuthor, "module", failing)
    course: Course = house.run(house.workshop.made())
    assert course.status == "failed"
    assert [one.status for one in course.modules] == ["succeeded", "failed", "pending", "pending"]
    assert len(house.library.ids()) == 1
    with pytest.raises(PublishRefusedError) as caught:
        house.run(house.workshop.publish(course.course_id))
    assert caught.value.params["earliestFailedIndex"] == 1
    assert house.manifest(course.course_id, 1).status_code == 404
    monkeypatch.undo()
    house.run(house.workshop.courses.resume(course.course_id))
    house.run(house.workshop.work())
    again = house.course(course.course_id)
    assert [one.status for one in again.modules] == ["succeeded"] * 4
    assert again.modules[0].classroom_id == course.modules[0].classroom_id


def test_invariant_4_every_module_has_a_page(finished: tuple[House, Course]) -> None:
    """Each module has an activity whose page is not blank, and blanked it is not published."""
    house, course = finished
    for module in course.modules:
        assert pages(house, module.classroom_id)
    target = house.settings.classrooms / f"{course.modules[2].classroom_id}.json"
    document = json.loads(target.read_bytes())
    for scene in document["scenes"]:
        if scene["type"] == "interactive":
            scene["content"]["html"] = "  "
    target.write_bytes(json.dumps(document).encode())
    with pytest.raises(PublishRefusedError) as caught:
        house.run(house.workshop.publish(course.course_id))
    told = [(one.params["moduleIndex"], one.code) for one in caught.value.parts]
    assert (2, "INTERACTIVE_HTML_MISSING") in told
    assert {index for index, _ in told} <= {2, 3}


def pages(house: House, classroom_id: str | None) -> list[str]:
    found = house.library.read(str(classroom_id)).scenes
    contents = [one.content for one in found if isinstance(one.content, InteractiveContent)]
    return [one.html for one in contents if (one.html or "").strip()]


def test_invariant_5_a_bundle_holds_everything(finished: tuple[House, Course]) -> None:
    """Roster with voices, boards, media, every speech's sound: inside, and nothing of the maker's.

    What is compared is the classroom as it was made with the bundle as anybody downloads it.
    """
    house, course = finished
    furnished(house, course, 0)
    house.run(house.workshop.courses.accept_source(course.course_id, 0))
    house.run(house.workshop.regenerated(course.course_id, [1, 2, 3]))
    published = house.run(house.workshop.publish(course.course_id))
    for module, pin in zip(
        house.course(course.course_id).modules, published.manifest.modules, strict=True
    ):
        source = house.library.read(str(module.classroom_id))
        content = house.bundle(json.loads(msgspec.json.encode(pin)))
        with zipfile.ZipFile(BytesIO(content)) as archive:
            names = set(archive.namelist())
            frozen = json.loads(archive.read("classroom.json"))
        roster = frozen["stage"]["generatedAgentConfigs"]
        assert [one["name"] for one in roster] == [
            one.name for one in source.stage.generated_agent_configs
        ]
        assert [one["role"] for one in roster].count("teacher") == 1
        assert len(roster) >= 2
        said = [
            action
            for scene in frozen["scenes"]
            for action in scene.get("actions", ())
            if action["type"] == "speech"
        ]
        spoken = [
            one for scene in source.scenes for one in scene.actions if isinstance(one, Speech)
        ]
        assert len(said) == len(spoken) > 0
        assert all(one["audioRef"] in names and "audioUrl" not in one for one in said)
        clips = [
            clip
            for scene in frozen["scenes"]
            if scene["type"] == "practice"
            for clip in scene["content"]["clips"]
        ]
        assert clips
        assert all(one["audioRef"] in names and one["durationMs"] > 0 for one in clips)
        assert not any(b"http://" in one or b"https://" in one for one in references(frozen))
    first = house.bundle(json.loads(msgspec.json.encode(published.manifest.modules[0])))
    with zipfile.ZipFile(BytesIO(first)) as archive:
        stage = json.loads(archive.read("classroom.json"))["stage"]
        picture = stage["whiteboard"][0]["elements"][0]["src"]
        assert archive.read(picture) == PNG
        assert stage["generatedAgentConfigs"][0]["voiceConfig"]["voiceId"] == "en_GB-alba"


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDAT"
    b"x\x9cc\xf8\xff\xff?\0\5\xfe\2\xfe\xa75\x81\x84\0\0\0\0IEND\xaeB`\x82"
)


def furnished(house: House, course: Course, index: int) -> None:
    """Give a module a board with a picture and its teacher a voice, as somebody who edits it."""
    classroom_id = str(course.modules[index].classroom_id)
    target = house.settings.classrooms / f"{classroom_id}.json"
    document = json.loads(target.read_bytes())
    media = house.settings.classrooms / classroom_id / "media"
    media.mkdir(exist_ok=True)
    (media / "board.png").write_bytes(PNG)
    picture = {"id": "p", "type": "image", "left": 0, "top": 0, "width": 9, "height": 9}
    board = {"id": "wb_1", "elements": [picture | {"src": "media/board.png"}]}
    document["stage"]["whiteboard"] = [board]
    teacher = document["stage"]["generatedAgentConfigs"][0]
    teacher["voiceConfig"] = {"providerId": "piper", "voiceId": "en_GB-alba"}
    target.write_bytes(json.dumps(document).encode())


def moved(house: House, course: Course, index: int) -> None:
    """Move a part of a slide by a little: layout, and nothing that a learner reads."""
    target = house.settings.classrooms / f"{course.modules[index].classroom_id}.json"
    document = json.loads(target.read_bytes())
    slide = next(one for one in document["scenes"] if one["type"] == "slide")
    slide["content"]["canvas"]["elements"][0]["left"] += 1
    target.write_bytes(json.dumps(document).encode())


def references(value: Any) -> Iterator[bytes]:
    """Yield every address in a document: what stands under a key that names one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"src", "url", "audioRef", "poster", "mediaRef"} and isinstance(inner, str):
                yield inner.encode()
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_invariant_6_old_manifests_never_drift(
    finished: tuple[House, Course], tmp_path: Path
) -> None:
    """v1 stays byte for byte what it was, whatever is regenerated, edited, republished after it.

    Manifest, registry and bundles are compared as learners get them, and v1 still loads.
    """
    house, course = finished
    course_id = course.course_id
    first = house.run(house.workshop.publish(course_id))
    assert first.manifest.version == 1
    before = house.seen(course_id, 1)
    pins = json.loads(before[0])["modules"]
    assert [sorted(one) for one in pins] == [
        ["contentHash", "coursewareId", "coursewareVersion", "description", "index", "title"]
    ] * 4
    moved(house, course, 3)
    with pytest.raises(PublishRefusedError) as caught:
        house.run(house.workshop.publish(course_id))
    assert [one.code for one in caught.value.parts] == ["SOURCE_DRIFT"]
    drifted = house.run(standing(house.workshop.courses, house.course(course_id), HERE))
    assert (drifted.version, drifted.drifted) == (1, (3,))
    house.run(house.workshop.courses.accept_source(course_id, 3))
    second = house.run(house.workshop.publish(course_id))
    assert second.manifest.version == 2
    assert [one.courseware_version for one in second.manifest.modules] == [1, 1, 1, 2]
    assert house.seen(course_id, 1) == before
    house.run(house.workshop.regenerated(course_id, [1]))
    with pytest.raises(PublishRefusedError) as caught:
        house.run(house.workshop.publish(course_id))
    assert {(one.params["moduleIndex"], one.code) for one in caught.value.parts} == {
        (2, "CONTINUITY_STALE"),
        (3, "CONTINUITY_STALE"),
    }
    assert caught.value.params["earliestFailedIndex"] == 2
    assert house.seen(course_id, 1) == before
    house.run(house.workshop.courses.regenerate_from(course_id, 2))
    house.run(house.workshop.work())
    third = house.run(house.workshop.publish(course_id))
    assert third.manifest.version == 3
    assert house.seen(course_id, 1) == before
    now = house.run(standing(house.workshop.courses, house.course(course_id), HERE))
    assert (now.version, now.drifted) == (3, ())
    for pin in pins:
        loaded = house.load(pin, tmp_path / "cache")
        assert loaded.classroom.stage.name == pin["title"]
    assert house.get(f"/api/learn/courses/{course_id}").json()["version"] == 3


def test_the_same_content_is_the_same_version(finished: tuple[House, Course]) -> None:
    """Published twice, nothing is new; a change that leaves the bundle alone is no new version.

    The receipt moves all the same: nothing is called drifted after it was published.
    """
    house, course = finished
    course_id = course.course_id
    first = house.run(house.workshop.publish(course_id))
    again = house.run(house.workshop.publish(course_id))
    assert (again.new, again.manifest) == (False, first.manifest)
    unused = house.settings.classrooms / str(course.modules[0].classroom_id) / "media"
    unused.mkdir(exist_ok=True)
    (unused / "unused.png").write_bytes(PNG)
    house.run(house.workshop.courses.accept_source(course_id, 0))
    drifted = house.run(standing(house.workshop.courses, house.course(course_id), HERE))
    assert drifted.drifted == (0,)
    third = house.run(house.workshop.publish(course_id))
    assert (third.new, third.manifest.version) == (False, 1)
    settled = house.run(standing(house.workshop.courses, house.course(course_id), HERE))
    assert settled.drifted == ()


@pytest.fixture
def published(finished: tuple[House, Course]) -> tuple[House, dict[str, Any]]:
    house, course = finished
    house.run(house.workshop.publish(course.course_id))
    pin = house.manifest(course.course_id, 1).json()["modules"][1]
    return house, pin


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"contentHash": None}, "PIN_INCOMPLETE"),
        ({"coursewareVersion": None}, "PIN_INCOMPLETE"),
        ({"contentHash": "sha256:" + "0" * 64}, "PIN_HASH_MISMATCH"),
        ({"contentHash": "sha256:" + "0" * 63}, "PIN_MALFORMED"),
        ({"contentHash": "md5:" + "0" * 64}, "PIN_MALFORMED"),
        ({"coursewareVersion": 0}, "PIN_MALFORMED"),
        ({"coursewareVersion": 2}, "REGISTRY_NOT_FOUND"),
        ({"coursewareId": "cw-" + "0" * 24}, "REGISTRY_NOT_FOUND"),
        ({"coursewareId": "../../etc/passwd"}, "PIN_MALFORMED"),
    ],
)
def test_invariant_7_a_changed_pin_is_refused(
    published: tuple[House, dict[str, Any]], tmp_path: Path, changed: dict[str, Any], code: str
) -> None:
    """Whatever of a pin is not the manifest's: refused by its code, nothing written or cached."""
    house, pin = published
    cache = tmp_path / "cache"
    with pytest.raises(EtudeError) as caught:
        house.load(pin, cache, **changed)
    assert caught.value.code == code
    assert not cache.exists()


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.5, 0.8, 0.98, 0.9999])
def test_invariant_7_any_changed_byte_is_refused(
    published: tuple[House, dict[str, Any]], tmp_path: Path, share: float
) -> None:
    """One bit of the stored bundle, wherever it lies: refused, nothing written or cached."""
    house, pin = published
    path = stored(house, pin)
    good = path.read_bytes()
    damaged = bytearray(good)
    damaged[int(len(good) * share)] ^= 1
    path.write_bytes(damaged)
    cache = tmp_path / "cache"
    with pytest.raises(EtudeError) as caught:
        house.load(pin, cache)
    assert caught.value.code.startswith(("BUNDLE_", "MATERIALIZE_"))
    assert not cache.exists() or list(cache.iterdir()) == []
    path.write_bytes(good)
    assert house.load(pin, cache).folder.is_dir()


def stored(house: House, pin: dict[str, Any]) -> Path:
    sha256 = hashlib.sha256(house.bundle(pin)).hexdigest()
    return house.settings.blobs / sha256[:2] / sha256[2:4] / sha256


def test_invariant_7_a_changed_registry_is_refused(
    published: tuple[House, dict[str, Any]], tmp_path: Path
) -> None:
    """A hash that was changed in the registry, or a bundle put in another's place: refused."""
    house, pin = published
    cache = tmp_path / "cache"
    with sqlite3.connect(house.data / "etude.db") as database:
        other = "sha256:" + "f" * 64
        database.execute(
            "UPDATE courseware_version SET content_hash = ? WHERE courseware_id = ?",
            (other, pin["coursewareId"]),
        )
    with pytest.raises(PinHashMismatchError):
        house.load(pin, cache)
    with pytest.raises(EtudeError) as caught:
        house.load(pin, cache, contentHash=other)
    assert caught.value.code == "BUNDLE_HASH_MISMATCH"
    with sqlite3.connect(house.data / "etude.db") as database:
        database.execute(
            "UPDATE courseware_version SET content_hash = ?, bundle_sha256 = (SELECT bundle_sha256"
            " FROM courseware_version WHERE module_index = 0) WHERE courseware_id = ?",
            (pin["contentHash"], pin["coursewareId"]),
        )
    with pytest.raises(EtudeError) as caught:
        house.load(pin, cache)
    assert caught.value.code == "BUNDLE_ID_MISMATCH"
    assert not cache.exists() or list(cache.iterdir()) == []


def test_invariant_7_success_opens_the_ordinary_stage(
    published: tuple[House, dict[str, Any]], tmp_path: Path
) -> None:
    """What passed is an ordinary classroom that any library opens: with its files, no outlines."""
    house, pin = published
    loaded = house.load(pin, tmp_path / "cache")
    assert loaded.stage_id.startswith(f"learn_{pin['coursewareId']}_v1_")
    assert loaded.stage_id.endswith(pin["contentHash"].removeprefix("sha256:"))
    bundle = Bundle(BytesIO(house.bundle(pin)))
    for row in bundle.manifest.files:
        content = (loaded.folder / row.path).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row.sha256
    kinds = {scene.type for scene in loaded.classroom.scenes}
    assert kinds >= {"slide", "quiz", "interactive", "practice"}
    clips = [
        clip
        for scene in loaded.classroom.scenes
        if isinstance(scene.content, PracticeContent)
        for clip in scene.content.clips
    ]
    assert all((loaded.folder / str(clip.audio_ref)).is_file() for clip in clips)
    assert house.load(pin, tmp_path / "cache").folder == loaded.folder
