"""Published scenes as lessons on the disk: whole, verified, never another one."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from etude.courseware.bundle_errors import BundleUnsafeError
from etude.courseware.errors import (
    DownloadFailedError,
    MaterializeFailedError,
    PinHashMismatchError,
    RegistryNotFoundError,
)
from etude.errors import EtudeError
from etude.files import armed
from etude.practice.apps import shipped_apps
from etude.practice.assigned import CoursewarePin
from etude.practice.course_errors import CourseClipUnplayableError, PracticeSceneUnknownError
from etude.practice.course_lessons import CourseLessons
from etude.practice.course_scenes import lesson_id_of
from etude.rubric.library import RubricLibrary, rubric_digest
from etude.testing.bad_disks import FullFiles
from etude.testing.scene_registry import COURSEWARE_ID, SceneRegistry, scene

TASK = shipped_apps().task("english_learning", "shadowing")


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def registry(tmp_path: Path) -> SceneRegistry:
    return SceneRegistry(tmp_path / "classrooms")


@pytest.fixture
def lessons(tmp_path: Path, registry: SceneRegistry) -> CourseLessons:
    return CourseLessons(tmp_path / "lessons", registry.ask, registry.download)


def kept(root: Path) -> dict[str, bytes]:
    """Everything below a folder, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_a_scene_becomes_a_lesson(registry: SceneRegistry, lessons: CourseLessons) -> None:
    """Sentences in order with their own sounds and texts, the scene's ratio, rubric and titles."""
    pin = registry.publish(3, scene("The sea swells.", "It falls.", ratio=1.4, title="Tides"))
    made = lessons.made(pin).lesson(TASK)
    assert [one.expected_text for one in made.clips] == ["The sea swells.", "It falls."]
    assert [one.name for one in made.clips] == ["01.wav", "02.wav"]
    assert made.clips[0].path == f"/english_learning/shadowing/lessons/{lesson_id_of(pin)}/01.wav"
    assert [one.duration_ms for one in made.clips] == [310, 320]
    assert all(one.file and one.file.is_file() for one in made.clips)
    assert (made.title, made.listen_ratio) == ("Tides", 1.4)
    shipped = RubricLibrary.load().get("follow-read-en")
    assert made.rubric == {
        "id": "follow-read-en",
        "version": shipped.version,
        "digest": rubric_digest(shipped),
    }
    assert made.courseware == {
        **msgspec.structs.asdict(pin),
        "title": "Why tides come twice",
        "scene_title": "Tides",
    }


def test_nothing_is_fetched_twice(registry: SceneRegistry, lessons: CourseLessons) -> None:
    """What is there is taken from the disk, by this process and by the next one."""
    pin = registry.publish(1, scene("The sea swells."))
    lessons.made(pin)
    registry.asked.clear()
    assert lessons.made(pin).scene.pin == pin
    assert lessons.kept(pin) is not None
    assert registry.asked == []


def test_versions_stand_side_by_side(
    registry: SceneRegistry, lessons: CourseLessons, tmp_path: Path
) -> None:
    """A new version is another folder; the old one keeps every byte."""
    first = registry.publish(1, scene("The sea swells."))
    second = registry.publish(2, scene("The sea swells much."))
    lessons.made(first)
    before = kept(tmp_path / "lessons")
    lessons.made(second)
    after = kept(tmp_path / "lessons")
    assert before.items() <= after.items()
    texts = [lessons.made(pin).scene.clips[0].text for pin in (first, second)]
    assert texts == ["The sea swells.", "The sea swells much."]


def test_sentences_may_share_a_sound(registry: SceneRegistry, lessons: CourseLessons) -> None:
    """One recording under two sentences is two clips."""
    twice = scene("Again.", "Again!")
    twice["content"]["clips"][1]["audioRef"] = "audio/s1.wav"
    made = lessons.made(registry.publish(1, twice))
    first, second = made.scene.clips
    assert first.sha256 == second.sha256
    assert (made.folder / second.clip).read_bytes() == (made.folder / first.clip).read_bytes()


def _other_hash(pin: CoursewarePin) -> CoursewarePin:
    return msgspec.structs.replace(pin, content_hash="sha256:" + "0" * 64)


def _other_version(pin: CoursewarePin) -> CoursewarePin:
    return msgspec.structs.replace(pin, version=9)


def _other_scene(pin: CoursewarePin) -> CoursewarePin:
    return msgspec.structs.replace(pin, scene_id="sc_1")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (_other_hash, PinHashMismatchError),
        (_other_version, RegistryNotFoundError),
        (_other_scene, PracticeSceneUnknownError),
    ],
)
def test_what_is_pinned_otherwise_leaves_nothing(
    registry: SceneRegistry,
    lessons: CourseLessons,
    tmp_path: Path,
    changed: Callable[[CoursewarePin], CoursewarePin],
    error: type[EtudeError],
) -> None:
    """Another hash, version or scene: its own code, and not a byte on the disk."""
    pin = changed(registry.publish(1, scene("The sea swells.")))
    with pytest.raises(error):
        lessons.made(pin)
    assert not (tmp_path / "lessons").exists()


