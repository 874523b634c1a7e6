"""From a classroom on disk to a bundle: everything in it, nothing that refers elsewhere.

    frozen = freeze(classroom, hash_files(folder), courseware_id)
    with open(target, "wb") as file:
        file.writelines(frozen.blocks())

Files are named by their content; the document keeps its scenes and rewrites references alone.
Projects are reset to their design, pages of activities are made self-contained, what a model was
asked to film is left out.
"""

import base64
import contextlib
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Final

import msgspec

from etude.classroom.loading import classroom_from
from etude.classroom.model import (
    Classroom,
    Clip,
    InteractiveContent,
    PblContent,
    PracticeContent,
    Scene,
)
from etude.classroom.plain import plain
from etude.classroom.projects import template_of
from etude.classroom.references import Slot, is_file, rewrite, slots_of
from etude.courseware.errors import (
    FindingError,
    FreezeRefusedError,
    InteractiveTooLargeError,
    MediaUnresolvedError,
)
from etude.courseware.findings import completeness, findings, live_parts, page_finding
from etude.courseware.html_inline import LONGEST, contained
from etude.courseware.manifest import (
    CLASSROOM,
    HASH_VERSION,
    MANIFEST,
    BundleManifest,
    Contents,
    FileRow,
    manifest_bytes,
    sealed,
)
from etude.courseware.media_kinds import MEDIA_TYPES, ending_of, is_plain_svg
from etude.courseware.script_scan import Kind
from etude.courseware.source_files import SourceFile
from etude.courseware.zip_writing import Entry, archive, size_of
from etude.documents.reading import Path, spell
from etude.errors import EtudeError
from etude.speech import audio

_UNSET: Final = "sha256:" + "0" * 64
_TEXT_ENDINGS: Final = frozenset({"js", "mjs", "css"})


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that can be written.

    Attributes:
        manifest: sealed: its content hash is declared.
        entries: every file of the archive.
    """

    manifest: BundleManifest
    entries: tuple[Entry, ...]

    @property
    def content_hash(self) -> str:
        """`sha256:…` over what is in the bundle."""
        return self.manifest.content_hash

    @property
    def size(self) -> int:
        """How many bytes the bundle has."""
        return size_of(self.entries)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the bundle; `SourceChangedError` if a file was changed meanwhile."""
        return archive(self.entries)


def freeze(classroom: Classroom, files: Mapping[str, SourceFile], courseware_id: str) -> Frozen:
    """Freeze a classroom.

    Args:
        classroom: as it is stored.
        files: every file of its folder, by its reference.
        courseware_id: what the bundle will be a version of.

    Raises:
        FreezeRefusedError: its parts are all findings, by their place in the classroom.
    """
    finished = completed(classroom, files)
    return assembled(finished, files, courseware_id)


def completed(classroom: Classroom, files: Mapping[str, SourceFile]) -> Classroom:
    """Return the classroom with pages made self-contained and projects reset, nothing missing.

    Raises:
        FreezeRefusedError: its parts are all findings, by their place in the classroom.
    """
    found: list[FindingError] = []
    finished = _finished(classroom, files, found)
    found += findings(finished, lambda one: files[one].beginning() if one in files else None)
    found += _svg_findings(finished, files)
    if found:
        raise FreezeRefusedError(*found, findings=len(found))
    return finished


def assembled(classroom: Classroom, files: Mapping[str, SourceFile], courseware_id: str) -> Frozen:
    """Put together the bundle of a classroom in which nothing is missing."""
    used = {
        slot.reference: files[slot.reference]
        for slot in slots_of(classroom)
        if slot.reference in files
    }
    names = {reference: _frozen_name(reference, file) for reference, file in used.items()}
    document = plain(classroom)
    rewrite(document, lambda slot: names.get(slot.reference, slot.reference))
    # Read again, so that what is frozen can be; written as it is read, so that it is one form.
    text = msgspec.json.encode(plain(classroom_from(document)))
    entries = {CLASSROOM: _entry_of(CLASSROOM, text)}
    rows = {
        CLASSROOM: FileRow(path=CLASSROOM, size=len(text), sha256=hashlib.sha256(text).hexdigest())
    }
    for reference, file in used.items():
        name = names[reference]
        entries[name] = Entry(name=name, size=file.size, crc32=file.crc32, opens=file.open)
        rows[name] = FileRow(path=name, size=file.size, sha256=file.sha256)
    manifest = sealed(_manifest(classroom, courseware_id, tuple(rows.values())))
    entries[MANIFEST] = _entry_of(MANIFEST, manifest_bytes(manifest))
    return Frozen(manifest=manifest, entries=tuple(entries.values()))


