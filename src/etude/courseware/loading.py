"""How a learner's side takes a courseware: eight checks in order, nothing kept before all passed.

    loaded = load_courseware(pin, registry, download, cache)

Each check has its own code. What was laid out is named by id, version and full hash, so another
version, or the same with other content, never shares a place.
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from etude.classroom.loading import read_classroom, write_classroom
from etude.classroom.model import Classroom
from etude.courseware.bundle import Bundle
from etude.courseware.bundle_errors import (
    BundleIncompleteError,
)
from etude.courseware.checking import classroom_of, stored_findings
from etude.courseware.errors import (
    DownloadFailedError,
    MaterializeFailedError,
    PinHashMismatchError,
    PinIncompleteError,
    PinMalformedError,
    RegistryIdentityError,
    RegistryNotFoundError,
)
from etude.courseware.legacy_bundles import (
    LEGACY_HASH_VERSION,
    LegacyContents,
    legacy_contents,
)
from etude.courseware.manifest import CLASSROOM, HASH_VERSION
from etude.errors import EtudeError
from etude.files import Files, crash_point

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest pins, as it came with a link: nothing is believed of it."""

    courseware_id: str
    version: int | None
    content_hash: str | None


class Registered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the registry says of a version."""

    courseware_id: str
    version: int
    content_hash: str
    content_hash_version: int = HASH_VERSION


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A courseware that passed: the classroom, and the folder where its files are."""

    stage_id: str
    folder: Path
    classroom: Classroom


