import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.practice.numerals import digits_in, number_in
from etude.practice.questions import IDIOMS, Question, ask
from etude.practice.tasks import Activity

INLINE = (Activity.REVERSE_DIGITS, Activity.MENTAL_ARITHMETIC, Activity.IDIOM_CHAIN)


@pytest.mark.parametrize("activity", INLINE)
@given(step=st.integers(0, 50), seed=st.integers())
def test_the_answer_to_a_question_is_right(activity: Activity, step: int, seed: int) -> None:
    """Whatever is asked, its own answer matches and an empty one does not."""
    question = ask(activity, step, random.Random(seed))
    assert question.match(question.answer) == 1
    assert question.match("") == 0


@pytest.mark.parametrize("activity", INLINE)
def test_the_same_chance_asks_the_same(activity: Activity) -> None:
    """Questions come from the chance that is given, and from nothing else."""
    one, other = (
        [ask(activity, step, chance) for step in range(9)]
        for chance in (random.Random(3), random.Random(3))
    )
    assert one == other


def test_rows_of_digits_grow() -> None:
    """From three digits to seven."""
    lengths = [
        len(ask(Activity.REVERSE_DIGITS, step, random.Random(1)).answer) for step in range(12)
    ]
    assert (lengths[0], lengths[-1]) == (3, 7)
    assert lengths == sorted(lengths)


def test_every_idiom_goes_on_from_the_one_before() -> None:
    """Four characters each; the continuation begins with the last one."""
    for idiom, following in IDIOMS.items():
        assert len(idiom) == len(following) == 4
        assert (idiom[-1], idiom != following) == (following[0], True)


@pytest.mark.parametrize(
    ("said", "matched"),
    [("人山人海", 1), ("人山人海。", 1), ("海阔天空", 0), ("一鸣惊人", 0), ("人", 0), ("", 0)],
)
def test_an_idiom_chain_takes_whatever_goes_on(said: str, matched: int) -> None:
    """Four characters that begin with the last one, and are not the same again."""
    question = Question(activity=Activity.IDIOM_CHAIN, text="一鸣惊人", answer="人山人海")
    assert question.match(said) == matched


@pytest.mark.parametrize(
    ("said", "digits"),
    [
        ("5 1 3", "513"),
        ("513", "513"),
        ("五一三", "513"),
        ("幺两〇", "120"),
        ("five one oh", "510"),
        ("five, 1 三", "513"),
        ("ten hundred 十", ""),
        ("nothing", ""),
    ],
)
def test_digits_are_understood(said: str, digits: str) -> None:
    """Figures, Chinese and English, mixed."""
    assert digits_in(said) == digits


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("42", 42),
        ("四十二", 42),
        ("十二", 12),
        ("两百零三", 203),
        ("forty two", 42),
        ("Forty-two.", 42),
        ("one hundred and five", 105),
        ("is it 3? no, 4", 4),
        ("等于九十九", 99),
        ("seventeen", 17),
        ("123456", None),
        ("I do not know", None),
        ("", None),
    ],
)
def test_numbers_are_understood(said: str, number: int | None) -> None:
    """The last number that somebody said."""
    assert number_in(said) == number


@given(st.integers(0, 9_999))
def test_a_number_in_figures_is_itself(number: int) -> None:
    """Every number of up to four figures."""
    assert number_in(f"{number}") == number
    assert digits_in(" ".join(str(number))) == str(number)


@given(st.text())
def test_any_text_can_be_an_answer(said: str) -> None:
    """Nothing that is recognised raises."""
    for activity in INLINE:
        assert ask(activity, 0, random.Random(0)).match(said) in {0, 1}
