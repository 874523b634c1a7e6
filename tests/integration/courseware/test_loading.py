"""The eight checks of a learner's loading, in order; nothing is kept before all passed."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest

from etude.courseware.bundle import Bundle
from etude.courseware.bundle_errors import (
    BundleDamagedError,
    BundleHashMismatchError,
    BundleIdMismatchError,
    BundleIncompleteError,
)
from etude.courseware.containment import CONTENT_POLICY
from etude.courseware.errors import (
    DownloadFailedError,
    LegacyHashUntrustedError,
    MaterializeFailedError,
    PinHashMismatchError,
    PinIncompleteError,
    PinMalformedError,
    RegistryIdentityError,
    RegistryNotFoundError,
)
from etude.courseware.freezing import Frozen, freeze
from etude.courseware.loading import Pin, Registered, load_courseware
from etude.courseware.manifest import manifest_bytes, sealed
from etude.courseware.source_files import hash_files
from etude.courseware.zip_writing import Entry, archive
from etude.errors import EtudeError
from etude.files import Files, armed
from etude.testing.courseware import PNG, document, lay_out, wav

ID = "cw_tides"


class Crash(BaseException):
    """The process ends here."""


def made(root: Path, courseware_id: str = ID) -> Frozen:
    classroom = lay_out(root, document())
    return freeze(classroom, hash_files(root / classroom.id), courseware_id)


class Server:
    """A registry and its downloads, as wrong as a test wants them."""

    def __init__(self, root: Path) -> None:
        self.frozen = made(root / "classrooms")
        self.bundle = b"".join(self.frozen.blocks())
        self.registered: Registered | None = Registered(
            courseware_id=ID, version=3, content_hash=self.frozen.content_hash
        )
        self.pin = Pin(courseware_id=ID, version=3, content_hash=self.frozen.content_hash)
        self.cache = root / "cache"
        self.cache.mkdir()
        self.asked: list[str] = []

    def ask(self, courseware_id: str, version: int) -> Registered | None:
        self.asked.append(f"ask {courseware_id} {version}")
        return self.registered

    def download(self, _: Registered, target: BinaryIO) -> None:
        self.asked.append("download")
        target.write(self.bundle)

    def load(self, files: Files | None = None) -> Any:
        return load_courseware(self.pin, self.ask, self.download, self.cache, files)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def resealed(server: Server, **changed: Any) -> None:
    """Serve a bundle whose manifest says otherwise, and register its hash."""
    manifest = sealed(msgspec.structs.replace(server.frozen.manifest, **changed))
    content = manifest_bytes(manifest)
    entry = Entry(
        name="manifest.json",
        size=len(content),
        crc32=zlib.crc32(content),
        opens=lambda: io.BytesIO(content),
    )
    others = [one for one in server.frozen.entries if one.name != "manifest.json"]
    server.bundle = b"".join(archive([*others, entry]))
    server.registered = Registered(courseware_id=ID, version=3, content_hash=manifest.content_hash)
    server.pin = Pin(courseware_id=ID, version=3, content_hash=manifest.content_hash)


def pinned(**changed: Any) -> Callable[[Server], None]:
    def change(server: Server) -> None:
        server.pin = msgspec.structs.replace(server.pin, **changed)

    return change


def registered(**changed: Any) -> Callable[[Server], None]:
    def change(server: Server) -> None:
        server.registered = msgspec.structs.replace(server.registered, **changed)

    return change


def _unknown(server: Server) -> None:
    server.registered = None


def _away(server: Server) -> None:
    def download(_: Registered, __: BinaryIO) -> None:
        raise ConnectionResetError(104, "reset")

    server.download = download


def _foreign(server: Server) -> None:
    resealed(server, courseware_id="cw_other")


def _other_content(server: Server) -> None:
    resealed(server, title="Another")
    server.pin = Pin(courseware_id=ID, version=3, content_hash=server.frozen.content_hash)
    server.registered = Registered(
        courseware_id=ID, version=3, content_hash=server.frozen.content_hash
    )


def _damaged(server: Server) -> None:
    place = server.bundle.index(b"picture")
    server.bundle = server.bundle[:place] + b"P" + server.bundle[place + 1 :]


def _incomplete(server: Server) -> None:
    whole = server.frozen.manifest.completeness
    resealed(server, completeness=msgspec.structs.replace(whole, complete=False))


@pytest.mark.parametrize(
    ("change", "error", "downloads"),
    [
        (pinned(version=None), PinIncompleteError, False),
        (pinned(content_hash=None), PinIncompleteError, False),
        (pinned(version=0), PinMalformedError, False),
        (pinned(content_hash="sha256:abc"), PinMalformedError, False),
        (pinned(courseware_id="../x"), PinMalformedError, False),
        (_unknown, RegistryNotFoundError, False),
        (registered(courseware_id="cw_other"), RegistryIdentityError, False),
        (registered(version=4), RegistryIdentityError, False),
        (registered(content_hash="md5:1"), RegistryIdentityError, False),
        (registered(content_hash="sha256:" + "0" * 64), PinHashMismatchError, False),
        (pinned(content_hash="sha256:" + "0" * 64), PinHashMismatchError, False),
        (_away, DownloadFailedError, False),
        (_foreign, BundleIdMismatchError, True),
        (_other_content, BundleHashMismatchError, True),
        (_damaged, BundleDamagedError, True),
        (_incomplete, BundleIncompleteError, True),
    ],
)
def test_each_check_has_its_code(
    server: Server, change: Callable[[Server], None], error: type[EtudeError], *, downloads: bool
) -> None:
    """Every check fails with its own code, asks for nothing that comes after it, keeps nothing."""
    change(server)
    with pytest.raises(error):
        server.load()
    assert ("download" in server.asked) is downloads
    assert list(server.cache.iterdir()) == []


def test_a_good_courseware_is_laid_out(server: Server) -> None:
    """What passed is there with every file, named by id, version and full hash; once."""
    loaded = server.load()
    digest = server.frozen.content_hash.partition(":")[2]
    assert loaded.stage_id == f"learn_{ID}_v3_{digest}"
    kept = {str(path.relative_to(loaded.folder)) for path in loaded.folder.rglob("*.*")}
    assert kept == {row.path for row in server.frozen.manifest.files}
    again = server.load()
    assert again == loaded
    assert server.asked.count("download") == 1


def test_versions_never_share_a_place(server: Server) -> None:
    """The same content under another version is another place."""
    first = server.load()
    server.pin = msgspec.structs.replace(server.pin, version=4)
    server.registered = msgspec.structs.replace(server.registered, version=4)
    assert server.load().folder != first.folder


class FullDisk(Files):
    """Takes no more files."""

    def rename(self, source: Path, target: Path) -> None:  # noqa: ARG002 - as the real one
        raise OSError(28, "No space left on device")


def test_what_cannot_be_laid_out_leaves_nothing(server: Server) -> None:
    """A disk that is full in the middle rolls everything back."""
    with pytest.raises(MaterializeFailedError):
        server.load(FullDisk())
    assert list(server.cache.iterdir()) == []


@pytest.mark.parametrize("point", ["courseware.load.written", "courseware.load.renamed"])
def test_a_crash_leaves_all_or_nothing(server: Server, point: str) -> None:
    """Ended while it is laid out, the next loading succeeds and nothing else is left over."""

    def end(name: str) -> None:
        if name == point:
            raise Crash

    with pytest.raises(Crash), armed(end):
        server.load()
    loaded = server.load()
    assert [path.name for path in server.cache.iterdir()] == [loaded.stage_id]
    assert len(list(loaded.folder.rglob("*.*"))) == len(server.frozen.manifest.files)


def test_the_source_is_not_needed(server: Server, tmp_path: Path) -> None:
    """A bundle stands for itself: nothing of the classroom's folder is read."""
    assert Bundle(io.BytesIO(server.bundle)).manifest.title == "Why tides come twice"
    for path in sorted((tmp_path / "classrooms").rglob("*.*")):
        path.unlink()
    assert server.load().classroom.stage.name == "Why tides come twice"