def _manifest(
    classroom: Classroom, courseware_id: str, rows: tuple[FileRow, ...]
) -> BundleManifest:
    stage = classroom.stage
    kinds = [scene.type for scene in classroom.scenes]
    return BundleManifest(
        courseware_id=courseware_id,
        content_hash_version=HASH_VERSION,
        content_hash=_UNSET,
        title=stage.name,
        description=stage.description,
        language=stage.language_directive or "",
        contents=Contents(**{kind: kinds.count(kind) for kind in sorted(set(kinds))}),
        requires_live_model=live_parts(classroom),
        completeness=completeness(()),
        files=rows,
    )


def _entry_of(name: str, content: bytes) -> Entry:
    def opens() -> contextlib.AbstractContextManager[BinaryIO]:
        return io.BytesIO(content)

    return Entry(name=name, size=len(content), crc32=zlib.crc32(content), opens=opens)


def _frozen_name(reference: str, file: SourceFile) -> str:
    return f"{reference.partition('/')[0]}/{file.sha256}.{ending_of(reference)}"


def _finished(
    classroom: Classroom, files: Mapping[str, SourceFile], found: list[FindingError]
) -> Classroom:
    """Return the classroom with its pages self-contained and its projects reset."""
    scenes = tuple(
        _finished_scene(scene, files, found, ("scenes", index, "content"))
        for index, scene in enumerate(classroom.scenes)
    )
    stage = msgspec.structs.replace(classroom.stage, video_manifest={})
    return msgspec.structs.replace(classroom, stage=stage, scenes=scenes)


def _finished_scene(
    scene: Scene, files: Mapping[str, SourceFile], found: list[FindingError], path: Path
) -> Scene:
    content = scene.content
    if isinstance(content, InteractiveContent) and (content.html or "").strip():
        html = _page(content.html or "", files, found, (*path, "html"))
        content = msgspec.structs.replace(content, html=html, url="")
    elif isinstance(content, PblContent):
        content = msgspec.structs.replace(content, project_v2=template_of(content.project_v2))
    elif isinstance(content, PracticeContent):
        clips = tuple(_with_length(clip, files) for clip in content.clips)
        content = msgspec.structs.replace(content, clips=clips)
    return msgspec.structs.replace(scene, content=content)


def _with_length(clip: Clip, files: Mapping[str, SourceFile]) -> Clip:
    """Fill in how long the sound of a clip is; what cannot be read stays without."""
    if clip.duration_ms or clip.audio_ref not in files:
        return clip
    try:
        length_ms = audio.duration_ms(files[clip.audio_ref or ""].path)
    except EtudeError:
        return clip
    return msgspec.structs.replace(clip, duration_ms=length_ms or None)


def _page(html: str, files: Mapping[str, SourceFile], found: list[FindingError], path: Path) -> str:
    reported: dict[tuple[Kind, str], None] = {}

    def report(kind: Kind, what: str) -> None:
        reported.setdefault((kind, what))

    page = contained(html, _texts(files), _data_uris(files), report)
    found += [page_finding(kind, what, path) for kind, what in reported]
    if len(page) > LONGEST:
        found.append(InteractiveTooLargeError(path=spell(path), limit=LONGEST))
        return html
    return page


def _texts(files: Mapping[str, SourceFile]) -> Callable[[str], str | None]:
    def text_of(reference: str) -> str | None:
        file = files.get(reference)
        if file is None or ending_of(reference) not in _TEXT_ENDINGS or file.size > LONGEST:
            return None
        try:
            return file.path.read_text("utf-8")
        except UnicodeDecodeError:
            return None

    return text_of


def _data_uris(files: Mapping[str, SourceFile]) -> Callable[[str], str | None]:
    def data_of(reference: str) -> str | None:
        file, kind = files.get(reference), MEDIA_TYPES.get(ending_of(reference))
        if file is None or kind is None or file.size > LONGEST:
            return None
        return f"data:{kind};base64,{base64.b64encode(file.path.read_bytes()).decode()}"

    return data_of


def _svg_findings(classroom: Classroom, files: Mapping[str, SourceFile]) -> Iterator[FindingError]:
    def is_bad(slot: Slot) -> bool:
        file = files.get(slot.reference) if is_file(slot.reference) else None
        return (
            file is not None
            and ending_of(slot.reference) == "svg"
            and not (file.size <= LONGEST and is_plain_svg(file.path.read_bytes()))
        )

    for slot in slots_of(classroom):
        if is_bad(slot):
            yield MediaUnresolvedError(path=spell(slot.path), reference=slot.reference[:100])
