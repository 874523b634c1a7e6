"""The whole gate on a bundle as it is stored: bytes, hash, identity, and what is in the classroom.

Freezing made it so; nothing that was read back is believed to be.
"""

from collections.abc import Iterator

import msgspec

from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.loading import read_classroom
from etude.classroom.model import Classroom, InteractiveContent
from etude.classroom.plain import plain
from etude.classroom.references import is_file, slots_of
from etude.courseware.bundle import Bundle
from etude.courseware.bundle_errors import (
    BundleClassroomError,
    BundleIncompleteError,
    BundleTableError,
)
from etude.courseware.errors import FindingError, MediaUnresolvedError
from etude.courseware.findings import completeness, findings, live_parts, page_finding
from etude.courseware.html_inline import contained, guard_in
from etude.courseware.manifest import CLASSROOM
from etude.courseware.media_kinds import ending_of, is_plain_svg
from etude.errors import EtudeError


def check_bundle(
    bundle: Bundle, courseware_id: str | None = None, content_hash: str | None = None
) -> Classroom:
    """Check everything about an open bundle; return the classroom in it.

    Args:
        bundle: opened, so its archive and manifest are sound already.
        courseware_id: what it must be a version of, if that is known.
        content_hash: what the registry says, if that is known.

    Raises:
        BundleUnsafeError: the first thing that is wrong; of an incomplete one all are parts.
    """
    if courseware_id is not None:
        bundle.check_identity(courseware_id)
    bundle.check_hash(content_hash)
    bundle.check_files()
    classroom = classroom_of(bundle)
    found = list(stored_findings(bundle, classroom))
    declared = bundle.manifest.completeness
    if found or not declared.complete or declared != completeness(()):
        raise BundleIncompleteError(*found, findings=len(found))
    if bundle.manifest.requires_live_model != live_parts(classroom):
        raise BundleTableError(entry=CLASSROOM)
    return classroom


def classroom_of(bundle: Bundle) -> Classroom:
    """Read the classroom of a bundle.

    Raises:
        BundleClassroomError: it cannot be read, or is not in its canonical form.
    """
    content = bundle.classroom_bytes()
    try:
        classroom = read_classroom(content)
    except ClassroomInvalidError as error:
        raise BundleClassroomError(*error.parts, reason=error.code) from error
    except EtudeError as error:
        raise BundleClassroomError(reason=error.code) from error
    # Not RFC 8785: a rubric keeps the order of its signals, which reports follow.
    if msgspec.json.encode(plain(classroom)) != content:
        raise BundleClassroomError(reason="CLASSROOM_NOT_CANONICAL")
    return classroom


def stored_findings(bundle: Bundle, classroom: Classroom) -> Iterator[FindingError]:
    """Yield what is missing or wrong in the classroom of a bundle."""
    table = {row.path for row in bundle.manifest.files}
    yield from findings(classroom, lambda one: bundle.beginning_of(one) if one in table else None)
    used = {slot.reference for slot in slots_of(classroom) if is_file(slot.reference)}
    for extra in sorted(table - used - {CLASSROOM}):
        yield MediaUnresolvedError(path=extra, reference="")
    for path in sorted(one for one in table if ending_of(one) == "svg"):
        if not is_plain_svg(b"".join(bundle.blocks(path))):
            yield MediaUnresolvedError(path=path, reference="")
    yield from _pages(classroom)


def _pages(classroom: Classroom) -> Iterator[FindingError]:
    for index, scene in enumerate(classroom.scenes):
        html = scene.content.html if isinstance(scene.content, InteractiveContent) else None
        if html:
            path = ("scenes", index, "content", "html")
            yield from _page(html, path)


def _page(html: str, path: tuple[str | int, ...]) -> Iterator[FindingError]:
    found: dict[tuple[str, str], None] = {}
    page = contained(
        html,
        lambda _: None,
        lambda _: None,
        lambda kind, what: found.setdefault((kind, what)),
        guard=guard_in(html),
    )
    if page != html:
        found.setdefault(("unsafe", "not as it was frozen"))
    yield from (page_finding(kind, what, path) for kind, what in found)
