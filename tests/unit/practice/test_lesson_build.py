import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from etude.files import Files
from etude.i18n import LOCALES
from etude.practice.lesson_build import check_lesson, write_manifest
from etude.practice.lesson_errors import LessonFolderUnknownError, LessonUnwritableError
from etude.practice.lessons import Lessons
from etude.practice.sample_lessons import sample_lessons
from etude.speech import audio
from etude.speech.errors import SoundLibraryMissingError

Lesson = Callable[..., Path]


@pytest.fixture
def lesson(tmp_path: Path) -> Lesson:
    """Writes a lesson of as many clips as there are texts."""

    def write(*texts: str, name: str = "unit01") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number, words in enumerate(texts, 1):
            wave = 0.2 * np.sin(np.arange(16_000) * (0.1 + number / 50))
            soundfile.write(folder / f"{number:02}.mp3", wave, 16_000)
            (folder / f"{number:02}.txt").write_text(words, "utf-8")
        return folder

    return write


def codes(folder: Path) -> list[tuple[str, str]]:
    return [(one.file, one.code) for one in check_lesson(folder).findings]


def test_a_good_lesson_has_its_manifest(lesson: Lesson) -> None:
    """Clips in order, with what was measured and what is read; made again, it is the same."""
    folder = lesson("Good morning.\n", "春眠不觉晓")
    checked = check_lesson(folder)
    assert checked.findings == ()
    path = write_manifest(checked, Files())
    manifest = json.loads(path.read_bytes())
    assert manifest["lesson_id"] == "unit01"
    first, second = manifest["clips"]
    assert (first["clip"], first["text"], first["duration_ms"]) == ("01.mp3", "Good morning.", 1000)
    assert first["loudness_lufs"] == pytest.approx(-17.5, abs=2)
    assert second["text"] == "春眠不觉晓"
    before = path.read_bytes()
    write_manifest(check_lesson(folder), Files())
    assert path.read_bytes() == before


def test_all_findings_come_at_once(lesson: Lesson) -> None:
    """One run names everything that has to be mended, in order of files."""
    folder = lesson("one", "two", "three", "four", name="unit 1")
    (folder / "01.txt").unlink()
    (folder / "02.mp3").write_bytes(b"not audio")
    (folder / "03.txt").write_bytes(b"\xff")
    (folder / "04.mp3").write_bytes((folder / "01.mp3").read_bytes())
    (folder / "05.txt").write_text("five")
    (folder / "06.mp3").symlink_to(folder / "01.mp3")
    (folder / "old").mkdir()
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "07.txt").write_bytes(b"x" * 9_000)
    soundfile.write(folder / "07.wav", np.zeros(16_000), 16_000)
    assert codes(folder) == [
        ("01.mp3", "text_missing"),
        ("02.mp3", "audio_unreadable"),
        ("03.txt", "text_not_utf8"),
        ("04.mp3", "audio_twice"),
        ("05.txt", "audio_missing"),
        ("06.mp3", "link_refused"),
        ("07.txt", "text_too_large"),
        ("07.wav", "audio_silent"),
        ("07.wav", "number_missing"),
        ("old", "file_ignored"),
        ("unit 1", "lesson_id_invalid"),
    ]
    for one in check_lesson(folder).findings:
        assert all(one.message(locale) for locale in LOCALES)


def test_nothing_in_the_folder_is_changed_by_looking(lesson: Lesson) -> None:
    """The audio is the teacher's."""
    folder = lesson("one", "two")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    write_manifest(check_lesson(folder), Files())
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before}
    assert after == before
    assert {path.name for path in folder.iterdir()} - {p.name for p in before} == {"lesson.json"}


def test_a_folder_of_thousands_is_no_lesson(lesson: Lesson) -> None:
    """All of it would be encoded before the first clip plays."""
    folder = lesson("one")
    for number in range(2, 503):
        (folder / f"{number:03}.mp3").touch()
    assert ("unit01", "lesson_too_large") in codes(folder)


def test_a_clip_of_no_bytes_is_told_to_be_empty(lesson: Lesson) -> None:
    """It is there and a file, so the finding says what is wrong with it."""
    folder = lesson("one", "two")
    (folder / "02.mp3").write_bytes(b"")
    assert codes(folder) == [("02.mp3", "audio_empty")]


def test_an_empty_folder_is_no_lesson(tmp_path: Path) -> None:
    """It is said, instead of an empty manifest."""
    (tmp_path / "unit01").mkdir()
    assert codes(tmp_path / "unit01") == [("unit01", "lesson_empty")]


@pytest.mark.parametrize("what", ["missing", "file"])
def test_what_is_no_folder_is_told(tmp_path: Path, what: str) -> None:
    """A misspelt path is not a lesson without clips."""
    (tmp_path / "file").touch()
    with pytest.raises(LessonFolderUnknownError):
        check_lesson(tmp_path / what)


def test_a_disk_that_takes_nothing_is_told(lesson: Lesson) -> None:
    """The manifest before stands."""

    class FullDisk(Files):
        def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            raise OSError(28, f"no space for {len(data)} bytes", path, mode)

    folder = lesson("one")
    (folder / "lesson.json").write_text("before")
    with pytest.raises(LessonUnwritableError):
        write_manifest(check_lesson(folder), FullDisk())
    assert (folder / "lesson.json").read_text() == "before"


def test_without_the_library_there_is_no_finding_but_an_error(
    lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that cannot read audio says nothing about the clips."""
    folder = lesson("one")

    def missing(name: str) -> object:
        raise SoundLibraryMissingError(library=name, reason="?", install="?")

    monkeypatch.setattr(audio, "sound_library", missing)
    with pytest.raises(SoundLibraryMissingError):
        check_lesson(folder)


def test_the_samples_that_ship_are_good_lessons() -> None:
    """Every sample has no finding, and the manifest that lies beside it."""
    folders = sorted(path.parent for path in sample_lessons().rglob("lesson.json"))
    assert [folder.name for folder in folders] == ["spring_dawn", "greetings", "crow"]
    for folder in folders:
        checked = check_lesson(folder)
        assert checked.findings == ()
        written = json.loads((folder / "lesson.json").read_bytes())
        now = [(clip.clip, clip.sha256, clip.text) for clip in checked.manifest.clips]
        assert [(c["clip"], c["sha256"], c["text"]) for c in written["clips"]] == now


def test_the_samples_belong_to_apps_that_ship() -> None:
    """A new installation can practise each of them with an app that it has."""
    from etude.practice.apps import shipped_apps  # noqa: PLC0415 - only this test needs apps
    from etude.speech.clip_cache import ClipCache  # noqa: PLC0415 - and this one

    lessons = Lessons(sample_lessons(), ClipCache(None))
    found = [lesson for task in shipped_apps() if (lesson := lessons.first(task)) is not None]
    assert {lesson.lesson_id for lesson in found} == {"spring_dawn", "greetings", "crow"}
    assert all(clip.expected_text for lesson in found for clip in lesson.clips)
    lessons.close()
