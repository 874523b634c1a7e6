"""Taking in what OpenMAIC wrote: plain documents and `.maic.zip`.

    with Archive.open(path) as archive:
        taken = import_archive(archive, classroom_id="k3…", now=clock.now())
        with library.draft(taken.classroom.id, ids.new()) as draft:
            for reference, entry in taken.files.items():
                draft.put(reference, archive.stream(entry))
            draft.commit(taken.classroom)

What a foreign document has too much is left out, what it has wrong is mended where there is one way
to mend it, and each such thing is a `Loss`. What is left is checked like a document of our own.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from etude.classroom.archive import Archive
from etude.classroom.errors import ArchiveManifestError
from etude.classroom.loading import MAX_BYTES, classroom_from, read_object
from etude.classroom.manifests import FORMAT_VERSION, document_of
from etude.classroom.mending import Loss, mend
from etude.classroom.model import Classroom
from etude.classroom.references import Slot, is_file, is_placeholder, is_remote, rewrite, slots_of
from etude.classroom.versions import migrate
from etude.documents.reading import spell

MANIFEST: Final = "manifest.json"
_AUDIO: Final = frozenset({"mp3", "wav", "ogg", "opus", "m4a", "aac", "flac", "webm"})
_PICTURES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif"})
_FILMS: Final = frozenset({"mp4", "webm"})
_SUFFIXES: Final[Mapping[str, frozenset[str]]] = {
    "audio": _AUDIO,
    "media": _PICTURES | _FILMS,
}
"""Kinds of files that are taken; drawings (SVG) are not: they can run scripts."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of a foreign document.

    Attributes:
        classroom: sound, of the newest version.
        files: reference in the classroom → name of the entry in the archive, or of the file.
        losses: what was left out or changed.
    """

    classroom: Classroom
    files: dict[str, str]
    losses: tuple[Loss, ...]


def import_document(data: bytes, *, classroom_id: str, files: frozenset[str]) -> Imported:
    """Take in a plain document (`data/classrooms/<id>.json`).

    Args:
        data: JSON.
        classroom_id: the id that it gets here.
        files: what lies beside it (`media/x.png`); references to anything else are left out.

    Raises:
        ClassroomNotJsonError, ClassroomTooNewError: not a document that is known here.
        ClassroomInvalidError: its parts say what could not be mended.
    """
    return _imported(read_object(data), classroom_id, _Names(files, {}))


def import_archive(archive: Archive, *, classroom_id: str, now: datetime) -> Imported:
    """Take in a `.maic.zip`; every id but those on slides is made anew.

    Args:
        archive: as `Archive.open` gives it.
        classroom_id: the id that the classroom gets here.
        now: when it is said to be made.

    Raises:
        ArchiveManifestError: there is no manifest, or it is of no format that is known here.
        ArchiveInvalidError, ArchiveTooLargeError: as the archive says.
        ClassroomInvalidError: its parts say what could not be mended.
    """
    if MANIFEST not in archive.entries:
        raise ArchiveManifestError(reason=f"{MANIFEST} is missing")
    manifest = read_object(archive.read(MANIFEST, limit=MAX_BYTES))
    if manifest.get("formatVersion") != FORMAT_VERSION:
        raise ArchiveManifestError(reason=f"formatVersion is not {FORMAT_VERSION}")
    names = _Names(frozenset(archive.entries), _sources(manifest))
    return _imported(document_of(manifest, classroom_id, now), classroom_id, names)


class _Names:
    """Gives every file that a document refers to a name that a classroom's folder can have."""

    def __init__(self, there: frozenset[str], sources: Mapping[str, str]) -> None:
        self._there = there
        self._sources = sources
        self._given: dict[tuple[str, str], str] = {}
        self.losses: list[Loss] = []

    @property
    def files(self) -> dict[str, str]:
        """Reference → the file's name where it comes from."""
        return {reference: entry for (_, entry), reference in self._given.items()}

    def of(self, slot: Slot) -> str | None:
        """Return what a slot refers to here; None if it is nothing that can be kept."""
        entry = self._sources.get(slot.reference, slot.reference)
        if entry in self._there:
            return self._file(slot, entry)
        kept = is_remote(slot.reference) or is_placeholder(slot.reference)
        if kept or (slot.kind == "avatar" and not is_file(slot.reference)):
            return slot.reference
        self.losses.append(Loss(spell(slot.path), "media_missing"))
        return None

    def _file(self, slot: Slot, entry: str) -> str | None:
        suffix = entry.rpartition(".")[2].lower()
        if suffix not in _SUFFIXES[slot.folder]:
            self.losses.append(Loss(spell(slot.path), "media_refused"))
            return None
        if is_file(entry) and entry.startswith(f"{slot.folder}/"):
            return self._given.setdefault((slot.folder, entry), entry)
        made = f"{slot.folder}/{slot.folder[0]}{len(self._given) + 1}.{suffix}"
        while made in self._there:
            made = made.replace("/", "/_", 1)
        return self._given.setdefault((slot.folder, entry), made)


def _imported(document: dict[str, Any], classroom_id: str, names: _Names) -> Imported:
    stage = document.get("stage")
    without_roster = isinstance(stage, dict) and not stage.get("generatedAgentConfigs")
    migrate(document)
    _take_id(document, classroom_id)
    rewrite(document, names.of)
    losses = [*names.losses]
    if without_roster:
        losses.append(Loss("stage.generatedAgentConfigs", "roster_filled"))
    losses += mend(document)
    classroom = classroom_from(document)
    used = {slot.reference for slot in slots_of(classroom)}
    files = {reference: entry for reference, entry in names.files.items() if reference in used}
    return Imported(classroom=classroom, files=files, losses=tuple(losses))


def _take_id(document: dict[str, Any], classroom_id: str) -> None:
    document["id"] = classroom_id
    if isinstance(document.get("stage"), dict):
        document["stage"]["id"] = classroom_id
    scenes = document.get("scenes")
    for scene in scenes if isinstance(scenes, list) else []:
        if isinstance(scene, dict):
            scene["stageId"] = classroom_id


def _sources(manifest: dict[str, Any]) -> dict[str, str]:
    """Return by what the document calls a file where it is in the archive."""
    index = manifest.get("mediaIndex")
    return {
        entry["sourceRef"]: path
        for path, entry in (index if isinstance(index, dict) else {}).items()
        if isinstance(entry, dict) and isinstance(entry.get("sourceRef"), str)
    }
