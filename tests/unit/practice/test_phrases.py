import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.practice.phrases import Phrases, is_echo, normalise


@pytest.mark.parametrize(
    ("said", "phrase"),
    [
        ("Start reading!", "start reading"),
        ("\uff33\uff34art\u3000reading", "start reading"),
        ("开始跟读。", "开始跟读"),
        (" 开始\uff0c跟读\uff1f ", "开始跟读"),
        ("<|zh|><|NEUTRAL|>开始跟读。", "开始跟读"),
        ('{"speaker": "x", "content": "开始跟读"}', "开始跟读"),
    ],
)
def test_case_width_punctuation_and_wrapping_do_not_matter(said: str, phrase: str) -> None:
    """A phrase is known however it was written or recognised."""
    assert said in Phrases([phrase])


@pytest.mark.parametrize("said", ["", "。", "I want to stop reading now", "跟读"])
def test_only_the_whole_phrase_counts(said: str) -> None:
    """A sentence that holds the words is a sentence: the lesson may say them."""
    assert said not in Phrases(["stop reading", "开始跟读", "!"])


def test_the_toys_own_prompt_is_an_echo() -> None:
    """Nearly the prompt is an echo; something else is not, and silence never is."""
    assert is_echo("Listen then read it after me", "Listen, then read it after me.")
    assert not is_echo("Good morning", "Listen, then read it after me.")
    assert not is_echo("", "")


@given(st.text())
def test_only_letters_and_digits_are_compared(said: str) -> None:
    """What is left has neither spaces nor punctuation, whatever came in."""
    once = normalise(said)
    assert all(one.isalnum() or not one.isascii() for one in once)
    assert not any(one.isspace() for one in once)
