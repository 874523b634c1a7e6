"""The manifest of a course, schema version 2: which version of which module, by id and hash."""

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from etude.classroom.fields import END, Part, Text, Title
from etude.courseware.manifest import ContentHash, CoursewareId
from etude.events.canonical import canonical

CourseId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}" + END)]
Version = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class PinnedModule(Part, frozen=True, kw_only=True):
    """A module of a published course; the last three are what a learner's loading compares."""

    index: Annotated[int, Meta(ge=0, le=1000)]
    title: Title
    description: Text = ""
    courseware_id: CoursewareId
    courseware_version: Version
    content_hash: ContentHash


class CourseManifest(Part, frozen=True, kw_only=True):
    """A published version of a course. It is never changed; only withdrawn."""

    schema_version: Literal[2]
    course_id: CourseId
    version: Version
    title: Title
    modules: Annotated[tuple[PinnedModule, ...], Meta(min_length=1, max_length=100)]


def course_manifest_bytes(manifest: CourseManifest) -> bytes:
    """Return the only bytes that a manifest is written as (RFC 8785)."""
    return canonical(msgspec.to_builtins(manifest))


def hash_of(body: bytes) -> str:
    """Return `sha256:…` of a manifest's bytes."""
    return "sha256:" + hashlib.sha256(body).hexdigest()


def read_course_manifest(body: bytes) -> CourseManifest:
    """Read a manifest of schema version 2, as it was written."""
    return msgspec.json.decode(body, type=CourseManifest)
