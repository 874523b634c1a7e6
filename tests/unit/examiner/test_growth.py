"""Growth: what may be compared, and what is said of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from etude.examiner.growth import growth_of
from etude.examiner.journey import EarlierSession, Measure
from etude.examiner.report import GrowthIndicator
from etude.rubric.library import RubricLibrary

LIBRARY = RubricLibrary.load()
VIOLIN = LIBRARY.get("violin-basic")
CPR = LIBRARY.get("cpr-bls")


def earlier(number: int, metric: str, value: str, **changed: Any) -> EarlierSession:
    fields: dict[str, Any] = {
        "session_id": f"s-{number}",
        "journey_id": "j",
        "started_at": datetime(2026, 2, number, tzinfo=UTC),
        "rubric": VIOLIN.key,
        "overall_score": None,
        "measures": {metric: Measure(value=value, methods=("m_v1",))},
    }
    return EarlierSession(**fields | changed)


def pitch(now: str, *before: str, locale: str = "en") -> GrowthIndicator:
    history = [earlier(n, "pitch_accuracy", value) for n, value in enumerate(before, 1)]
    own = {"pitch_accuracy": Measure(value=now, methods=("m_v1",))}
    return growth_of("now", own, history, VIOLIN, locale)[0]


def test_five_sessions_in_words() -> None:
    """From 72 % to 91 % is 19 percentage points, in both languages; values are shown."""
    values = ("18/25", "3/4", "4/5", "17/20")
    found = pitch("91/100", *values)
    assert (found.trend, found.sessions_compared) == ("improving", 5)
    assert found.detail == (
        "Intonation over the last 5 sessions: from 72% to 91%, 19 percentage points better."
    )
    assert [one.value for one in found.values] == [0.72, 0.75, 0.8, 0.85, 0.91]
    assert pitch("91/100", *values, locale="zh-CN").detail == (
        "近 5 次练习音准从 72% 到 91%，进步 19 个百分点。"  # noqa: RUF001 - as it is written
    )


def test_fewer_than_three_are_not_enough() -> None:
    """This session counts: with two others something is said, with one nothing."""
    assert pitch("9/10", "1/2").trend == "not_enough_yet"
    assert "not enough yet" in pitch("9/10", "1/2").detail
    assert pitch("9/10", "1/2", "1/2").trend == "improving"


@pytest.mark.parametrize(
    ("now", "trend"),
    [("82/100", "steady"), ("821/1000", "improving"), ("78/100", "steady"), ("3/4", "declining")],
)
def test_a_change_counts_beyond_the_error(now: str, trend: str) -> None:
    """The rubric says 0.02 for intonation: exactly that much is no change."""
    assert pitch(now, "4/5", "4/5").trend == trend


def test_lower_can_be_better() -> None:
    """Pauses of a resuscitation: 15 s, then 9 s, is better by 6 s."""
    history = [
        earlier(number, "hands_off_pause", value, rubric=CPR.key)
        for number, value in ((1, "15"), (2, "12"))
    ]
    own = {"hands_off_pause": Measure(value="9", methods=("m_v1",))}
    found = growth_of("now", own, history, CPR, "en")
    (pauses,) = [one for one in found if one.metric == "hands_off_pause"]
    assert pauses.trend == "improving"
    assert pauses.detail == "Pauses over the last 3 sessions: from 15 s to 9 s, 6 s better."


@pytest.mark.parametrize(
    "changed",
    [
        {"rubric": "violin-basic@v1.1"},
        {"measures": {}},
        {"measures": {"pitch_accuracy": Measure(value="1/2", methods=("m_v2",))}},
    ],
)
def test_what_cannot_be_compared_is_left_out(changed: dict[str, Any]) -> None:
    """Another rubric or version, another method, or no number."""
    history = [earlier(1, "pitch_accuracy", "1/2"), earlier(2, "pitch_accuracy", "1/2", **changed)]
    own = {"pitch_accuracy": Measure(value="9/10", methods=("m_v1",))}
    assert growth_of("now", own, history, VIOLIN, "en")[0].sessions_compared == 2


def test_what_was_not_observed_has_no_trend() -> None:
    """However many sessions there were before."""
    history = [earlier(number, "pitch_accuracy", "1/2") for number in range(1, 5)]
    found = growth_of("now", {}, history, VIOLIN, "en")[0]
    assert (found.trend, found.values, found.sessions_compared) == ("not_observed", (), 0)