_Contents = Iterator[tuple[str, Iterator[bytes]]]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A courseware that passed the first seven checks; as long as it is open.

    Attributes:
        title: of the courseware.
        classroom: what is in it.
        contents: yields path and bytes of every file, the classroom's document among them.
    """

    title: str
    classroom: Classroom
    contents: Callable[[], _Contents]


Ask = Callable[[str, int], Registered | None]
"""Asks the registry for a version; None: it has none."""
Download = Callable[[Registered, BinaryIO], None]
"""Writes the bundle of a version to a file; raises an `OSError` or `EtudeError` if it cannot."""


def load_courseware(
    pin: Pin, ask: Ask, download: Download, cache: Path, files: Files | None = None
) -> Loaded:
    """Load a courseware, from the cache if it passed before.

    Args:
        pin: from the manifest of the course.
        ask: the registry.
        download: fetches the bundle.
        cache: folder in which what passed is kept; nothing else is written anywhere.
        files: the disk.

    Raises:
        PinIncompleteError, PinMalformedError: check 1, the pin.
        RegistryNotFoundError, RegistryIdentityError: check 2, the registry knows exactly this.
        PinHashMismatchError: check 3, its hash is the pin's.
        DownloadFailedError: check 4, the bundle comes.
        BundleIdMismatchError: check 5, it is of this courseware.
        BundleHashMismatchError, BundleDamagedError, …: check 6, declared, registered and
            recomputed hash agree, over every byte.
            (older systems: LegacyHashUntrustedError, over the raw bytes)
        BundleIncompleteError: check 7, nothing is missing.
        MaterializeFailedError, BundleClassroomError: check 8, all of it can be laid out.
    """
    registered = _registered(pin, ask)
    stage_id = _stage_id(registered)
    kept = _kept(cache / stage_id, stage_id)
    if kept is not None:
        return kept
    place = _Place(cache=cache, stage_id=stage_id, files=files or Files())
    with _opened(registered, download) as checked:
        return _laid_out(checked, place)


@contextlib.contextmanager
def checked_courseware(pin: Pin, ask: Ask, download: Download) -> Iterator[Checked]:
    """Open a courseware whose first seven checks pass, for whoever lays a part of it out.

    The eighth, that everything can be laid out, is the caller's. Raises as `load_courseware`.
    """
    with _opened(_registered(pin, ask), download) as checked:
        yield checked


def _stage_id(registered: Registered) -> str:
    """Return the name under which a version is kept: id, version and full hash."""
    digest = registered.content_hash.partition(":")[2]
    return f"learn_{registered.courseware_id}_v{registered.version}_{digest}"


def _registered(pin: Pin, ask: Ask) -> Registered:
    version, content_hash = _checked_pin(pin)
    registered = _checked_registry(pin.courseware_id, version, ask)
    if registered.content_hash != content_hash:
        raise PinHashMismatchError(registered=registered.content_hash)
    return registered


@contextlib.contextmanager
def _opened(registered: Registered, download: Download) -> Iterator[Checked]:
    with tempfile.TemporaryFile() as file:
        _downloaded(registered, download, file)
        if registered.content_hash_version == LEGACY_HASH_VERSION:
            courseware_id, content_hash = registered.courseware_id, registered.content_hash
            with legacy_contents(file, courseware_id, content_hash) as older:
                yield Checked(
                    title=older.classroom.stage.name,
                    classroom=older.classroom,
                    contents=partial(_older_files, older),
                )
            return
        bundle = Bundle(file)
        classroom = _checked_bundle(bundle, registered)
        yield Checked(
            title=bundle.manifest.title,
            classroom=classroom,
            contents=partial(_bundle_files, bundle),
        )


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    cache: Path
    stage_id: str
    files: Files


def _checked_pin(pin: Pin) -> tuple[int, str]:
    if pin.version is None or pin.content_hash is None:
        raise PinIncompleteError
    if not _ID.fullmatch(pin.courseware_id):
        raise PinMalformedError(part="coursewareId")
    if isinstance(pin.version, bool) or pin.version < 1:
        raise PinMalformedError(part="version")
    if not _HASH.fullmatch(pin.content_hash):
        raise PinMalformedError(part="contentHash")
    return pin.version, pin.content_hash


def _checked_registry(courseware_id: str, version: int, ask: Ask) -> Registered:
    registered = ask(courseware_id, version)
    if registered is None:
        raise RegistryNotFoundError(courseware=courseware_id, version=version)
    same = (registered.courseware_id, registered.version) == (courseware_id, version)
    if not same or not _HASH.fullmatch(registered.content_hash):
        raise RegistryIdentityError(courseware=courseware_id, version=version)
    return registered


def _downloaded(registered: Registered, download: Download, file: BinaryIO) -> None:
    try:
        download(registered, file)
    except OSError as error:
        raise DownloadFailedError(reason=error.strerror or type(error).__name__) from error
    except EtudeError as error:
        raise DownloadFailedError(reason=error.code) from error


def _checked_bundle(bundle: Bundle, registered: Registered) -> Classroom:
    bundle.check_identity(registered.courseware_id)
    bundle.check_hash(registered.content_hash)
    bundle.check_files()
    if not bundle.manifest.completeness.complete:
        raise BundleIncompleteError(findings=0)
    classroom = classroom_of(bundle)
    found = list(stored_findings(bundle, classroom))
    if found:
        raise BundleIncompleteError(*found, findings=len(found))
    return classroom


def _bundle_files(bundle: Bundle) -> _Contents:
    for row in bundle.manifest.files:
        yield row.path, bundle.blocks(row.path)


def _older_files(older: LegacyContents) -> _Contents:
    yield CLASSROOM, iter([write_classroom(older.classroom)])
    for reference, source in older.files.items():
        yield reference, source.blocks()


def _laid_out(checked: Checked, place: _Place) -> Loaded:
    """Write everything beside its place, then move it there in one step."""
    files, cache = place.files, place.cache
    target, waiting = cache / place.stage_id, cache / f".{place.stage_id}.tmp"
    try:
        files.remove_tree(waiting)
        files.make_folder(waiting)
        for path, blocks in checked.contents():
            files.make_folder((waiting / path).parent)
            _write(blocks, waiting / path, files)
        files.sync_folder(waiting)
        crash_point("courseware.load.written")
        with contextlib.suppress(FileExistsError):
            files.rename(waiting, target)
        files.sync_folder(cache)
        crash_point("courseware.load.renamed")
    except OSError as error:
        shutil.rmtree(waiting, ignore_errors=True)
        raise MaterializeFailedError(reason=error.strerror or type(error).__name__) from error
    return Loaded(stage_id=place.stage_id, folder=target, classroom=checked.classroom)


def _write(blocks: Iterator[bytes], target: Path, files: Files) -> None:
    file = files.open_append(target)
    try:
        for block in blocks:
            file.write_all(block)
        file.sync()
    finally:
        file.close()
    files.sync_folder(target.parent)


def _kept(place: Path, stage_id: str) -> Loaded | None:
    """Return what was laid out before; a folder gets its name only when it is whole."""
    try:
        classroom = read_classroom((place / CLASSROOM).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, EtudeError) as error:
        raise MaterializeFailedError(reason=type(error).__name__) from error
    return Loaded(stage_id=stage_id, folder=place, classroom=classroom)