def older_bundle(**changed: Any) -> bytes:
    """Return a bundle as an older system made it: compressed, with the hash of its raw bytes."""
    plain = document()
    stage = plain["stage"]
    slide, page = plain["scenes"][:2]
    slide["actions"][0]["audioRef"] = "audio/1.wav"
    manifest = {
        "formatVersion": 1,
        "stage": {"name": stage["name"]},
        "agents": [
            {name: value for name, value in agent.items() if name != "id"}
            for agent in stage["generatedAgentConfigs"]
        ],
        "scenes": [slide, page],
        "mediaIndex": {},
    } | changed
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("manifest.json", json.dumps(manifest))
        zipped.writestr("audio/1.wav", wav())
        zipped.writestr("media/moon.png", PNG)
    return target.getvalue()


def serve_older(server: Server, bundle: bytes) -> None:
    content_hash = f"sha256:{hashlib.sha256(bundle).hexdigest()}"
    server.bundle = bundle
    server.pin = Pin(courseware_id=ID, version=3, content_hash=content_hash)
    server.registered = Registered(
        courseware_id=ID, version=3, content_hash=content_hash, content_hash_version=1
    )


def test_an_older_bundle_is_taken_by_its_raw_hash(server: Server) -> None:
    """With exact identity and the hash of the raw bytes an older bundle loads, made safe."""
    serve_older(server, older_bundle())
    loaded = server.load()
    assert CONTENT_POLICY in (loaded.classroom.scenes[1].content.html or "")
    assert (loaded.folder / "audio").is_dir()
    assert server.load().classroom == loaded.classroom


def _changed_bytes(server: Server) -> None:
    server.bundle = server.bundle[:-1] + b"\1"


@pytest.mark.parametrize(
    ("changed", "change", "error"),
    [
        ({}, _changed_bytes, LegacyHashUntrustedError),
        ({}, registered(version=4), RegistryIdentityError),
        ({}, registered(content_hash_version=2), EtudeError),
        ({"coursewareId": "cw_other"}, None, BundleIdMismatchError),
        ({"completeness": {"complete": False}}, None, BundleIncompleteError),
        ({"scenes": []}, None, EtudeError),
    ],
)
def test_an_older_bundle_is_believed_nothing(
    server: Server,
    changed: dict[str, Any],
    change: Callable[[Server], None] | None,
    error: type[EtudeError],
) -> None:
    """Other bytes, another identity, a hash version that is not its own: refused, nothing kept."""
    serve_older(server, older_bundle(**changed))
    if change is not None:
        change(server)
    with pytest.raises(error):
        server.load()
    assert list(server.cache.iterdir()) == []
