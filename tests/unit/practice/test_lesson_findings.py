import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.i18n import LOCALES, catalogue
from etude.practice.lesson_findings import (
    Finding,
    Sound,
    name_findings,
    sound_findings,
    text_findings,
)
from etude.speech.loudness import Loudness


def told(findings: object) -> list[tuple[str, str, str]]:
    assert hasattr(findings, "__iter__")
    return [(str(one.severity), one.code, one.file) for one in findings]


def sound(name: str, lufs: float | None = -20.0, **more: float | str) -> Sound:
    return Sound(
        name=name,
        sha256=str(more.get("sha256", name)),
        duration_ms=int(more.get("duration_ms", 1_000)),
        loudness=Loudness(
            integrated_lufs=lufs, peak_dbfs=-3.0, clipped_ratio=float(more.get("clipped", 0.0))
        ),
    )


def test_pairs_in_order_are_without_fault() -> None:
    """Clips and texts, two digits from 01, with or without a manifest."""
    names = ["01.mp3", "01.txt", "02.wav", "02.txt", "lesson.json"]
    assert told(name_findings(names)) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["01.mp3"], [("error", "text_missing", "01.mp3")]),
        (["01.txt"], [("error", "audio_missing", "01.txt")]),
        (
            ["01.mp3", "01.txt", "01.MP3"],
            [("error", "name_clash", "01.MP3")],
        ),
        (
            ["01.mp3", "01.wav", "01.txt"],
            [("error", "two_clips_one_text", "01.wav")],
        ),
        (
            ["1.mp3", "1.txt", "10.mp3", "10.txt", "2.mp3", "2.txt"],
            [("error", "number_width", "10.mp3"), ("warning", "number_missing", "10.mp3")],
        ),
        (
            ["01.mp3", "01.txt", "03.mp3", "03.txt"],
            [("warning", "number_missing", "03.mp3")],
        ),
        (["a.mp3", "a.txt"], [("warning", "name_not_numbered", "a.mp3")]),
        (["01.mp3", "01.txt", "notes.docx"], [("warning", "file_ignored", "notes.docx")]),
        (
            ["01.mp3", "01.TXT"],
            [("error", "text_missing", "01.mp3"), ("warning", "file_ignored", "01.TXT")],
        ),
    ],
)
def test_names_that_mean_trouble(names: list[str], expected: list[tuple[str, str, str]]) -> None:
    """Each trouble is told once, with the file that has it."""
    assert told(name_findings(names)) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("春眠不觉晓\n".encode(), []),
        (b"two\nlines\twith a tab", []),
        (b"\xef\xbb\xbfGood morning.", [("warning", "text_bom", "01.txt")]),
        (b" \r\n", [("error", "text_empty", "01.txt")]),
        (b"\xef\xbb\xbf", [("warning", "text_bom", "01.txt"), ("error", "text_empty", "01.txt")]),
        ("早上好".encode("gbk"), [("error", "text_not_utf8", "01.txt")]),
        ("hi".encode("utf-16"), [("error", "text_not_utf8", "01.txt")]),
        (b"a" * 2_001, [("error", "text_too_long", "01.txt")]),
        (b"bell\x07", [("warning", "text_control", "01.txt")]),
    ],
)
def test_texts_that_mean_trouble(data: bytes, expected: list[tuple[str, str, str]]) -> None:
    """Encoding, emptiness, length: what a person cannot see in an editor is told."""
    assert told(text_findings("01.txt", data)) == expected


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (sound("02", duration_ms=200), [("warning", "audio_short", "02")]),
        (sound("02", None), [("error", "audio_silent", "02")]),
        (sound("02", -40.0), [("warning", "audio_quiet", "02")]),
        (sound("02", -27.0), [("warning", "audio_uneven", "02")]),
        (sound("02", -13.0), [("warning", "audio_uneven", "02")]),
        (sound("02", clipped=0.01), [("warning", "audio_clipped", "02")]),
        (sound("02", sha256="01"), [("warning", "audio_twice", "02")]),
        (sound("02", -25.0), []),
    ],
)
def test_sounds_that_mean_trouble(odd: Sound, expected: list[tuple[str, str, str]]) -> None:
    """Each clip by itself, and against the lesson's median."""
    assert told(sound_findings([sound("01"), odd, sound("03")])) == expected


def test_nothing_measured_is_nothing_found() -> None:
    """An empty lesson has no median."""
    assert told(sound_findings([])) == []
    assert told(sound_findings([sound("01", None)])) == [("error", "audio_silent", "01")]


@given(
    names=st.lists(st.sampled_from(["01.mp3", "01.MP3", "1.wav", "02.txt", "a.flac", "x"])),
    data=st.binary(max_size=30),
)
def test_every_finding_can_be_told(names: list[str], data: bytes) -> None:
    """Whatever is found has its sentence in every language."""
    found: list[Finding] = [*name_findings(names), *text_findings("t", data)]
    for one in found:
        for locale in LOCALES:
            assert one.message(locale)
            assert f"lesson.finding.{one.code}" in catalogue(locale)
