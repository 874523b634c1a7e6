"""Alignment by the engine that ships."""

import numpy as np
import pytest

from etude.speech.align import Alignment
from etude.speech.audio import Pcm
from etude.speech.engines import Engines
from etude.speech.errors import SpeechLanguageError

CAT = "The cat sat on the mat."
NAMES = "My name is Steeven Hadi."


def mean_score(found: Alignment | None) -> float:
    assert found is not None
    phones = [phone for word in found.words for phone in word.phones]
    return sum(phone.score / phone.frames for phone in phones) / len(phones)


def test_each_word_has_its_time(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """All words, in order, without overlap, inside the sound, made of their phones."""
    found = engines.aligner().align(spoken[CAT], CAT, language="en")
    assert found is not None
    assert [word.text for word in found.words] == ["the", "cat", "sat", "on", "the", "mat"]
    assert [word.index for word in found.words] == list(range(6))
    assert [phone.name for phone in found.words[1].phones] == ["K", "AE", "T"]
    end_ms = 0
    for word in found.words:
        assert word.start_ms >= end_ms
        end_ms = word.start_ms + word.duration_ms
        assert word.duration_ms == sum(phone.duration_ms for phone in word.phones)
        assert word.score == pytest.approx(sum(phone.score for phone in word.phones))
        assert all(phone.score <= 0 for phone in word.phones)
    assert end_ms <= found.duration_ms


def test_words_of_no_dictionary_are_pronounced(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """Names get a guessed pronunciation and say so."""
    found = engines.aligner().align(spoken[NAMES], NAMES, language="en")
    assert found is not None
    assert [word.text for word in found.words if word.guessed] == ["steeven", "hadi"]


def test_the_text_that_was_read_fits_best(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """The right text scores far above another one of like length, if that is found at all."""
    aligner = engines.aligner()
    right = mean_score(aligner.align(spoken[CAT], CAT, language="en"))
    wrong = aligner.align(spoken[CAT], "Green lamps fell over us", language="en")
    assert right > -2.0
    assert wrong is None or mean_score(wrong) < right - 1.0


def test_numbers_belong_to_the_word_that_was_written(engines: Engines) -> None:
    """Digits are spoken words of one written word; signs and other scripts are none."""
    aligner = engines.aligner()
    words = aligner._pronouncer.spoken_words("Room 21-b, don\u2019t! 你好 … 3")
    assert [(word.text, word.index) for word in words] == [
        ("room", 0),
        ("twenty", 1),
        ("one", 1),
        ("b", 1),
        ("don't", 2),
        ("three", 5),
    ]


def test_no_speech_is_no_alignment(engines: Engines) -> None:
    """Silence, noise, nothing at all, or a text without a word: None, and the next one works."""
    aligner = engines.aligner()
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 3000, 32_000).astype(np.int16).tobytes()
    for samples in (bytes(64_000), noise, b"", bytes(200)):
        sound = Pcm(sample_rate=16_000, samples=samples)
        assert aligner.align(sound, "hello there my friend", language="en") is None
    sound = Pcm(sample_rate=16_000, samples=noise)
    for text in ("", "…", "你好", "x" * 300, "word " * 201):
        assert aligner.align(sound, text, language="en") is None


def test_only_english_is_aligned(engines: Engines) -> None:
    """Another language is refused, not measured as English."""
    sound = Pcm(sample_rate=16_000, samples=bytes(32_000))
    with pytest.raises(SpeechLanguageError):
        engines.aligner().align(sound, "ni hao", language="zh")


def test_numbers_do_not_depend_on_what_came_before(
    engines: Engines, spoken: dict[str, Pcm]
) -> None:
    """In any order, after silence, after new words: the same sound has the same numbers."""
    aligner = engines.aligner()
    first = {text: aligner.align(sound, text, language="en") for text, sound in spoken.items()}
    aligner.align(Pcm(sample_rate=16_000, samples=bytes(64_000)), "blorfing wugs", language="en")
    for text in reversed(list(spoken)):
        assert aligner.align(spoken[text], text, language="en") == first[text]