def test_no_byte_of_a_bundle_can_be_another(
    registry: SceneRegistry, lessons: CourseLessons, tmp_path: Path
) -> None:
    """Bits all over the bundle, one at a time: refused, and nothing is kept."""
    pin = registry.publish(1, scene("The sea swells."))
    size = len(registry.bundles[1])
    for at in [*range(0, size, size // 60), size - 1]:
        registry.damage(1, at)
        with pytest.raises(BundleUnsafeError):
            lessons.made(pin)
        registry.damage(1, at)
    assert not (tmp_path / "lessons").exists()
    assert lessons.made(pin)


def test_a_network_fault_has_the_code_of_the_download(
    registry: SceneRegistry, lessons: CourseLessons
) -> None:
    """The registry cannot be reached: nothing else is said."""
    pin = registry.publish(1, scene("The sea swells."))
    registry.fault = DownloadFailedError(reason="connect")
    with pytest.raises(DownloadFailedError):
        lessons.made(pin)


def test_a_sound_that_cannot_be_played_is_refused(
    registry: SceneRegistry, lessons: CourseLessons, tmp_path: Path
) -> None:
    """Its first bytes are a sound's and the rest is none: the whole lesson is not there."""
    broken = scene("The sea swells.")
    broken["content"]["clips"][0] |= {"audioRef": "audio/bad.flac", "durationMs": 500}
    root = tmp_path / "classrooms" / "1" / "harbour" / "audio"
    root.mkdir(parents=True)
    (root / "bad.flac").write_bytes(b"fLaC" + b"\0" * 40)
    with pytest.raises(CourseClipUnplayableError):
        lessons.made(registry.publish(1, broken))
    assert kept(tmp_path / "lessons") == {}


@pytest.mark.parametrize("name", ["lesson.json", "01.wav", "02.wav"])
@pytest.mark.parametrize("how", ["flipped", "short", "gone"])
def test_a_damaged_lesson_is_not_played_and_made_again(
    registry: SceneRegistry, lessons: CourseLessons, name: str, how: str
) -> None:
    """One byte other, one less, or the file gone: not taken; with web there it is whole again."""
    pin = registry.publish(1, scene("The sea swells.", "It falls."))
    made = lessons.made(pin)
    whole = kept(made.folder)
    file = made.folder / name
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes(flipped if how == "flipped" else content[:-1])
    assert lessons.kept(pin) is None
    registry.fault = DownloadFailedError(reason="connect")
    with pytest.raises(DownloadFailedError):
        lessons.made(pin)
    registry.fault = None
    assert kept(lessons.made(pin).folder) == whole


def test_a_lesson_of_another_pin_in_its_place_is_not_taken(
    registry: SceneRegistry, lessons: CourseLessons
) -> None:
    """A whole lesson under the wrong name is not what was assigned."""
    first = registry.publish(1, scene("The sea swells."))
    second = registry.publish(2, scene("It falls."))
    made = lessons.made(first)
    made.folder.rename(made.folder.with_name(lesson_id_of(second)))
    assert lessons.kept(second) is None
    assert lessons.made(second).scene.clips[0].text == "It falls."


def test_a_kill_anywhere_leaves_no_lesson_or_the_whole_one(
    registry: SceneRegistry, tmp_path: Path
) -> None:
    """At every crash point: then the next try has it, whole, and no left-over beside it."""
    pin = registry.publish(1, scene("The sea swells."))
    reached: list[str] = []

    def crash(name: str) -> None:
        reached.append(name)
        raise Crash

    for point in ("practice.course_lesson.written", "practice.course_lesson.placed"):
        root = tmp_path / point

        def at(name: str, point: str = point) -> None:
            if name == point:
                crash(name)

        lessons = CourseLessons(root, registry.ask, registry.download)
        with armed(at), pytest.raises(Crash):
            lessons.made(pin)
        again = CourseLessons(root, registry.ask, registry.download)
        found = again.kept(pin)
        assert (found is None) == (point == "practice.course_lesson.written")
        assert again.made(pin).scene.clips[0].text == "The sea swells."
        assert {one.name for one in root.iterdir()} == {lesson_id_of(pin)}
    assert len(reached) == 2


def test_a_full_disk_is_named_and_leaves_nothing(registry: SceneRegistry, tmp_path: Path) -> None:
    """The reason is the system's; no half of a lesson stays."""
    pin = registry.publish(1, scene("The sea swells."))
    root = tmp_path / "lessons"
    lessons = CourseLessons(root, registry.ask, registry.download, FullFiles())
    with pytest.raises(MaterializeFailedError) as raised:
        lessons.made(pin)
    assert raised.value.params["reason"] == "No space left on device"
    assert list(root.iterdir()) == []


def test_the_name_of_a_lesson_is_of_its_whole_pin() -> None:
    """Courseware, version, hash and scene all count; the id fits where lessons are named."""
    pin = CoursewarePin(
        courseware_id=COURSEWARE_ID, version=1, content_hash="sha256:" + "a" * 64, scene_id="p1"
    )
    others = [
        msgspec.structs.replace(pin, **{name: value})
        for name, value in (
            ("courseware_id", "cw_other"),
            ("version", 2),
            ("content_hash", "sha256:" + "b" * 64),
            ("scene_id", "p2"),
        )
    ]
    names = {lesson_id_of(one) for one in (pin, *others)}
    assert len(names) == 5
    assert max(map(len, names)) <= 31
