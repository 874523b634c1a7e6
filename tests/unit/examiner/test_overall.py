"""What is shown beside an overall score: how much of the rubric it speaks of."""

import re
from fractions import Fraction

import msgspec
import pytest

from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.examining import make_report
from etude.examiner.overall import overall
from etude.examiner.page import render_page
from etude.examiner.report import Report
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric
from etude.testing.samples import sample_lines

RUBRIC = RubricLibrary.load().get("violin-basic")
EVENTS = [decode_line(line) for line in sample_lines("violin-3min")]
ENGLISH = """100 of 100 25% of the rubric was observed, by weight
Not observed: Intonation, Rhythm, Tone. Observed in part: Posture.
The score is only of what was observed. Next step"""
CHINESE = """100 满分 100 25% 的评分内容已观察到（按权重计）
未观察到：音准、节奏、音色。 只观察到一部分：姿态。
分数只代表已观察到的内容。 下一步"""  # noqa: RUF001 - Chinese punctuation
ARC = re.compile(r'<circle class="ring-(\w+)"[^>]*?stroke-dasharray="([\d.]+) 100"')


def made(events: list[Event] = EVENTS, rubric: Rubric = RUBRIC, locale: str = "en") -> Report:
    zh = locale == "zh-CN"
    return make_report(
        events, rubric, locale="zh-CN" if zh else "en", clock=SystemClock(), ids=RandomIds()
    )


def weighed(**weights: float) -> Rubric:
    """The violin's rubric with other weights."""
    dimensions = {
        name: msgspec.structs.replace(one, weight=weights.get(name, one.weight))
        for name, one in RUBRIC.dimensions.items()
    }
    return msgspec.structs.replace(RUBRIC, dimensions=dimensions)


def scaled(low: int, high: int) -> Rubric:
    """The violin's rubric on another scale."""
    dimensions = {
        name: msgspec.structs.replace(one, scale=(low, high))
        for name, one in RUBRIC.dimensions.items()
    }
    return msgspec.structs.replace(RUBRIC, dimensions=dimensions)


def words(page: str) -> str:
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(text.split())


def test_what_was_not_observed_is_named() -> None:
    """By the titles of dimensions: those that nothing is known of, and those known in part."""
    found = overall(made())
    assert (found.percent, found.seen) == (75, 75.0)
    assert (found.unseen, found.partly) == (("Rhythm",), ("Posture",))


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en", ENGLISH),
        ("zh-CN", CHINESE),
    ],
)
def test_full_marks_for_a_quarter_are_not_shown_as_the_whole(locale: str, said: str) -> None:
    """Beside the score, before anything else: how much it is of, and what it is not of."""
    report = made(EVENTS[:3], locale=locale)
    assert report.examiner_assessment.overall_score == 100
    assert " ".join(said.split()) in words(render_page(report, EVENTS[:3], RUBRIC))


def test_the_ring_is_filled_as_far_as_was_observed() -> None:
    """A full score of a quarter fills a quarter; 89 of three quarters, its part of them."""
    quarter = render_page(made(EVENTS[:3]), EVENTS[:3], RUBRIC)
    assert ARC.findall(quarter) == [("seen", "25.0"), ("front", "25.0")]
    assert ARC.findall(render_page(made(), EVENTS, RUBRIC)) == [("seen", "75.0"), ("front", "66.8")]


def test_the_ring_says_to_a_reader_of_the_screen_what_it_shows() -> None:
    """Score, scale and observed share."""
    page = render_page(made(EVENTS[:3]), EVENTS[:3], RUBRIC)
    label = "Overall: 100 of 100. 25% of the rubric was observed, by weight"
    assert f'aria-label="{label}"' in page


def test_without_a_score_nothing_is_filled() -> None:
    """Nothing observed: every dimension is named, and there is no word of a score's scope."""
    page = render_page(made(EVENTS[:2]), EVENTS[:2], RUBRIC)
    assert ARC.findall(page) == []
    said = words(page)
    assert "no score 0% of the rubric was observed, by weight" in said
    assert "Not observed: Intonation, Rhythm, Tone, Posture." in said
    assert "The score is only" not in said


@pytest.mark.parametrize(
    ("weights", "percent"),
    [({"rhythm": 0.001}, 99), ({"rhythm": 1000}, 1)],
)
def test_rounding_hides_no_part(weights: dict[str, float], percent: int) -> None:
    """Nearly all is never 100 %, next to nothing never 0 %."""
    assert overall(made(rubric=weighed(**weights))).percent == percent


def test_a_score_is_of_its_scale() -> None:
    """A rubric that goes to 10 gives 9 of 10, and fills the ring as 9 of 10 do."""
    report = made(rubric=scaled(0, 10))
    found = overall(report)
    assert report.examiner_assessment.overall_score == 9
    assert (found.highest, found.reached) == (10.0, 67.5)
    assert "9 of 10 75%" in words(render_page(report, EVENTS, scaled(0, 10)))


def test_a_scale_may_begin_anywhere() -> None:
    """5 of 1 to 5 is a full ring; the lowest score of all fills nothing."""
    report = made(EVENTS[:3], rubric=scaled(1, 5))
    assert report.examiner_assessment.overall_score == 5
    assert overall(report).reached == overall(report).seen == 25.0
    lowest = msgspec.structs.replace(report.examiner_assessment, overall_score=1)
    assert overall(msgspec.structs.replace(report, examiner_assessment=lowest)).reached == 0.0


def test_scales_that_differ_are_weighed_as_scores_are() -> None:
    """The best overall score is the weighed mean of the best ones that were scored."""
    report = made()
    known = dict(report.uncertainty)
    known["posture"] = msgspec.structs.replace(known["posture"], scale=(0, 10), weight=2.0)
    mixed = msgspec.structs.replace(report, uncertainty=known)
    assert overall(mixed).highest == float(Fraction(100 + 100 + 2 * 10, 4))
