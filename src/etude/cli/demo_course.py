"""The demo's way from a syllabus to the toy: a course is made, published, checked and assigned.

All of it over HTTP, as a teacher's program does it; the server's own worker makes the lessons.
"""

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.authoring.samples import sample
from etude.cli.errors import DemoBrokenError
from etude.courseware.loading import Pin, load_courseware
from etude.net import HttpClient, Reply
from etude.practice.assigned import CoursewarePin
from etude.practice.courseware_source import CoursewareSource

SAMPLE: Final = "everyday-english.txt"
FOLDER: Final = "learner"
PATIENCE_S: Final = 240.0
_LOOK_S: Final = 0.1
_OK, _CREATED = 200, 201
_JSON: Final = {"Content-Type": "application/json"}
_SOUND: Final = {"Content-Type": "audio/mpeg"}


class PinnedModule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A module of the manifest: what pins it."""

    index: int
    courseware_id: str
    courseware_version: int
    content_hash: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The manifest of the published course."""

    schema_version: int
    modules: tuple[PinnedModule, ...]


class Coursed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the course, as `summary.json` has it; `loaded` counts modules."""

    manifest: Manifest
    loaded: int


class Assigned(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner is to practise."""

    assignment_id: str
    app_id: str
    task_id: str
    lesson_id: str
    pin: CoursewarePin


def publish_course(url: str, token: str, sounds: Mapping[str, bytes]) -> tuple[str, int, Manifest]:
    """Make a course of the sample, confirm it, publish it; return id, version and manifest.

    Args:
        url: where web is.
        token: of somebody who may make courses.
        sounds: the recordings of its sentences, by name.

    Raises:
        DemoBrokenError: it did not come about.
    """
    material = sample(SAMPLE)
    with HttpClient(url, bearer=token) as client:
        sent = [
            {"name": name, "sha256": _whole(_sound(client, content), _CREATED)["sha256"]}
            for name, content in sorted(sounds.items())
        ]
        texts = [{"name": material.name, "text": material.text}]
        wanted = {"materials": texts, "recordings": sent}
        made = _whole(_post(client, "/api/courses", wanted), _CREATED)
        path = f"/api/courses/{made['courseId']}"
        _require(not made["silentSentences"], "course sounds")
        _until(client, path, "framework_ready")
        _post(client, f"{path}/start", {})
        _until(client, path, "succeeded")
        published = _whole(_post(client, f"{path}/publish", {}), _OK)
    with HttpClient(url) as anybody:
        reply = anybody.send("GET", f"/api/learn/courses/{made['courseId']}", b"", {})
    _require(reply.status == _OK, "manifest")
    manifest = msgspec.json.decode(reply.body, type=Manifest)
    return made["courseId"], published["version"], manifest


def load_modules(folder: Path, url: str, manifest: Manifest) -> int:
    """Take every module as a learner's side does, through its checks; return how many."""
    source = CoursewareSource(url)
    for module in manifest.modules:
        pin = Pin(
            courseware_id=module.courseware_id,
            version=module.courseware_version,
            content_hash=module.content_hash,
        )
        loaded = load_courseware(pin, source.ask, source.download, folder / FOLDER)
        _require(bool(loaded.classroom.scenes), "load")
    return len(manifest.modules)


def assign_module(
    url: str, token: str, course_id: str, learner_id: str, since: datetime
) -> Assigned:
    """Assign what the first module practises; `since` because the toy's clock is behind."""
    wanted = {
        "course": {"course_id": course_id, "module": 0},
        "learner_id": learner_id,
        "starts_at": since.isoformat(),
    }
    with HttpClient(url, bearer=token) as client:
        made = _whole(_post(client, "/api/v1/assignments", wanted), _CREATED)
    pin = msgspec.convert(made["courseware"], CoursewarePin)
    names = ("assignment_id", "app_id", "task_id", "lesson_id")
    return Assigned(**{name: made[name] for name in names}, pin=pin)


def require_named(report: Mapping[str, Any], page: Path, assigned: Assigned) -> Mapping[str, Any]:
    """Return what a report names as practised.

    Raises:
        DemoBrokenError: that is not exactly what was assigned, or its page does not say it.
    """
    practised: Mapping[str, Any] = report.get("courseware", {})
    pin = msgspec.structs.asdict(assigned.pin)
    _require({name: practised.get(name) for name in pin} == pin, "pin")
    _require(practised["assignment_id"] == assigned.assignment_id, "assignment")
    _require(practised["title"] in page.read_text("utf-8"), "page")
    return practised


def _until(client: HttpClient, path: str, status: str) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        found = _whole(client.send("GET", path, b"", {}), _OK)
        if found["status"] == status:
            return
        _require(found["status"] != "failed" and time.monotonic() < ends_s, f"course {status}")
        time.sleep(_LOOK_S)


def _sound(client: HttpClient, content: bytes) -> Reply:
    return client.send("POST", "/api/course-recordings", content, _SOUND)


def _post(client: HttpClient, path: str, body: Mapping[str, Any]) -> Reply:
    return client.send("POST", path, msgspec.json.encode(body), _JSON)


def _whole(reply: Reply, status: int) -> dict[str, Any]:
    _require(reply.status == status, f"HTTP {reply.status}")
    return msgspec.json.decode(reply.body, type=dict[str, Any])


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
