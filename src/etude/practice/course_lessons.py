"""Lessons of published courses on a gateway's disk: laid out whole from checked bundles.

    <root>/cw-<digest of the pin>/01.mp3 … and lesson.json

A pin has one folder, which is never changed: another version is another folder. Nothing is written
before the courseware has passed its checks; then everything is written beside its place and moved
there in one step. Whoever takes a lesson looks at every byte of it: what is damaged is not played,
and made again from the same pin. The folder may be deleted while no gateway runs.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
import structlog

from etude.classroom.model import Clip as SceneClip
from etude.courseware.errors import MaterializeFailedError
from etude.courseware.loading import Ask, Checked, Download, Pin, checked_courseware
from etude.errors import EtudeError
from etude.files import Files, crash_point
from etude.practice.assigned import CoursewarePin
from etude.practice.course_errors import CourseClipUnplayableError
from etude.practice.course_scenes import PracticeScene, lesson_id_of, practice_scene
from etude.practice.lesson_findings import MANIFEST
from etude.practice.lesson_folders import LESSONS
from etude.practice.records import Clip, Lesson
from etude.practice.tasks import Task
from etude.speech.audio import duration_ms

FORMAT: Final = 1
_log = structlog.get_logger(__name__)


class LaidClip(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence: the file of its sound, what the file must hold, how long it is, what is read."""

    clip: str
    sha256: str
    duration_ms: int
    text: str


class LaidScene(msgspec.Struct, frozen=True, kw_only=True):
    """`lesson.json` of a scene.

    Attributes:
        digest: SHA-256 of all the other fields.
        title: of the courseware.
        rubric: id, version and digest of the embedded rubric.
    """

    format: int = FORMAT
    digest: str = ""
    pin: CoursewarePin
    title: str
    scene_title: str
    listen_ratio: float
    rubric: Mapping[str, str]
    clips: tuple[LaidClip, ...]

    def sealed(self) -> "LaidScene":
        """Return the same with its own digest."""
        plain = msgspec.structs.replace(self, digest="")
        digest = hashlib.sha256(msgspec.json.encode(plain)).hexdigest()
        return msgspec.structs.replace(plain, digest=digest)

    @property
    def courseware(self) -> dict[str, Any]:
        """What `session_start.meta.courseware` says: the pin, and titles for people."""
        titles = {"title": self.title, "scene_title": self.scene_title}
        return msgspec.structs.asdict(self.pin) | titles


class CourseLesson(msgspec.Struct, frozen=True, kw_only=True):
    """A scene on the disk, whole."""

    folder: Path
    scene: LaidScene

    def lesson(self, task: Task) -> Lesson:
        """Return it as a lesson of a task; nothing of the task's own texts is used."""
        within = f"/{task.app_id}/{task.task_id}/{LESSONS}/{self.folder.name}"
        return Lesson(
            app_id=task.app_id,
            task_id=task.task_id,
            lesson_id=self.folder.name,
            title=self.scene.scene_title,
            listen_ratio=self.scene.listen_ratio,
            rubric=self.scene.rubric,
            courseware=self.scene.courseware,
            clips=tuple(
                Clip(
                    name=one.clip,
                    path=f"{within}/{one.clip}",
                    expected_text=one.text,
                    duration_ms=one.duration_ms,
                    file=self.folder / one.clip,
                )
                for one in self.scene.clips
            ),
        )


