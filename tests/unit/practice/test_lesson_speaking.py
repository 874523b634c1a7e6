import json
import math
from array import array
from pathlib import Path

import pytest

from etude.files import Files
from etude.practice.lesson_build import check_lesson, write_manifest
from etude.practice.lesson_errors import LessonUnwritableError, LessonVoiceLanguageError
from etude.practice.lesson_speaking import lines_to_speak, speak_lines
from etude.speech.audio import Pcm, read_audio
from etude.speech.loudness import measure
from etude.speech.recognise import EngineCard
from etude.speech.synthesise import TARGET_LUFS, Speech
from etude.testing.bad_disks import FullFiles

WORDS = {"01": "Good morning.", "02": "How are you?", "03": "Good-bye."}


class Voice:
    """A voice that hums, each time otherwise, and remembers what it was asked to say."""

    def __init__(self, *languages: str, breaks_at: int = 99) -> None:
        self.said: list[tuple[str, str]] = []
        self.breaks_at = breaks_at
        self.card = EngineCard(
            engine="hum/1",
            model="hum/a",
            licence="CC0",
            languages=languages or ("en",),
            sample_rate=16_000,
            releases_gil=True,
            notice="A hum.",
        )

    def synthesise(self, text: str, *, language: str, rate: float = 1.0) -> Speech:
        del rate
        self.said.append((text, language))
        if len(self.said) == self.breaks_at:
            raise KeyboardInterrupt
        hz = 200 + 7 * len(self.said) + len(text)
        level = 500 * len(self.said)
        samples = array("h", (round(level * math.sin(n * hz / 2500)) for n in range(16_000)))
        return Speech(
            sound=Pcm(sample_rate=16_000, samples=samples.tobytes()),
            language=language,
            engine=self.card.engine,
            model=self.card.model,
            licence=self.card.licence,
            notice=self.card.notice,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "greetings"
    made.mkdir()
    for stem, words in WORDS.items():
        (made / f"{stem}.txt").write_text(words + "\n", "utf-8")
    return made


def speak(folder: Path, voice: Voice, kept: Path | None = None) -> int:
    return speak_lines(lines_to_speak(check_lesson(folder)), voice, kept, Files())


def test_missing_clips_are_spoken_levelled_and_signed(folder: Path) -> None:
    """Each text has its clip, equally loud; lesson.json names voice, engine and licence."""
    voice, told = Voice(), []
    lines = lines_to_speak(check_lesson(folder))
    count = speak_lines(lines, voice, None, Files(), lambda line, n: told.append((n, line.text)))
    assert count == 3
    assert told == list(enumerate(WORDS.values(), 1))
    checked = check_lesson(folder)
    assert checked.findings == ()
    for clip in checked.manifest.clips:
        assert clip.loudness_lufs == pytest.approx(TARGET_LUFS, abs=0.5)
    shown = json.loads(write_manifest(checked, Files()).read_bytes())
    assert [clip["spoken_by"] for clip in shown["clips"]] == [
        {
            "engine": "hum/1",
            "model": "hum/a",
            "language": "en",
            "licence": "CC0",
            "notice": "A hum.",
        }
    ] * 3


def test_recordings_stay_what_they_are(folder: Path) -> None:
    """Only what is missing is spoken; a recording is not touched, and no voice is named for it."""
    speak(folder, Voice())
    recorded = Path(__file__).parents[3] / (
        "src/etude/practice/sample_lessons/english_learning/shadowing/lessons/greetings/01.mp3"
    )
    (folder / "02.mp3").write_bytes(recorded.read_bytes())
    (folder / "03.mp3").unlink()
    voice = Voice()
    assert speak(folder, voice) == 1
    assert voice.said == [("Good-bye.", "en")]
    assert (folder / "02.mp3").read_bytes() == recorded.read_bytes()
    by = [clip.spoken_by for clip in check_lesson(folder).manifest.clips]
    assert [one is None for one in by] == [False, True, False]


def test_what_was_spoken_once_is_kept(folder: Path, tmp_path: Path) -> None:
    """The same text gives the same bytes; another text or another voice is spoken anew."""
    kept = tmp_path / "kept"
    assert speak(folder, Voice(), kept) == 3
    before = {path.name: path.read_bytes() for path in folder.glob("*.mp3")}
    for path in folder.glob("*.mp3"):
        path.unlink()
    (folder / "02.txt").write_text("How old are you?")
    voice = Voice()
    assert speak(folder, voice, kept) == 1
    assert voice.said == [("How old are you?", "en")]
    assert (folder / "01.mp3").read_bytes() == before["01.mp3"]
    (folder / "01.mp3").unlink()
    other = Voice("en", "fr")
    other.card = EngineCard(
        engine="hum/2",
        model="hum/a",
        licence="",
        languages=("*",),
        sample_rate=1,
        releases_gil=True,
    )
    assert speak(folder, other, kept) == 1


def test_a_language_that_the_voice_does_not_know_is_told_before_anything_is_spoken(
    folder: Path,
) -> None:
    """Chinese among English texts: nothing is written, and the clips are named."""
    (folder / "02.txt").write_text("你好", "utf-8")
    voice = Voice("en")
    with pytest.raises(LessonVoiceLanguageError) as told:
        speak(folder, voice)
    assert told.value.params["clips"] == "02.mp3"
    assert voice.said == []
    assert not list(folder.glob("*.mp3"))
    assert speak(folder, Voice("*")) == 3


def test_a_lesson_with_other_errors_is_mended_first(folder: Path) -> None:
    """No voice is asked while a text is empty or a clip has none."""
    (folder / "04.txt").touch()
    assert lines_to_speak(check_lesson(folder)) == ()


def test_who_is_interrupted_goes_on(folder: Path, tmp_path: Path) -> None:
    """Clips before the interruption stand, whole; the next run speaks the others only."""
    with pytest.raises(KeyboardInterrupt):
        speak(folder, Voice(breaks_at=2), tmp_path / "kept")
    assert [path.name for path in folder.glob("*.mp3")] == ["01.mp3"]
    assert read_audio(folder / "01.mp3").duration_ms == pytest.approx(1000, abs=100)
    assert speak(folder, Voice(), tmp_path / "kept") == 2


def test_a_full_disk_is_told(folder: Path) -> None:
    """The path and the system's reason; nothing half-written is left."""
    lines = lines_to_speak(check_lesson(folder))
    with pytest.raises(LessonUnwritableError):
        speak_lines(lines, Voice(), folder / "kept", FullFiles())
    assert not list(folder.glob("*.mp3"))


def test_silence_of_a_voice_is_found_by_the_check(folder: Path) -> None:
    """A voice that says nothing makes a lesson with errors, never a manifest."""
    voice = Voice()
    voice.synthesise = lambda text, **_: Speech(
        sound=Pcm(sample_rate=16_000, samples=bytes(32_000)),
        language="en",
        engine=text,
        model="m",
        licence="l",
    )
    speak(folder, voice)
    checked = check_lesson(folder)
    assert {one.code for one in checked.findings} >= {"audio_silent"}
    assert measure(read_audio(folder / "01.mp3")).integrated_lufs is None
