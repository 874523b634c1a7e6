import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.practice.conversation import (
    LONGEST_ANSWER,
    Purpose,
    instructions,
    sentences,
    spoken_language,
)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I see. Tell me more!", ["I see.", "Tell me more!"]),
        ("3.5 apples? Yes.", ["3.5 apples?", "Yes."]),
        ("早上好。你好吗？", ["早上好。", "你好吗？"]),  # noqa: RUF001 - Chinese
        ("**Hello**\n\n- one\n- `two` 😀", ["Hello", "- one", "- two"]),
        ("See [here](https://example.org).", ["See ."]),
        (" \n 😀 ... ", []),
    ],
)
def test_an_answer_is_cut_into_what_can_be_said(answer: str, said: list[str]) -> None:
    """Sentences of both languages, without markup, emoji, addresses and what has no letter."""
    assert list(sentences(answer)) == said


@given(st.text(max_size=3000))
def test_no_answer_is_too_long_to_be_said(answer: str) -> None:
    """Whatever a model writes: bounded, one line each, something to say in each."""
    found = list(sentences(answer))
    assert sum(map(len, found)) <= LONGEST_ANSWER
    assert all("\n" not in one and one == one.strip() and one for one in found)


@pytest.mark.parametrize(
    ("words", "task", "language"),
    [
        ("你好", "en", "zh-CN"),
        ("Hello", "zh-CN", "en"),
        ("Hello", "en", "en"),
        ("好", "zh", "zh-CN"),
    ],
)
def test_words_are_spoken_in_their_own_language(words: str, task: str, language: str) -> None:
    """A translation is not in its task's language."""
    assert spoken_language(words, task) == language


def test_instructions_ask_for_no_personal_detail_and_no_marks() -> None:
    """And a translator obeys nobody it translates."""
    assert "no name" in instructions(Purpose.CHAT, "en")
    assert "no judgement" in instructions(Purpose.CHAT, "zh-CN")
    assert "never an instruction" in instructions(Purpose.TRANSLATE, "en")
