"""What is sent with the bundles of a course, and what is answered: both sides read it here.

One `multipart/form-data` body: the part `course` (JSON, `Submission`), then `bundle-0`, `bundle-1`
… in the order of the modules.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from etude.classroom.digest import DIGEST_VERSION
from etude.classroom.fields import END, Part, Text, Title
from etude.courseware.course_manifest import CourseId, Version
from etude.courseware.gates import ContinuityRef, CourseSource, Passed
from etude.courseware.manifest import ContentHash, CoursewareId, Digest
from etude.courseware.remote_errors import SubmissionInvalidError

PATH: Final = "/api/internal/course-publish"
COURSE_PART: Final = "course"
MOST_MODULES: Final = 100
COURSE_BYTES: Final = 1 << 20
MOST_BYTES: Final = 8 << 30
"""Of a whole publication; a single bundle has `zip_writing.LARGEST_BYTES`."""
FORMAT_VERSION: Final = 1

AnyHash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]


class SubmittedModule(Part, frozen=True, kw_only=True):
    """A module as its maker's record has it."""

    index: Annotated[int, Meta(ge=0, lt=MOST_MODULES)]
    title: Title
    description: Text = ""
    courseware_id: CoursewareId
    content_hash: ContentHash
    size_bytes: Annotated[int, Meta(ge=1)]
    digest_version: int
    semantic_hash: AnyHash
    source_revision_hash: AnyHash
    continuity_input_refs: Annotated[tuple[ContinuityRef, ...], Meta(max_length=MOST_MODULES)]


class Submission(Part, frozen=True, kw_only=True):
    """A course that is sent to be published."""

    format: Literal["etude-course-publication"] = "etude-course-publication"
    format_version: Literal[1] = FORMAT_VERSION
    course_id: CourseId
    title: Title
    modules: Annotated[tuple[SubmittedModule, ...], Meta(min_length=1, max_length=MOST_MODULES)]


class AnsweredModule(Part, frozen=True, kw_only=True):
    """A module as it is published now; `bundle_sha256` is over the bytes that are stored."""

    index: int
    courseware_id: CoursewareId
    courseware_version: Version
    content_hash: ContentHash
    bundle_sha256: Digest


class Answer(Part, frozen=True, kw_only=True):
    """The server's receipt."""

    course_id: CourseId
    manifest_version: Version
    manifest_hash: AnyHash
    new: bool
    modules: Annotated[tuple[AnsweredModule, ...], Meta(min_length=1, max_length=MOST_MODULES)]


class Offer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a server says before anything is sent: that it would take a publication."""

    format_version: int
    limit_bytes: int
    free_bytes: int


def bundle_part(index: int) -> str:
    """Return the name of the part with a module's bundle."""
    return f"bundle-{index}"


def submission_of(course: CourseSource, passed: Sequence[Passed]) -> Submission:
    """Return what goes with the bundles of a course that passed every gate."""
    return Submission(
        course_id=course.course_id,
        title=course.title,
        modules=tuple(
            SubmittedModule(
                index=index,
                title=one.source.title,
                description=one.source.description,
                courseware_id=one.source.module_id,
                content_hash=one.frozen.content_hash,
                size_bytes=one.frozen.size,
                digest_version=DIGEST_VERSION,
                semantic_hash=one.looked.semantic_hash,
                source_revision_hash=one.looked.source_revision_hash,
                continuity_input_refs=one.source.continuity or (),
            )
            for index, one in enumerate(passed)
        ),
    )


def read_submission(content: bytes) -> Submission:
    """Read what came with the bundles.

    Raises:
        SubmissionInvalidError: it is none, or of another format.
    """
    try:
        return msgspec.json.decode(content, type=Submission)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SubmissionInvalidError(reason=str(error)[:200]) from error


def read_answer(content: bytes) -> Answer:
    """Read a receipt; raises `msgspec.MsgspecError` or `UnicodeDecodeError`."""
    return msgspec.json.decode(content, type=Answer)


def read_problem(content: bytes) -> dict[str, Any]:
    """Read a problem document; {} if it is none."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class WithdrawalSent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a version of a course is taken away from everybody."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)]


def withdraw_path(course_id: str, version: int) -> str:
    """Return the address at which a server takes a withdrawal."""
    return f"/api/internal/courses/{course_id}/manifests/{version}/withdraw"
