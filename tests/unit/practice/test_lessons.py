import asyncio
import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from structlog.testing import capture_logs

from etude.practice.lessons import Lessons, resolve_expected_text
from etude.practice.records import Mode
from etude.practice.tasks import Activity, Task
from etude.speech.clip_cache import ClipCache

Write = Callable[..., Path]


def task(**more: Any) -> Task:
    named = {"app_id": "english", "task_id": "shadowing"}
    return Task(**named, mode=Mode.SHADOWING, activity=Activity.FOLLOW_READ, **more)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a clip of a lesson, and its text if there is one."""

    def write_clip(
        name: str, text: str | None = None, *, lesson: str = "unit01", seconds: float = 0.5
    ) -> Path:
        folder = tmp_path / "lessons/english/shadowing/lessons" / lesson
        folder.mkdir(parents=True, exist_ok=True)
        wave = 0.2 * np.sin(np.arange(int(16_000 * seconds)) * (0.1 + len(name) / 100))
        soundfile.write(folder / name, wave, 16_000)
        if text is not None:
            (folder / name).with_suffix(".txt").write_text(text, "utf-8")
        return folder / name

    return write_clip


@pytest.fixture
def lessons(tmp_path: Path) -> Iterator[Lessons]:
    made = Lessons(tmp_path / "lessons", ClipCache(None))
    yield made
    made.close()


def test_the_first_lesson_is_the_first_in_byte_order(write: Write, lessons: Lessons) -> None:
    """Whole, clips in byte order of name (`docs/rules.md 15`): `10` before `2`, capitals first."""
    for lesson in ("unit2", "unit10", "Zoo"):
        write("01.wav", lesson=lesson)
    for name in ("2.wav", "10.wav", "1.mp3", "B.ogg", "a.flac"):
        write(name, lesson="Zoo")
    lesson = lessons.first(task())
    assert lesson is not None
    assert lesson.lesson_id == "Zoo"
    names = [clip.name for clip in lesson.clips]
    assert names == ["01.wav", "1.mp3", "10.wav", "2.wav", "B.ogg", "a.flac"]


def test_a_clip_knows_its_path_text_and_length(write: Write, lessons: Lessons) -> None:
    """What a turn needs is there before anything is played."""
    file = write("01.mp3", "Good morning.\n", seconds=0.75)
    lesson = lessons.named(task(), "unit01")
    assert lesson is not None
    (clip,) = lesson.clips
    assert clip.path == "/english/shadowing/lessons/unit01/01.mp3"
    assert clip.expected_text == "Good morning."
    assert clip.duration_ms == 750
    assert clip.file == file


def test_an_unreadable_clip_is_reported_and_its_neighbours_kept(
    write: Write, lessons: Lessons
) -> None:
    """It is left out once and logged once, and the others keep their sentences."""
    for name in ("01.wav", "02.wav", "03.wav"):
        write(name)
    write("02.wav").write_bytes(b"no audio")
    sentences = task(sentences=("one", "two", "three"))
    with capture_logs() as logs:
        lesson = lessons.first(sentences)
        assert lessons.first(sentences) == lesson
    assert lesson is not None
    assert [clip.expected_text for clip in lesson.clips] == ["one", "three"]
    assert [(log["action"], log["code"]) for log in logs] == [
        ("lesson.clip_unusable", "AUDIO_UNREADABLE")
    ]


def test_a_folder_without_a_clip_to_play_is_passed_over(write: Write, lessons: Lessons) -> None:
    """What `ENSURE_APP_DIRS` made empty is no lesson yet."""
    write("01.wav", lesson="a").unlink()
    write("01.wav", lesson="b").write_bytes(b"")
    write("01.wav", lesson="c")
    found = lessons.first(task())
    assert found is not None
    assert found.lesson_id == "c"


def test_a_lesson_ends_after_so_many_clips(lessons: Lessons) -> None:
    """A card may hold thousands: what is played fits into memory, and the rest is logged."""
    paths = [f"/english/shadowing/lessons/unit01/{number:04}.mp3" for number in range(4000)]
    with capture_logs() as logs:
        lesson = lessons.on_card(task(), paths)
    assert lesson is not None
    assert [clip.name for clip in lesson.clips][-1] == "0499.mp3"
    assert [one["action"] for one in logs] == ["lesson.cut"]


def test_without_lessons_there_is_none(lessons: Lessons) -> None:
    """A data folder without lessons is an ordinary one."""
    assert lessons.first(task()) is None
    assert lessons.named(task(), "unit01") is None
    assert lessons.on_card(task(), []) is None


@pytest.mark.parametrize("lesson_id", ["..", ".", "", "../../x", "a/b", "a\\b", "a\0b", ".hidden"])
def test_a_name_cannot_lead_out_of_the_lessons(
    write: Write, lessons: Lessons, lesson_id: str
) -> None:
    """An id that comes from outside is one folder's name or nothing."""
    write("01.wav")
    assert lessons.named(task(), lesson_id) is None


