"""The citation check: invented events, numbers and judgements of the person are refused."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.clock import RandomIds, SystemClock
from etude.examiner.citations import Evidence, check_narrative, evidence_of
from etude.examiner.examining import make_report
from etude.examiner.numerals import numerals
from etude.rubric.library import RubricLibrary
from etude.testing.builders import session

TEMPLATE = (
    "Intonation: 91% (bar 3). Intonation over the last 5 sessions: from 72% to 91%, "
    "19 percentage points better."
)
EVIDENCE = Evidence(
    event_ids=frozenset({"e006", "s-1-00042", "a"}),
    numbers=frozenset(map(Fraction, (3, 5, 91))) | {Fraction(91, 100)},
    percents=frozenset(map(Fraction, (72, 91, 19))),
    template=TEMPLATE,
)


@pytest.mark.parametrize(
    "text",
    [
        TEMPLATE,
        "Bar 3 was in tune to 91% [e006].",
        "The third bar stood at ninety-one percent, up nineteen percentage points.",
        "Over five sessions it rose from 72 percent to 91 percent; see e006 and s-1-00042.",
        "第三小节音准达到百分之九十一，进步十九个百分点。",  # noqa: RUF001 - as it is written
        "第 3 小节音准 91%，近五次练习都在进步【e006】。",  # noqa: RUF001 - as it is written
        "音准一直稳定，下一步慢一点。",  # noqa: RUF001 - as it is written
        "An accuracy of 0.91 in this one bar, bar 3.",
    ],
)
def test_what_the_evidence_says_may_be_said(text: str) -> None:
    """Digits and words, percent and points, in both languages."""
    assert check_narrative(text, EVIDENCE) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Bar 3 was in tune to 93%.", "unknown_number"),
        ("Bar 4 was in tune.", "unknown_number"),
        ("The fourth bar was in tune.", "unknown_number"),
        ("Ninety-three percent were right.", "unknown_number"),
        ("It went up by 3%.", "unknown_number"),
        ("第四小节音准很好。", "unknown_number"),
        ("百分之九十三。", "unknown_number"),
        ("提高了九成。", "unknown_number"),
        ("进步二十个百分点。", "unknown_number"),
        ("提高了一半。", "unknown_number"),
        ("It took a dozen bars.", "unknown_number"),
        ("Twice as good.", "unknown_number"),
        ("Bar ４ was in tune.", "unknown_number"),  # noqa: RUF001 - as it is written
        ("Bar ④ was in tune.", "unknown_number"),
        ("1,091 notes were right.", "unknown_number"),
        ("See e007.", "unknown_event"),
        ("See [that one].", "unknown_event"),
        ("See [e006, e9].", "unknown_event"),
        ("See 7b1c2d3e-aaaa-4bbb-8ccc-123456789abc.", "unknown_event"),
        ("See bow_hold_check.", "unknown_event"),
        ("You are talented.", "person"),
        ("You seemed anxious in bar 3.", "person"),
        ("你很聪明。", "person"),
        ("这说明情绪紧张。", "person"),
        ("<b>Bar 3</b>", "markup"),
        ("See https://example.org", "markup"),
        ("", "empty"),
        ("Well played. " * 60, "too_long"),
    ],
)
def test_what_is_made_up_is_refused(text: str, reason: str) -> None:
    """Each with the reason."""
    assert reason in {one.reason for one in check_narrative(text, EVIDENCE)}


@pytest.mark.parametrize("name", ["97", "97%", "97bpm", "ninety-seven", "九十七", "97分"])
def test_an_event_that_is_called_like_a_number_is_no_number(name: str) -> None:
    """Cited in brackets it is an event; bare, it is a number that nothing stands behind."""
    named = msgspec.structs.replace(EVIDENCE, event_ids=EVIDENCE.event_ids | {name})
    assert check_narrative(f"Bar 3 was in tune [{name}].", named) == []
    assert check_narrative(f"Bar 3 was in tune, {name}.", named) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("一百零三", ["103"]),
        ("两千零五十", ["2050"]),
        ("三万二千", ["32000"]),
        ("十二", ["12"]),
        ("零点九一", ["91/100"]),
        ("百分之十二点五", ["25/2"]),
        ("九成", ["90"]),
        ("统一、唯一、一起", []),
        ("one hundred and five", ["105"]),
        ("twenty-five", ["25"]),
        ("ten, five", ["10", "5"]),
        ("two hundred thousand", ["200000"]),
        ("at the second bar", ["2"]),
        ("one second", ["1"]),
        ("half", ["1/2"]),
        ("this one", []),
        ("3.5 and 1,200", ["7/2", "1200"]),
        ("½", ["1", "2"]),
    ],
)
def test_numbers_are_read(text: str, expected: list[str]) -> None:
    """In digits and words of both languages."""
    assert sorted(one.number for one in numerals(text)) == sorted(map(Fraction, expected))


@given(st.integers(0, 99_999))
def test_no_number_outside_the_evidence_passes(number: int) -> None:
    """Whatever the number and however it is written, it has to be in the evidence."""
    for written in (str(number), f"{number:,}", han(number), f"第{han(number)}小节"):
        accepted = check_narrative(f"{written} .", EVIDENCE) == []
        assert accepted == (number in {3, 5, 91, 72, 19}), written


def han(number: int) -> str:
    digits = "零一二三四五六七八九"
    if number < 10:
        return digits[number]
    text, zero = "", False
    for unit, name in ((10_000, "万"), (1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, unit)
        if digit:
            text += ("零" if zero and text else "") + digits[digit] + name
            zero = False
        else:
            zero = True
    return text


@given(st.text(max_size=400))
def test_any_text_is_judged(text: str) -> None:
    """No text breaks the check."""
    check_narrative(text, EVIDENCE)
    numerals(text)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
@pytest.mark.parametrize("seed", range(4))
def test_the_templates_pass_their_own_check(locale: str, seed: int) -> None:
    """Whatever the session, a template says only what is in its evidence."""
    for rubric in RubricLibrary.load().rubrics:
        made = make_report(
            session(60, seed=seed),
            rubric,
            locale="zh-CN" if locale == "zh-CN" else "en",
            clock=SystemClock(),
            ids=RandomIds(),
        )
        for item in made.examiner_assessment.evidence_chain:
            assert check_narrative(item.narrative, evidence_of(item, made)) == []
