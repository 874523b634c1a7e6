import shutil
from pathlib import Path

import msgspec
import pytest

from etude.files import Files, armed
from etude.practice.lesson_build import CheckedLesson, check_lesson
from etude.practice.lesson_errors import (
    LessonChangedError,
    LessonExistsError,
    LessonFaultyError,
    LessonNameError,
    LessonUnwritableError,
)
from etude.practice.lesson_install import install_lesson
from etude.practice.sample_lessons import sample_lessons
from etude.testing.lossy_files import LossyFiles

GREETINGS = sample_lessons() / "english_learning/shadowing/lessons/greetings"
FABLE = sample_lessons() / "story_time/retelling/lessons/crow"
PLACE = "english_learning/shadowing/lessons/unit01"
APP, TASK = PLACE.split("/")[:2]


class KilledError(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def greetings() -> CheckedLesson:
    return check_lesson(GREETINGS, "unit01")


@pytest.fixture(scope="module")
def fable() -> CheckedLesson:
    return check_lesson(FABLE, "unit01")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(folder: Path, checked: CheckedLesson) -> bool:
    found = content(folder)
    expected = {clip.clip for clip in checked.manifest.clips}
    texts = {f"{name[:2]}.txt" for name in expected}
    return set(found) == expected | texts | {"lesson.json"} and all(
        found[name] == (checked.folder / name).read_bytes() for name in expected
    )


def test_a_lesson_is_copied_whole(greetings: CheckedLesson, tmp_path: Path) -> None:
    """Clips, texts and manifest, where the gateway looks for them; again, it changes nothing."""
    installed = install_lesson(greetings, tmp_path, APP, TASK)
    assert installed.changed
    assert installed.folder == tmp_path / PLACE
    assert same(installed.folder, greetings)
    assert (installed.folder / "01.txt").read_text() == "Good morning.\n"
    assert not install_lesson(greetings, tmp_path, APP, TASK).changed


def test_another_lesson_gives_way_only_when_asked(
    greetings: CheckedLesson, fable: CheckedLesson, tmp_path: Path
) -> None:
    """Nobody's lesson is lost by a name that was taken."""
    install_lesson(greetings, tmp_path, APP, TASK)
    with pytest.raises(LessonExistsError):
        install_lesson(fable, tmp_path, APP, TASK)
    assert same(tmp_path / PLACE, greetings)
    assert install_lesson(fable, tmp_path, APP, TASK, replace=True).changed
    assert same(tmp_path / PLACE, fable)
    assert [path.name for path in (tmp_path / PLACE).parent.iterdir()] == ["unit01"]


def test_a_damaged_copy_is_not_the_same_lesson(greetings: CheckedLesson, tmp_path: Path) -> None:
    """What is compared is what the files hold, not what a manifest says."""
    folder = install_lesson(greetings, tmp_path, APP, TASK).folder
    (folder / "02.mp3").write_bytes(b"damaged")
    with pytest.raises(LessonExistsError):
        install_lesson(greetings, tmp_path, APP, TASK)
    assert install_lesson(greetings, tmp_path, APP, TASK, replace=True).changed
    assert same(folder, greetings)


@pytest.mark.parametrize(
    "point", ["practice.lesson.copied", "practice.lesson.replacing", "practice.lesson.installed"]
)
def test_a_kill_leaves_a_whole_lesson_or_none(
    greetings: CheckedLesson, fable: CheckedLesson, tmp_path: Path, point: str
) -> None:
    """At every crash point: the old one, the new one or none, and the next call mends it."""
    install_lesson(greetings, tmp_path, APP, TASK)

    def kill(reached: str) -> None:
        if reached == point:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        install_lesson(fable, tmp_path, APP, TASK, replace=True)
    place = tmp_path / PLACE
    whole = {
        "practice.lesson.copied": place.exists() and same(place, greetings),
        "practice.lesson.replacing": not place.exists(),
        "practice.lesson.installed": place.exists() and same(place, fable),
    }
    assert whole[point]
    install_lesson(fable, tmp_path, APP, TASK, replace=True)
    assert same(place, fable)
    assert [path.name for path in place.parent.iterdir()] == ["unit01"]


def test_a_lesson_outlives_a_power_cut(greetings: CheckedLesson, tmp_path: Path) -> None:
    """When the call has returned, everything is on the disk."""
    (tmp_path / "live").mkdir()
    disk = LossyFiles(tmp_path / "live")
    install_lesson(greetings, disk.root, APP, TASK, files=disk)
    disk.survivors(tmp_path / "after")
    assert same(tmp_path / "after" / PLACE, greetings)


def test_a_faulty_lesson_is_not_installed(tmp_path: Path) -> None:
    """Errors are for before, not for devices."""
    (tmp_path / "unit01").mkdir()
    with pytest.raises(LessonFaultyError):
        install_lesson(check_lesson(tmp_path / "unit01"), tmp_path / "root", APP, TASK)
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("name", ["..", "a/b", "", "a" * 32, "课文"])
def test_a_name_cannot_lead_elsewhere(greetings: CheckedLesson, tmp_path: Path, name: str) -> None:
    """App and task are one folder each."""
    for names in ((name, TASK), (APP, name)):
        with pytest.raises(LessonNameError):
            install_lesson(greetings, tmp_path, *names)
    assert list(tmp_path.iterdir()) == []


def test_a_clip_that_changed_since_is_noticed(tmp_path: Path) -> None:
    """What is installed is what was checked."""
    shutil.copytree(GREETINGS, tmp_path / "unit01")
    checked = check_lesson(tmp_path / "unit01")
    shutil.copy(FABLE / "01.mp3", tmp_path / "unit01/02.mp3")
    with pytest.raises(LessonChangedError):
        install_lesson(checked, tmp_path / "root", APP, TASK)
    assert not (tmp_path / "root" / PLACE).exists()


def test_a_disk_that_takes_nothing_is_told(greetings: CheckedLesson, tmp_path: Path) -> None:
    """The message names the place."""

    class FullDisk(Files):
        def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            raise OSError(28, f"no space for {len(data)} bytes", path, mode)

    with pytest.raises(LessonUnwritableError) as caught:
        install_lesson(greetings, tmp_path, APP, TASK, files=FullDisk())
    assert caught.value.params["path"] == str(tmp_path / PLACE)
    assert not (tmp_path / PLACE).exists()


def test_the_text_that_is_installed_is_the_one_that_was_checked(tmp_path: Path) -> None:
    """A byte order mark or white space does not reach a device's screen."""
    shutil.copytree(GREETINGS, tmp_path / "unit01")
    (tmp_path / "unit01/01.txt").write_bytes("\ufeff  Hello.  \r\n".encode())
    checked = check_lesson(tmp_path / "unit01")
    folder = install_lesson(checked, tmp_path / "root", APP, TASK).folder
    assert (folder / "01.txt").read_bytes() == b"Hello.\n"
    manifest = msgspec.json.decode((folder / "lesson.json").read_bytes())
    assert manifest["clips"][0]["text"] == "Hello."