def test_symbolic_links_are_not_followed(write: Write, lessons: Lessons, tmp_path: Path) -> None:
    """Neither a lesson, nor a clip, nor a text comes from elsewhere."""
    clip = write("01.wav")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(clip.parent, elsewhere)
    (tmp_path / "secret.txt").write_text("secret")
    (clip.parent / "02.wav").symlink_to(elsewhere / "01.wav")
    (clip.parent / "01.txt").symlink_to(tmp_path / "secret.txt")
    (clip.parent.parent / "a").symlink_to(elsewhere)
    lesson = lessons.first(task())
    assert lesson is not None
    assert lesson.lesson_id == "unit01"
    assert [(one.name, one.expected_text) for one in lesson.clips] == [("01.wav", None)]
    assert lessons.named(task(), "a") is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("\ufeff Hello \r\n".encode(), "Hello"),
        ("春眠不觉晓".encode(), "春眠不觉晓"),
        (b"\xff\xfe\x00", None),
        (b" \n", None),
        (b"a" * 9_000, None),
    ],
)
def test_a_text_is_used_or_not_there(
    write: Write, lessons: Lessons, data: bytes, text: str | None
) -> None:
    """UTF-8 with or without its mark; what cannot be read never stops a lesson."""
    write("01.wav").with_suffix(".txt").write_bytes(data)
    lesson = lessons.first(task())
    assert lesson is not None
    assert lesson.clips[0].expected_text == text


@pytest.mark.parametrize(
    ("transcripts", "beside", "sentences", "expected"),
    [
        ({"01.mp3": "name", "01": "stem"}, "beside", ("order",), "name"),
        ({"01": "stem"}, "beside", ("order",), "stem"),
        ({"02": "other"}, "beside", ("order",), "beside"),
        ({}, None, ("order",), "order"),
        ({}, None, (), None),
    ],
)
def test_the_text_comes_from_the_first_that_has_one(
    transcripts: dict[str, str],
    beside: str | None,
    sentences: tuple[str, ...],
    expected: str | None,
) -> None:
    """Transcript by name, by stem, the text beside, the sentence by order, none."""
    named = task(transcripts=transcripts, sentences=sentences)
    assert resolve_expected_text(named, "01.mp3", 0, beside) == expected


def test_a_lesson_on_the_card_takes_its_texts_from_the_server(
    write: Write, lessons: Lessons
) -> None:
    """First lesson in byte order, wherever the card is mounted; nothing is read from it."""
    file = write("02.wav", "two")
    lesson = lessons.on_card(
        task(transcripts={"01": "one"}),
        [
            "/english/shadowing/lessons/unit02/01.mp3",
            "/sdcard/english/shadowing/lessons/unit01/02.wav",
            "english/shadowing/lessons/unit01/01.mp3",
            "/sdcard/english/shadowing/lessons/unit01/01.mp3",
            "/english/repeater/lessons/a/01.mp3",
            "/english/shadowing/lessons/01.mp3",
            "/english/shadowing/lessons/a/b/01.mp3",
            "/01.mp3",
        ],
    )
    assert lesson is not None
    assert lesson.lesson_id == "unit01"
    assert [(c.path, c.expected_text, c.duration_ms, c.file) for c in lesson.clips] == [
        ("/english/shadowing/lessons/unit01/01.mp3", "one", None, None),
        ("/english/shadowing/lessons/unit01/02.wav", "two", 500, file),
    ]


def test_a_prepared_lesson_is_in_memory(write: Write, lessons: Lessons) -> None:
    """After `prepare`, a clip can be had without its file; before it, not at all."""
    write("01.wav")
    write("02.wav")
    lesson = lessons.first(task())
    assert lesson is not None
    assert [lessons.encoded(clip) for clip in lesson.clips] == [None, None]
    asyncio.run(lessons.prepare(lesson))
    for clip in lesson.clips:
        assert clip.file is not None
        clip.file.unlink()
        encoded = lessons.encoded(clip)
        assert encoded is not None
        assert encoded.duration_ms == clip.duration_ms


def test_a_prepared_lesson_stays_as_long_as_somebody_holds_it(write: Write, tmp_path: Path) -> None:
    """However little memory the cache may use, no clip of a running lesson goes; then all go."""
    write("01.wav")
    write("02.wav")
    lessons = Lessons(tmp_path / "lessons", ClipCache(None, memory_bytes=0))
    lesson = lessons.first(task())
    assert lesson is not None
    lessons.load(lesson)
    lessons.load(lesson)
    clips = lesson.clips
    assert all(lessons.encoded(clip) for clip in clips)
    del lesson
    gc.collect()
    assert [lessons.encoded(clip) for clip in clips] == [None, None]
    assert lessons._prepared == {}
    lessons.close()


def test_a_clip_that_went_bad_leaves_the_others_prepared(write: Write, lessons: Lessons) -> None:
    """Its `encoded` is None; nothing is raised."""
    write("01.wav")
    write("02.wav")
    lesson = lessons.first(task())
    assert lesson is not None
    write("01.wav").write_bytes(b"gone bad")
    with capture_logs() as logs:
        lessons.load(lesson)
    assert [lessons.encoded(clip) is None for clip in lesson.clips] == [True, False]
    assert [log["code"] for log in logs] == ["AUDIO_UNREADABLE"]
