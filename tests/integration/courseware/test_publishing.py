"""Publishing on both databases: gates, one transaction, same content, tombstones, old manifests."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.courseware import catalogue, registry
from etude.courseware.bundle_errors import BundleUnsafeError
from etude.courseware.course_manifest import course_manifest_bytes
from etude.courseware.errors import (
    BundleStoredMissingError,
    CourseUnpublishedError,
    CoursewareUnknownError,
    LegacyManifestError,
    ManifestUnpinnedError,
    ManifestWithdrawnError,
    PublishRefusedError,
    PublishTokenMissingError,
    SourceChangedError,
)
from etude.courseware.gates import ContinuityRef, CourseSource
from etude.courseware.publishing import Publisher
from etude.courseware.registering import bundle_blobs
from etude.errors import EtudeError
from etude.files import armed
from etude.people.records import HOST
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.courseware import course, document, lay_out, module

Run = Callable[..., Any]
TOKEN = "t" * 32


class Crash(BaseException):
    """The process ends here."""


class Works:
    """A publisher and its folders."""

    def __init__(self, database: Database, run: Run, root: Path) -> None:
        self.database, self.run, self.root = database, run, root
        self.classrooms, self.legacy = root / "classrooms", root / "course-manifests"
        for folder in (self.classrooms, self.legacy):
            folder.mkdir()
        self.clock = ManualClock()
        self.blobs = bundle_blobs(root / "blobs", self.clock)

    def publisher(self, token: str = TOKEN) -> Publisher:
        return Publisher(
            self.database,
            self.root / "blobs",
            self.clock,
            classrooms=self.classrooms,
            legacy=self.legacy,
            token=token,
        )

    def publish(self, source: CourseSource) -> Any:
        return self.run(self.publisher().publish(source, HOST))

    def failures(self, source: CourseSource) -> list[tuple[int, str]]:
        with pytest.raises(PublishRefusedError) as caught:
            self.publish(source)
        self.earliest = caught.value.params["earliestFailedIndex"]
        return [(part.params.get("moduleIndex", -1), part.code) for part in caught.value.parts]

    def manifest(self, version: int | None = None, course_id: str = "harbour") -> Any:
        async def read() -> Any:
            older = catalogue.legacy_of(self.legacy, course_id)
            async with self.database.read() as connection:
                return await catalogue.manifest_of(connection, course_id, version, older)

        return self.run(read())

    def version(self, courseware_id: str, version: int | None = None) -> Any:
        async def read() -> Any:
            async with self.database.read() as connection:
                return await catalogue.version_of(connection, courseware_id, version)

        return self.run(read())

    def withdraw(self, version: int, reason: str = "rights") -> None:
        async def write() -> None:
            async with self.database.transaction() as work:
                now = self.clock.now()
                await catalogue.withdraw(work, "harbour", version, reason, actor=HOST, now=now)

        self.run(write())

    def rows(self) -> int:
        async def count() -> int:
            async with self.database.read() as connection:
                found = [await registry.manifest(connection, "harbour", n) for n in (1, 2)]
                known = [await registry.version(connection, f"cw_harbour_{n}", 1) for n in (0, 1)]
                return sum(one is not None for one in (*found, *known))

        return int(self.run(count()))


@pytest.fixture
def works(database: Database, run: Run, tmp_path: Path) -> Works:
    return Works(database, run, tmp_path)


def changed(source: CourseSource, index: int, **fields: Any) -> CourseSource:
    modules = list(source.modules)
    modules[index] = msgspec.structs.replace(modules[index], **fields)
    return msgspec.structs.replace(source, modules=tuple(modules))


def test_a_course_is_published_by_hash(works: Works) -> None:
    """The manifest pins id, version and hash of each module, and its bytes are canonical."""
    published = works.publish(course(works.classrooms))
    row = works.manifest()
    assert published.new
    assert row.body == course_manifest_bytes(published.manifest)
    assert [one.courseware_version for one in published.manifest.modules] == [1, 1]
    assert works.version("cw_harbour_1").content_hash == published.manifest.modules[1].content_hash
    assert json.loads(row.body)["schemaVersion"] == 2


def test_same_content_is_the_same_version(works: Works) -> None:
    """Publishing the same again returns the manifest that there is, after reading bytes back."""
    source = course(works.classrooms)
    first, second = works.publish(source), works.publish(source)
    assert not second.new
    assert second.manifest == first.manifest
    assert works.rows() == 3


def test_a_changed_module_moves_only_itself(works: Works) -> None:
    """A module generated anew gets a version, its neighbour keeps its own, old manifests stay."""
    source = course(works.classrooms)
    first = works.publish(source)
    before = works.manifest(1).body
    lay_out(works.classrooms, document("harbour_1", "Module 1, again"), number=10)
    refs = source.modules[1].continuity
    again = msgspec.structs.replace(
        source,
        modules=(source.modules[0], module(works.classrooms, "harbour_1", refs or ())),
    )
    second = works.publish(again)
    assert second.manifest.version == 2
    assert [one.courseware_version for one in second.manifest.modules] == [1, 2]
    assert works.manifest(1).body == before == course_manifest_bytes(first.manifest)


def test_every_failure_is_told_at_once(works: Works) -> None:
    """All failures come together, by module and in the order of the gates."""
    source = course(works.classrooms, modules=4)
    refs = source.modules[3].continuity or ()
    stale = ContinuityRef(
        module_index=1, classroom_id="harbour_1", semantic_hash="sha256:" + "0" * 64
    )
    source = changed(source, 0, succeeded=False)
    source = changed(source, 1, semantic_hash="sha256:" + "1" * 64, source_revision_hash="x")
    source = changed(source, 2, continuity=None)
    source = changed(source, 3, continuity=(refs[0], stale, refs[2]))
    assert works.failures(source) == [
        (0, "MODULE_NOT_SUCCEEDED"),
        (1, "SEMANTIC_DRIFT"),
        (1, "SOURCE_DRIFT"),
        (1, "CONTINUITY_STALE"),
        (2, "CONTINUITY_UNVERIFIED"),
        (3, "CONTINUITY_STALE"),
        (3, "CONTINUITY_STALE"),
    ]
    assert works.earliest == 0
    assert works.rows() == 0


def test_the_set_of_modules_counts(works: Works) -> None:
    """Another number or order of modules than planned is refused."""
    source = course(works.classrooms)
    reversed_ = msgspec.structs.replace(source, planned=tuple(reversed(source.planned)))
    assert works.failures(reversed_) == [(-1, "MODULE_SET_MISMATCH")]
    assert works.earliest == -1


def test_layout_alone_is_source_drift(works: Works) -> None:
    """A picture that changed is no change of meaning, and still not what was generated."""
    source = course(works.classrooms)
    (works.classrooms / "harbour_0" / "media" / "moon.png").write_bytes(b"\x89PNG\r\n\x1a\nother")
    assert works.failures(source) == [(0, "SOURCE_DRIFT")]


def test_changed_words_are_semantic_drift(works: Works) -> None:
    """Words that changed make the module drift and every later one stale."""
    source = course(works.classrooms)
    lay_out(works.classrooms, document("harbour_0", "Something else"))
    assert works.failures(source) == [
        (0, "SEMANTIC_DRIFT"),
        (0, "SOURCE_DRIFT"),
        (1, "CONTINUITY_STALE"),
    ]


def test_a_classroom_that_is_gone_is_unreadable(works: Works) -> None:
    """A missing classroom closes its own gate and makes later modules stale."""
    source = course(works.classrooms)
    (works.classrooms / "harbour_0.json").unlink()
    assert works.failures(source)[0] == (0, "CLASSROOM_UNREADABLE")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda c: c["scenes"].pop(1), "INTERACTIVE_HTML_MISSING"),
        (lambda c: c["scenes"][0]["actions"][0].pop("audioRef"), "SPEECH_AUDIO_MISSING"),
        (lambda c: c["scenes"][4]["content"]["clips"][0].pop("audioRef"), "PRACTICE_AUDIO_MISSING"),
        (
            lambda c: c["stage"]["whiteboard"][0]["elements"][0].update(src="gen_img_1"),
            "MEDIA_UNRESOLVED",
        ),
        (
            lambda c: c["scenes"][1]["content"].update(html="<img src=https://example.org/a>"),
            "INTERACTIVE_ASSET_UNRESOLVED",
        ),
    ],
)
def test_incomplete_classrooms_are_refused(
    works: Works, change: Callable[[dict[str, Any]], None], code: str
) -> None:
    """Missing pages, sounds, pictures are failures of their module with their own code."""
    plain = document("harbour_0")
    change(plain)
    lay_out(works.classrooms, plain)
    made = module(works.classrooms, "harbour_0", ())
    source = CourseSource(
        course_id="harbour", title="Harbour", planned=(made.module_id,), modules=(made,)
    )
    assert works.failures(source) == [(0, code)]


def test_without_a_token_nothing_is_published(works: Works) -> None:
    """A missing or short token refuses, locally too."""
    for token in ("", "short"):
        with pytest.raises(PublishTokenMissingError):
            works.run(works.publisher(token).publish(course(works.classrooms), HOST))


def _bundle_of(works: Works, courseware_id: str) -> Path:
    path: Path = works.blobs.file_of(works.version(courseware_id).bundle_sha256)
    return path


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_damaged_stored_bundle_is_no_success(works: Works, share: float) -> None:
    """One changed byte of a stored bundle: publishing the same content refuses, changes nothing."""
    source = course(works.classrooms)
    works.publish(source)
    path = _bundle_of(works, "cw_harbour_0")
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 1
    path.write_bytes(data)
    with pytest.raises(BundleUnsafeError):
        works.publish(source)
    assert works.manifest().version == 1


def test_a_lost_stored_bundle_is_no_success(works: Works) -> None:
    """A stored bundle that is gone: publishing the same content says so."""
    source = course(works.classrooms)
    works.publish(source)
    _bundle_of(works, "cw_harbour_0").unlink()
    with pytest.raises(BundleStoredMissingError):
        works.publish(source)


@pytest.mark.parametrize(
    "point",
    [
        "store.blob.written",
        "store.blob.durable",
        "courseware.bundles.stored",
        "courseware.versions.inserted",
        "courseware.manifest.inserted",
        "store.transaction.before_commit",
    ],
)
def test_a_crash_leaves_the_old_state(works: Works, point: str) -> None:
    """Ended anywhere before the commit, nothing is visible; the next publication is version 1."""
    source = course(works.classrooms)

    def end(name: str) -> None:
        if name == point:
            raise Crash

    with contextlib.suppress(Crash), armed(end):
        works.publish(source)
    assert works.rows() == 0
    with pytest.raises(CourseUnpublishedError):
        works.manifest()
    assert works.publish(source).manifest.version == 1


def test_a_change_meanwhile_is_noticed(works: Works) -> None:
    """A classroom that changes after its bundle was made keeps the manifest from being written."""
    source = course(works.classrooms)

    def change(name: str) -> None:
        if name == "courseware.bundles.stored":
            (works.classrooms / "harbour_1" / "media" / "new.png").write_bytes(b"new")

    with armed(change), pytest.raises(SourceChangedError):
        works.publish(source)
    assert works.rows() == 0


def test_a_file_that_goes_meanwhile_is_told(works: Works) -> None:
    """A sound that is removed after it was hashed: refused by a code, not by a traceback."""
    source = course(works.classrooms)
    gone = works.classrooms / "harbour_0" / "audio" / "1.wav"

    class Removing(Publisher):
        async def _stored(self, passed: Any) -> Any:
            gone.unlink(missing_ok=True)
            return await super()._stored(passed)

    publisher = Removing(
        works.database,
        works.root / "blobs",
        works.clock,
        classrooms=works.classrooms,
        legacy=works.legacy,
        token=TOKEN,
    )
    with pytest.raises(SourceChangedError):
        works.run(publisher.publish(source, HOST))
    assert works.rows() == 0


def test_a_withdrawn_manifest_is_gone(works: Works) -> None:
    """A withdrawal leaves a tombstone; the same content comes back as a new version only."""
    source = course(works.classrooms)
    works.publish(source)
    works.withdraw(1)
    with pytest.raises(ManifestWithdrawnError) as caught:
        works.manifest(1)
    assert caught.value.params["reason"] == "rights"
    with pytest.raises(ManifestWithdrawnError):
        works.manifest()
    with pytest.raises(ManifestWithdrawnError) as caught:
        works.version("cw_harbour_0", 1)
    assert caught.value.params["reason"] == "rights"
    with pytest.raises(CoursewareUnknownError):
        works.version("cw_harbour_0", 9)
    again = works.publish(source)
    assert (again.new, again.manifest.version) == (True, 2)
    assert works.version("cw_harbour_0", 1).version == 1
    assert works.manifest().version == 2


def test_an_older_manifest_is_wrapped(works: Works) -> None:
    """An older record answers 409, stays verbatim, and the next version is its own plus one."""
    body = b'{ "courseId": "harbour", "version": 7, "title": "Old",  "modules": [] }'
    (works.legacy / "harbour.json").write_bytes(body)
    with pytest.raises(ManifestUnpinnedError):
        works.manifest()
    assert works.publish(course(works.classrooms)).manifest.version == 8
    with pytest.raises(ManifestUnpinnedError):
        works.manifest(7)

    async def old() -> bytes:
        async with works.database.read() as connection:
            row = await registry.manifest(connection, "harbour", 7)
            assert row is not None
            return row.body

    assert works.run(old()) == body
    assert works.manifest().version == 8


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"version":0}', b'{"version":1,"courseId":"x"}'])
def test_an_unreadable_older_manifest_stops(works: Works, body: bytes) -> None:
    """Nothing is published over an older manifest that nobody can read."""
    (works.legacy / "harbour.json").write_bytes(body)
    with pytest.raises(LegacyManifestError):
        works.publish(course(works.classrooms))


def test_what_nothing_pins_is_hidden(works: Works) -> None:
    """Versions that no manifest pins do not exist for the public."""
    with pytest.raises(CoursewareUnknownError):
        works.version("cw_harbour_0")
    with pytest.raises(EtudeError):
        works.manifest(3)


def test_readiness_says_what_publishing_would(works: Works) -> None:
    """Ready means publishable; otherwise the blockers are the failures; parts that need a model."""
    source = course(works.classrooms)
    ready = works.run(works.publisher().readiness(source))
    assert (ready.ready, dict(ready.needs_model)) == (True, {0: ("pbl",), 1: ("pbl",)})
    broken = changed(source, 1, continuity=None)
    told = works.run(works.publisher().readiness(broken))
    assert [one.code for one in told.blockers] == ["CONTINUITY_UNVERIFIED"]
    assert not works.run(works.publisher("").readiness(source)).ready
