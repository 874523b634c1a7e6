"""Check a lesson's folder and write its manifest, `lesson.json`. The audio is never touched."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from etude.errors import EtudeError
from etude.files import Files, replace_file
from etude.practice.lesson_errors import LessonFolderUnknownError, LessonUnwritableError
from etude.practice.lesson_findings import (
    MANIFEST,
    Finding,
    Severity,
    Sound,
    error,
    is_clip,
    is_text,
    name_findings,
    sound_findings,
    text_findings,
    warning,
)
from etude.practice.lesson_folders import LARGEST_TEXT_BYTES, MOST_CLIPS, byte_order
from etude.practice.lesson_voice import SpokenBy, spoken_by
from etude.practice.tasks import IDENTIFIER
from etude.speech.audio import read_audio
from etude.speech.errors import SoundLibraryMissingError
from etude.speech.loudness import measure

FORMAT: Final = 1
# What a clip is measured at: what a device will hear.
_RATE: Final = 24_000
_MANIFEST_MODE: Final = 0o644


class BuiltClip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One clip of a manifest.

    Attributes:
        clip: its file name.
        sha256: of the file.
        duration_ms: how long it lasts.
        loudness_lufs: integrated loudness (`etude.speech.loudness`), to 0.1.
        text: what is read in it.
        spoken_by: the voice that made it; None = a recording.
    """

    clip: str
    sha256: str
    duration_ms: int
    loudness_lufs: float | None
    text: str
    spoken_by: SpokenBy | None = None


class LessonManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`lesson.json`: what a lesson holds, in the order in which it is played."""

    format: int = FORMAT
    lesson_id: str
    clips: tuple[BuiltClip, ...]


class CheckedLesson(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was looked at, with everything that was found, in order of files."""

    folder: Path
    manifest: LessonManifest
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many findings stop the lesson from being built."""
        return sum(one.severity is Severity.ERROR for one in self.findings)


def check_lesson(folder: Path, lesson_id: str | None = None) -> CheckedLesson:
    """Look at every file of a lesson; nothing is changed, and no finding hides another.

    Args:
        folder: with `01.mp3` (or WAV, OGG, FLAC) and `01.txt`, `02.mp3` …
        lesson_id: the lesson's name; None = the folder's.

    Raises:
        LessonFolderUnknownError: there is no such folder.
        SoundLibraryMissingError: no audio can be read on this machine.
    """
    name = folder.resolve().name if lesson_id is None else lesson_id
    findings: list[Finding] = []
    if not IDENTIFIER.fullmatch(name):
        findings.append(error("lesson_id_invalid", name))
    names = list(_visible_files(folder, findings))
    if not any(is_clip(one) or is_text(one) for one in names):
        findings.append(error("lesson_empty", name))
    clip_names = list(filter(is_clip, names))
    if len(clip_names) > MOST_CLIPS:
        findings.append(error("lesson_too_large", name, clips=len(clip_names), limit=MOST_CLIPS))
    findings += name_findings(names)
    texts = {Path(one).stem: _read_text(folder / one, findings) for one in names if is_text(one)}
    sounds = [
        sound
        for one in clip_names[:MOST_CLIPS]
        if (sound := _measure(folder / one, findings)) is not None
    ]
    findings += sound_findings(sounds)
    clips = tuple(
        _built(sound, texts.get(Path(sound.name).stem) or "", spoken_by(folder / sound.name))
        for sound in sounds
    )
    return CheckedLesson(
        folder=folder,
        manifest=LessonManifest(lesson_id=name, clips=clips),
        findings=tuple(sorted(findings, key=lambda one: (byte_order(one.file), one.code))),
    )


def write_manifest(checked: CheckedLesson, files: Files) -> Path:
    """Write `lesson.json` beside the clips, as a whole, and return where it is.

    Only for a lesson without errors: the caller looks at `checked.errors`.

    Raises:
        LessonUnwritableError: the disk did not take it; an older one stands.
    """
    path = checked.folder / MANIFEST
    try:
        replace_file(files, path, manifest_bytes(checked.manifest), _MANIFEST_MODE)
    except OSError as wrong:
        raise LessonUnwritableError(path=str(path), reason=reason(wrong)) from wrong
    return path


def manifest_bytes(manifest: LessonManifest) -> bytes:
    """Return the content of `lesson.json`: the same lesson, the same bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def reason(wrong: OSError) -> str:
    """Return what the operating system says, without a path."""
    return wrong.strerror or type(wrong).__name__


def _visible_files(folder: Path, findings: list[Finding]) -> Iterator[str]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: byte_order(entry.name))
    except OSError as wrong:
        raise LessonFolderUnknownError(folder=str(folder), reason=reason(wrong)) from wrong
    for entry in entries:
        if entry.name.startswith("."):  # a system's own (`.DS_Store`); devices skip them too
            continue
        if entry.is_symlink():
            findings.append(error("link_refused", entry.name))
        elif entry.is_file():
            yield entry.name
        else:
            findings.append(warning("file_ignored", entry.name))


def _read_text(path: Path, findings: list[Finding]) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_TEXT_BYTES + 1)
    except OSError as wrong:
        findings.append(error("text_unreadable", path.name, reason=reason(wrong)))
        return None
    if len(data) > LARGEST_TEXT_BYTES:
        findings.append(error("text_too_large", path.name, limit_bytes=LARGEST_TEXT_BYTES))
        return None
    findings += text_findings(path.name, data)
    return data.decode("utf-8", "replace").removeprefix("\ufeff").strip()


def _measure(path: Path, findings: list[Finding]) -> Sound | None:
    try:
        pcm = read_audio(path, _RATE)
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except SoundLibraryMissingError:
        raise
    except EtudeError as wrong:
        params = {name: value for name, value in wrong.params.items() if name != "file"}
        findings.append(error(wrong.code.lower(), path.name, **params))
        return None
    except OSError as wrong:
        findings.append(error("audio_unreadable", path.name, reason=reason(wrong)))
        return None
    return Sound(name=path.name, sha256=sha256, duration_ms=pcm.duration_ms, loudness=measure(pcm))


def _built(sound: Sound, words: str, voice: SpokenBy | None) -> BuiltClip:
    lufs = sound.loudness.integrated_lufs
    return BuiltClip(
        clip=sound.name,
        sha256=sound.sha256,
        duration_ms=sound.duration_ms,
        loudness_lufs=None if lufs is None else round(lufs, 1),
        text=words,
        spoken_by=voice,
    )
