"""The five primitives, against values computed by hand."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.rubric.model import Signal
from etude.rubric.primitives import Observation, exact, grade, value_of

OBSERVE = {"event_types": ["audio_observation"]}


def signal(primitive: str, **fields: Any) -> Signal:
    return msgspec.convert({"primitive": primitive, "observe": OBSERVE, **fields}, Signal)


def seen(*values: tuple[object, str], of: Signal) -> list[Observation]:
    """Observations of measured values, each with its confidence as a decimal."""
    return [
        Observation(
            event_id=f"e{number}",
            measured=measured,
            grade=grade(of, measured),
            weight=Fraction(confidence),
        )
        for number, (measured, confidence) in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("fields", "measured", "expected"),
    [
        ({}, 0.91, Fraction(91, 100)),
        ({}, 1.7, Fraction(1)),
        ({}, True, Fraction(1)),
        ({}, "good", None),
        ({"grade": {"worst": 0.4, "best": 0}}, 0.1, Fraction(3, 4)),
        ({"grade": {"worst": 0.4, "best": 0}}, 0.9, Fraction(0)),
        ({"grade": {"worst": 0, "best": 1}}, True, None),
        ({"grade": {"words": {"fair": 0.5}}}, "fair", Fraction(1, 2)),
        ({"grade": {"words": {"fair": 0.5}}}, "odd", None),
        ({"polarity": {"positive": False, "issue": True}}, False, Fraction(1)),
        ({"polarity": {"positive": False, "issue": True}}, True, Fraction(0)),
        ({"polarity": {"positive": {"at_least": 0.8}}}, 0.8, Fraction(1)),
        ({"polarity": {"positive": {"at_least": 0.8}}}, 0.79, Fraction(0)),
        ({"polarity": {"positive": {"at_least": 0.8}, "issue": {"at_most": 0.5}}}, 0.7, None),
        ({"polarity": {"positive": 3}}, 3, Fraction(1)),
    ],
)
def test_a_measured_value_is_graded(
    fields: dict[str, Any], measured: object, expected: Fraction | None
) -> None:
    """Numbers along a line, words by their table, yes and no by polarity; else nothing at all."""
    assert grade(signal("quality", **fields), measured) == expected


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(100, 1), (110, 1), (120, 1), (90, Fraction(1, 2)), (80, 0), (60, 0), (130, Fraction(3, 4))],
)
def test_timing_falls_off_outside_its_band(rate: int, expected: Fraction) -> None:
    """100 to 120 a minute is 1; the value falls to 0 at 80 and at 160."""
    band = {"at_least": 100, "at_most": 120, "zero_below": 80, "zero_above": 160}
    assert grade(signal("timing", band=band), rate) == expected


def test_a_quality_is_the_mean_weighed_by_confidence() -> None:
    """(0.9 * 0.8 + 0.5 * 0.4) / (0.8 + 0.4) = 23/30, exactly."""
    quality = signal("quality")
    observations = seen((0.9, "0.8"), (0.5, "0.4"), of=quality)
    assert value_of(quality, observations) == Fraction(23, 30)
    assert value_of(quality, observations, "minimum") == Fraction(1, 2)
    assert value_of(quality, observations, "best") == Fraction(9, 10)
    assert value_of(quality, observations, "latest") == Fraction(1, 2)


def test_nothing_observed_is_no_value() -> None:
    """Not 0: neither without observations nor when none of them weighs anything."""
    quality = signal("quality")
    assert value_of(quality, []) is None
    assert value_of(quality, seen((0.9, "0"), of=quality)) is None


def test_presence_counts_up_to_what_is_asked() -> None:
    """Twice of three times is two thirds; more than asked is not more than 1."""
    presence = signal("presence", at_least=3)
    twice = seen((True, "1"), (True, "0.6"), (False, "1"), of=presence)
    assert value_of(presence, twice) == Fraction(2, 3)
    assert value_of(presence, [*twice, *twice, *twice]) == 1


def test_a_sequence_is_its_longest_part_in_order() -> None:
    """Of wet, soap, rub, rinse, dry, three were done in order: 3/5; repeats do no harm."""
    steps = ["wet", "soap", "rub", "rinse", "dry"]
    sequence = signal("sequence", order=steps)
    done = [("wet", "1"), ("rub", "1"), ("soap", "1"), ("rub", "0.7"), ("dry", "0")]
    assert value_of(sequence, seen(*done, of=sequence)) == Fraction(3, 5)


def test_one_violation_breaks_safety() -> None:
    """All observations at 1 is 1; a single one below is 0, whatever the others say."""
    safety = signal("safety")
    assert value_of(safety, seen((True, "1"), (True, "0.5"), of=safety)) == 1
    assert value_of(safety, seen((True, "1"), (False, "0.5"), of=safety)) == 0


def test_decimals_count_as_written() -> None:
    """A tenth is a tenth, not the nearest binary number."""
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-7) == Fraction(1, 10**7)
    assert exact(7) == 7


@given(
    grades=st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=8),
    index=st.integers(0, 7),
    better=st.floats(0, 1),
    aggregate=st.sampled_from(["confidence_weighted_mean", "minimum", "latest", "best"]),
)
def test_a_better_observation_never_lowers_a_value(
    grades: list[tuple[float, float]], index: int, better: float, aggregate: Any
) -> None:
    """Whichever observation gets better: the value does not fall, and stays within 0 and 1."""
    quality = signal("quality")
    index %= len(grades)
    raised = list(grades)
    raised[index] = (max(better, grades[index][0]), grades[index][1])
    before, after = (
        value_of(
            quality,
            [
                Observation(event_id="e", measured=v, grade=exact(v), weight=exact(w))
                for v, w in each
            ],
            aggregate,
        )
        for each in (grades, raised)
    )
    assert before is not None
    assert after is not None
    assert 0 <= before <= after <= 1
