"""Methods that compare texts."""

from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.assess.metrics import Metric
from etude.assess.text_methods import (
    cer_v1,
    completeness_v1,
    distance,
    error_rate,
    text_similarity_v0,
    wer_v1,
)
from etude.assess.words import capped, normalise, words_of

METHODS = (text_similarity_v0, cer_v1, wer_v1, completeness_v1)


def only(found: list[Metric]) -> Metric:
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("expected", "heard", "value"),
    [
        ("The cat.", "the cat", 1.0),
        ("the cat", "<|en|>The cat!<|endoftext|>", 1.0),
        ("the cat", '{"content": "The Cat"}', 1.0),
        ("the cat", "", 0.0),
        ("我喜欢猫。", "我喜欢猫", 1.0),
    ],
)
def test_similarity_looks_at_letters_only(expected: str, heard: str, value: float) -> None:
    """Case, punctuation, tags and JSON around a text change no likeness."""
    assert only(text_similarity_v0(expected, heard, None, 0)).value == value


def test_similarity_of_long_texts_is_not_zeroed_by_the_junk_rule() -> None:
    """Two long texts that nearly agree are nearly alike (`docs/rules.md 25`)."""
    text = "a sentence that goes on and on " * 12
    assert SequenceMatcher(None, normalise(text), normalise(text)[1:]).ratio() < 0.9
    assert only(text_similarity_v0(text, text[1:], None, 0)).value == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("expected", "heard"), [(None, "hello"), ("hello", None), ("...", "hi")])
def test_without_two_texts_nothing_is_said(
    method: object, expected: str | None, heard: str | None
) -> None:
    """A text method that has one text only returns nothing."""
    assert method(expected, heard, None, 0) == []


def test_a_recogniser_that_runs_away_costs_one_at_most() -> None:
    """Error rates are clipped, however long the transcript."""
    runaway = "turn " * 200
    assert only(wer_v1("the cat", runaway, None, 0)).value == 1.0
    assert only(cer_v1("the cat", runaway, None, 0)).value == 1.0
    assert len(capped(words_of(runaway), ["the", "cat"])) == 6


def test_numbers_are_compared_as_they_are_spoken() -> None:
    """Digits and their words are the same; long numbers are read digit by digit."""
    assert only(wer_v1("I am 21", "I am twenty one", None, 0)).value == 0.0
    assert words_of("room 305") == ["room", "three", "zero", "five"]


def test_completeness_names_the_words_that_were_not_heard() -> None:
    """The share of words is of the expected ones, in their order, and the missing are named."""
    metric = only(completeness_v1("one red ball fell", "red ball", None, 0))
    assert metric.value == 0.5
    assert metric.detail == {"words": 4, "not_heard": [0, 3]}


def test_chinese_that_sounds_alike_is_alike() -> None:
    """Other characters with the same sound are no error; another tone is one in `toned` only."""
    pytest.importorskip("pypinyin")
    alike = only(cer_v1("他在家", "她在家", None, 0))
    assert (alike.value, alike.detail["toned"]) == (0.0, 0.0)
    other_tone = only(cer_v1("买书", "卖书", None, 0))
    assert (other_tone.value, other_tone.detail["toned"]) == (0.0, 0.5)


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


@given(words, words)
def test_distance_is_a_distance(first: list[str], second: list[str]) -> None:
    """It is symmetric, zero for equals only, and no more than the longer side."""
    found = distance(first, second)
    assert found == distance(second, first)
    assert (found == 0) == (first == second)
    assert abs(len(first) - len(second)) <= found <= max(len(first), len(second))
    assert 0.0 <= error_rate(first, second) <= 1.0


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_give_values_from_zero_to_one(expected: str, heard: str) -> None:
    """No text, however strange, gives a value out of bounds, or an error."""
    for method in METHODS:
        for metric in method(expected, heard, np.zeros(0, dtype=np.float32), 16_000):
            assert metric.value is not None
            assert 0.0 <= metric.value <= 1.0
