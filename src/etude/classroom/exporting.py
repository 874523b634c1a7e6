"""Giving a classroom to OpenMAIC: a plain document, or a `.maic.zip`, and what is lost on the way.

A practice scene becomes an activity that shows its sentences, with a script that speaks them.
"""

import html
import mimetypes
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.classroom.actions import Speech
from etude.classroom.errors import ClassroomFolderError
from etude.classroom.manifests import manifest_of
from etude.classroom.mending import Loss
from etude.classroom.model import Classroom, InteractiveContent, PracticeContent, Scene
from etude.classroom.plain import plain
from etude.classroom.presets import locale_of
from etude.classroom.references import is_file, rewrite, slots_of
from etude.classroom.versions import OPENMAIC_VERSION
from etude.i18n import text

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
_FILE_MODE: Final = 0o100644 << 16

Document = dict[str, Any]


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A plain document, the files that belong beside it, and what was lost.

    `files` are references of the classroom: each goes to the place of its own name.
    """

    document: Document
    files: tuple[str, ...]
    losses: tuple[Loss, ...]


def export_document(classroom: Classroom) -> Exported:
    """Return the classroom as OpenMAIC keeps it (`data/classrooms/<id>.json`)."""
    document, losses = _plain(classroom)
    served = f"/api/classroom-media/{classroom.id}/"
    for action in _speeches(document):
        reference = action.pop("audioRef", None)
        if reference is not None:
            action["audioId"] = Path(reference).stem
            action["audioUrl"] = f"{served}{reference}"
    rewrite(
        document,
        lambda slot: f"{served}{slot.reference}" if is_file(slot.reference) else slot.reference,
    )
    return Exported(document=document, files=_files(classroom), losses=tuple(losses))


def export_archive(
    classroom: Classroom,
    target: Path,
    read: Callable[[str], Iterable[bytes]],
    exported_at: datetime,
) -> tuple[Loss, ...]:
    """Write the classroom as a `.maic.zip`: the same bytes for the same content and time.

    Args:
        classroom: what to write.
        target: a file that is not there yet.
        read: the content of a file, by its reference.
        exported_at: when.

    Returns:
        What was lost.

    Raises:
        ClassroomFolderError: the file cannot be written; nothing of it is left.
    """
    document, _ = _plain(classroom)
    losses = archive_losses(classroom)
    names = _files(classroom)
    manifest = manifest_of(document, {name: _index(name) for name in names}, exported_at)
    try:
        with zipfile.ZipFile(target, "x", allowZip64=False) as archive:
            _write(archive, "manifest.json", [msgspec.json.encode(manifest)], packed=True)
            for name in names:
                _write(archive, name, read(name), packed=False)
    except (OSError, zipfile.LargeZipFile) as error:
        if not isinstance(error, FileExistsError):
            with suppress(OSError):  # what was to be said is said already
                target.unlink()
        raise ClassroomFolderError(reason=str(error)) from error
    return losses


def archive_losses(classroom: Classroom) -> tuple[Loss, ...]:
    """Return what a `.maic.zip` of a classroom leaves out or changes."""
    _, losses = _plain(classroom)
    return (*losses, *_homeless(classroom))


def _plain(classroom: Classroom) -> tuple[Document, list[Loss]]:
    """Return the document of OpenMAIC's version, its references as they are."""
    losses: list[Loss] = []
    scenes = []
    for index, scene in enumerate(classroom.scenes):
        if scene.key_points:
            losses.append(Loss(f"scenes[{index}].keyPoints", "key_points_dropped"))
        if isinstance(scene.content, PracticeContent):
            losses.append(Loss(f"scenes[{index}]", "practice_degraded"))
        scenes.append(_without_practice(scene, locale_of({"name": classroom.stage.name})))
    document = plain(msgspec.structs.replace(classroom, scenes=tuple(scenes)), spelled_out=True)
    document["dslVersion"] = OPENMAIC_VERSION
    return document, losses


def _without_practice(scene: Scene, locale: str) -> Scene:
    """Return a scene that OpenMAIC knows."""
    scene = msgspec.structs.replace(scene, key_points=())
    content = scene.content
    if not isinstance(content, PracticeContent):
        return scene
    spoken = tuple(
        Speech(id=f"clip-{index + 1}", text=clip.text, audio_ref=clip.audio_ref)
        for index, clip in enumerate(content.clips)
    )
    page = _page(scene.title, [clip.text for clip in content.clips], locale)
    return msgspec.structs.replace(
        scene,
        type="interactive",
        content=InteractiveContent(html=page),
        actions=(*scene.actions, *spoken),
    )


def _page(title: str, sentences: Iterable[str], locale: str) -> str:
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return (
        f'<!doctype html><html lang="{locale}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title>"
        "<style>body{font:1.25rem/1.6 sans-serif;margin:1rem auto;max-width:40rem;padding:0 1rem}"
        "li{margin:.5rem 0}</style></head>"
        f"<body><h1>{html.escape(title)}</h1>"
        f"<p>{html.escape(text('classroom.practice.instruction', locale))}</p>"
        f"<ol>{items}</ol></body></html>"
    )


def _homeless(classroom: Classroom) -> list[Loss]:
    """Return what the archive's format has no place for."""
    stage = classroom.stage
    losses = [Loss("stage.whiteboard", "whiteboard_dropped")] if stage.whiteboard else []
    if stage.interactive_mode:
        losses.append(Loss("stage.interactiveMode", "mode_dropped"))
    if stage.task_engine_mode:
        losses.append(Loss("stage.taskEngineMode", "mode_dropped"))
    return losses


def _files(classroom: Classroom) -> tuple[str, ...]:
    return tuple(sorted({one.reference for one in slots_of(classroom) if is_file(one.reference)}))


def _speeches(document: Document) -> Iterable[Document]:
    for scene in document["scenes"]:
        yield from (one for one in scene["actions"] if one["type"] == "speech")


def _index(name: str) -> Document:
    kind = "audio" if name.startswith("audio/") else "image"
    mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return {"type": kind, "sourceRef": name, "mimeType": mime, "format": name.rpartition(".")[2]}


def _write(archive: zipfile.ZipFile, name: str, chunks: Iterable[bytes], *, packed: bool) -> None:
    info = zipfile.ZipInfo(name, _MOMENT)
    info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    info.create_system = 3
    info.external_attr = _FILE_MODE
    with archive.open(info, "w") as entry:
        for chunk in chunks:
            entry.write(chunk)