class CourseLessons:
    """The scenes that a gateway has. Works on disk and network: never call it on an event loop."""

    def __init__(
        self, root: Path, ask: Ask, download: Download, files: Files | None = None
    ) -> None:
        """Keep scenes below `root`; `ask` and `download` reach the registry."""
        self._root = root
        self._ask = ask
        self._download = download
        self._files = files or Files()

    def kept(self, pin: CoursewarePin) -> CourseLesson | None:
        """Return a scene that is there, every byte of it as it was laid out; else None."""
        folder = self._root / lesson_id_of(pin)
        try:
            scene = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=LaidScene)
            whole = _is_whole(folder, scene, pin)
        except FileNotFoundError:
            whole, scene = not folder.exists(), None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            whole, scene = False, None
        if not whole:
            _log.warning(
                "a course's lesson is damaged",
                action="course_lesson.damaged",
                lesson_id=folder.name,
            )
        return CourseLesson(folder=folder, scene=scene) if whole and scene else None

    def made(self, pin: CoursewarePin) -> CourseLesson:
        """Return a scene, fetched and laid out if it is not there or damaged. One call at a time.

        Raises:
            PinMalformedError, RegistryNotFoundError, RegistryIdentityError, PinHashMismatchError,
            ManifestWithdrawnError, DownloadFailedError, BundleUnsafeError, …: a check failed.
            PracticeSceneNoneError, PracticeSceneUnknownError: nothing is practised in this scene.
            CourseClipUnplayableError: a toy cannot play a sentence.
            MaterializeFailedError: the disk does not take it.
            Nothing is kept then.
        """
        kept = self.kept(pin)
        if kept is not None:
            return kept
        pinned = Pin(
            courseware_id=pin.courseware_id, version=pin.version, content_hash=pin.content_hash
        )
        with checked_courseware(pinned, self._ask, self._download) as checked:
            return self._laid_out(pin, checked)

    def _laid_out(self, pin: CoursewarePin, checked: Checked) -> CourseLesson:
        scene = practice_scene(checked.classroom, pin.scene_id)
        target = self._root / lesson_id_of(pin)
        waiting = target.with_name(f".{target.name}.new")
        files = self._files
        try:
            files.remove_tree(waiting)
            files.make_folder(waiting)
            laid = self._written(pin, scene, checked, waiting)
            crash_point("practice.course_lesson.written")
            files.remove_tree(target)  # a damaged one
            files.rename(waiting, target)
            files.sync_folder(self._root)
            crash_point("practice.course_lesson.placed")
        except (OSError, EtudeError) as error:
            shutil.rmtree(waiting, ignore_errors=True)
            if isinstance(error, EtudeError):
                raise
            reason = error.strerror or type(error).__name__
            raise MaterializeFailedError(reason=reason) from error
        return CourseLesson(folder=target, scene=laid)

    def _written(
        self, pin: CoursewarePin, scene: PracticeScene, checked: Checked, into: Path
    ) -> LaidScene:
        laid = LaidScene(
            pin=pin,
            title=checked.title,
            scene_title=scene.title,
            listen_ratio=scene.content.listen_ratio,
            rubric=scene.rubric_named,
            clips=tuple(self._clips(scene, checked, into)),
        ).sealed()
        self._files.write_new(into / MANIFEST, msgspec.json.encode(laid))
        self._files.sync_folder(into)
        return laid

    def _clips(self, scene: PracticeScene, checked: Checked, into: Path) -> Iterator[LaidClip]:
        """Write the sounds; two sentences may have one."""
        clips = scene.content.clips
        wanted = dict(zip(_names(clips), clips, strict=True))
        references = {clip.audio_ref for clip in clips}
        hashes: dict[str, str] = {}
        for path, blocks in checked.contents():
            if path not in references:
                continue
            content = b"".join(blocks)
            hashes[path] = hashlib.sha256(content).hexdigest()
            for name, clip in wanted.items():
                if clip.audio_ref == path:
                    self._files.write_new(into / name, content)
        for name, clip in wanted.items():
            measured_ms = _measured(into / name)
            yield LaidClip(
                clip=name,
                sha256=hashes[clip.audio_ref or ""],
                duration_ms=clip.duration_ms or measured_ms,
                text=clip.text,
            )


def _names(clips: tuple[SceneClip, ...]) -> list[str]:
    """Return the file names: `01.mp3`, as wide as the last one's number, in the scene's order."""
    width = max(2, len(str(len(clips))))
    return [
        f"{number:0{width}}{PurePosixPath(clip.audio_ref or '').suffix}"
        for number, clip in enumerate(clips, 1)
    ]


def _measured(file: Path) -> int:
    """Return how long a sound is; also the proof that it can be played."""
    try:
        return duration_ms(file)
    except EtudeError as error:
        raise CourseClipUnplayableError(clip=file.name, reason=error.code) from error


def _is_whole(folder: Path, scene: LaidScene, pin: CoursewarePin) -> bool:
    if scene != scene.sealed() or scene.pin != pin or scene.format != FORMAT:
        return False
    for one in scene.clips:
        with (folder / one.clip).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != one.sha256:
                return False
    return True
