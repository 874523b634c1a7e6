"""The manifest of a bundle, and the content hash, version 2.

The hash covers the manifest without what may change (itself) and the sorted table of files. The
version of the courseware stands in the registry, not in the bundle, so equal content is equal
bytes.
"""

import hashlib
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from etude.classroom.fields import END, Label, Part, Text, Title
from etude.courseware.bundle_errors import BundleManifestError, BundleTooLargeError
from etude.courseware.zip_reading import MOST_ENTRIES, NAME
from etude.events.canonical import canonical
from etude.events.errors import NotEncodableError

MANIFEST: Final = "manifest.json"
CLASSROOM: Final = "classroom.json"
HASH_VERSION: Final = 2
MANIFEST_BYTES: Final = 4 << 20
VOLATILE: Final = frozenset({"contentHash"})
"""Keys that the hash leaves out. `exportedAt` and a version are not even allowed."""

CoursewareId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}" + END)]
ContentHash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
LivePart = Literal["discussion", "pbl", "short_answer"]


class FileRow(Part, frozen=True, kw_only=True):
    """A file of the bundle."""

    path: Annotated[str, Meta(pattern=f"^(?:{NAME})" + END)]
    size: Annotated[int, Meta(ge=0)]
    sha256: Digest


class Check(Part, frozen=True, kw_only=True):
    """A thing that a complete bundle has; `path` leads to where it is missing."""

    code: Label
    ok: bool
    path: Text | None = None


class Completeness(Part, frozen=True, kw_only=True):
    """Whether anything is missing."""

    complete: bool
    checks: Annotated[tuple[Check, ...], Meta(max_length=1_000)]


class Contents(Part, frozen=True, kw_only=True):
    """How many scenes of each kind there are, for catalogues."""

    slide: int = 0
    quiz: int = 0
    interactive: int = 0
    pbl: int = 0
    practice: int = 0


class BundleManifest(Part, frozen=True, kw_only=True):
    """What is in a bundle.

    Attributes:
        requires_live_model: parts that need a language model to be whole; a player without one
            skips the card, lets learners judge themselves, shows the brief.
    """

    format: Literal["etude-courseware"] = "etude-courseware"
    format_version: Literal[1] = 1
    courseware_id: CoursewareId
    content_hash_version: Literal[2]
    content_hash: ContentHash
    title: Title
    description: Text
    language: Text
    contents: Contents
    requires_live_model: Annotated[tuple[LivePart, ...], Meta(max_length=3)]
    completeness: Completeness
    files: Annotated[tuple[FileRow, ...], Meta(min_length=1, max_length=MOST_ENTRIES)]


def content_hash(manifest: BundleManifest) -> str:
    """Return the content hash of what the manifest says, whatever hash it declares."""
    document = msgspec.to_builtins(manifest)
    files = sorted(document.pop("files"), key=lambda row: row["path"])
    kept = {key: value for key, value in document.items() if key not in VOLATILE}
    hashed = {"contentHashVersion": HASH_VERSION, "manifest": kept, "files": files}
    return "sha256:" + hashlib.sha256(canonical(hashed)).hexdigest()


def sealed(manifest: BundleManifest) -> BundleManifest:
    """Return the manifest with its table sorted and its own hash declared."""
    files = tuple(sorted(manifest.files, key=lambda row: row.path))
    sorted_ = msgspec.structs.replace(manifest, files=files)
    return msgspec.structs.replace(sorted_, content_hash=content_hash(sorted_))


def manifest_bytes(manifest: BundleManifest) -> bytes:
    """Return the only bytes that the manifest is written as."""
    return canonical(msgspec.to_builtins(manifest))


def read_manifest(content: bytes) -> BundleManifest:
    """Read a manifest; one that is spelt otherwise than it is written is refused.

    Raises:
        BundleManifestError: it is none, or says a thing twice.
        BundleTooLargeError: it is longer than any.
    """
    if len(content) > MANIFEST_BYTES:
        raise BundleTooLargeError(entry=MANIFEST, limit_bytes=MANIFEST_BYTES)
    try:
        manifest = msgspec.json.decode(content, type=BundleManifest)
        written = manifest_bytes(manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, NotEncodableError) as error:
        raise BundleManifestError(reason=str(error)[:200]) from error
    if written != content:
        raise BundleManifestError(reason="not in canonical form (RFC 8785)")
    paths = [row.path for row in manifest.files]
    if paths != sorted(set(paths)) or MANIFEST in paths:
        raise BundleManifestError(reason="the table of files is not sorted, or names one twice")
    return manifest
