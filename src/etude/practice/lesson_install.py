"""Put a checked lesson where the gateway looks for it: whole, or not at all."""

import hashlib
from pathlib import Path

import msgspec

from etude.files import Files, crash_point
from etude.practice.lesson_build import (
    CheckedLesson,
    LessonManifest,
    manifest_bytes,
    reason,
)
from etude.practice.lesson_errors import (
    LessonChangedError,
    LessonExistsError,
    LessonFaultyError,
    LessonNameError,
    LessonUnwritableError,
)
from etude.practice.lesson_findings import MANIFEST
from etude.practice.lesson_folders import LESSONS, TEXT_SUFFIX
from etude.practice.tasks import IDENTIFIER


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a lesson is now, and whether this call changed anything."""

    folder: Path
    changed: bool


def install_lesson(
    checked: CheckedLesson,
    root: Path,
    app_id: str,
    task_id: str,
    *,
    replace: bool = False,
    files: Files | None = None,
) -> Installed:
    """Copy a lesson to `<root>/{app_id}/{task_id}/lessons/{lesson_id}`.

    It is written beside its place and then renamed, so a gateway sees the whole of it or nothing,
    whenever this process dies. The same lesson again changes nothing. To replace another one takes
    two renames; who dies between them leaves none there, and the next call mends it.

    Args:
        checked: from `check_lesson`; its manifest's `lesson_id` names the folder.
        root: the folder of all lessons; made if missing.
        app_id: whose lesson it becomes.
        task_id: of which of the app's tasks.
        replace: whether another lesson of that name gives way.
        files: the disk.

    Raises:
        LessonFaultyError: the lesson has errors.
        LessonNameError: a name has other than 1 to 31 letters, digits, `_` and `-`.
        LessonExistsError: another lesson is there, and `replace` is not set.
        LessonChangedError: a file is no longer what was checked.
        LessonUnwritableError: the disk did not take it.
    """
    if checked.errors:
        raise LessonFaultyError(folder=str(checked.folder), errors=checked.errors)
    lesson_id = checked.manifest.lesson_id
    for name in (app_id, task_id, lesson_id):
        if not IDENTIFIER.fullmatch(name):
            raise LessonNameError(name=name)
    target = root / app_id / task_id / LESSONS / lesson_id
    try:
        return _install(checked, target, files or Files(), replace=replace)
    except OSError as wrong:
        raise LessonUnwritableError(path=str(target), reason=reason(wrong)) from wrong


def _install(checked: CheckedLesson, target: Path, files: Files, *, replace: bool) -> Installed:
    waiting = target.with_name(f".{target.name}.new")
    replaced = target.with_name(f".{target.name}.old")
    for left_over in (waiting, replaced):
        files.remove_tree(left_over)
    if target.exists():
        if _manifest(target) == checked.manifest:
            return Installed(folder=target, changed=False)
        if not replace:
            raise LessonExistsError(lesson_id=target.name, folder=str(target))
    files.make_folder(waiting)
    _copy(checked, waiting, files)
    crash_point("practice.lesson.copied")
    if target.exists():
        files.rename(target, replaced)
        crash_point("practice.lesson.replacing")
    files.rename(waiting, target)
    files.sync_folder(target.parent)
    crash_point("practice.lesson.installed")
    files.remove_tree(replaced)
    return Installed(folder=target, changed=True)


def _copy(checked: CheckedLesson, into: Path, files: Files) -> None:
    for clip in checked.manifest.clips:
        data = (checked.folder / clip.clip).read_bytes()
        if hashlib.sha256(data).hexdigest() != clip.sha256:
            raise LessonChangedError(file=clip.clip)
        files.write_new(into / clip.clip, data)
        words = (into / clip.clip).with_suffix(TEXT_SUFFIX)
        files.write_new(words, f"{clip.text}\n".encode())
    files.write_new(into / MANIFEST, manifest_bytes(checked.manifest))
    files.sync_folder(into)


def _manifest(folder: Path) -> LessonManifest | None:
    """Return the manifest of an installed lesson whose files are as it says, else None."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=LessonManifest)
        for clip in manifest.clips:
            with (folder / clip.clip).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != clip.sha256:
                    return None
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest
