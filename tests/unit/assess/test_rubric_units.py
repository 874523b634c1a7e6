"""What the rubrics for reading aloud expect of a method is what the method says."""

import pytest

from etude.assess.metrics import UNIT_RATIO, load_methods
from etude.assess.spoken_methods import (
    PRONUNCIATION,
    SPEECH_RATE,
    UNIT_POINTS,
    UNIT_WORDS_A_MINUTE,
)
from etude.rubric.library import RubricLibrary

UNITS = {UNIT_RATIO: {"ratio"}, UNIT_POINTS: {"points"}} | {
    UNIT_WORDS_A_MINUTE: {"words_per_min", "characters_per_min"}
}
OTHER_THAN_RATIO = {PRONUNCIATION: UNIT_POINTS, SPEECH_RATE: UNIT_WORDS_A_MINUTE}


@pytest.mark.parametrize("rubric_id", ["follow-read-en", "follow-read-zh"])
def test_a_rubric_measures_in_the_units_of_the_methods(rubric_id: str) -> None:
    """A number in another unit would be graded as if it were a hundredfold."""
    signals = RubricLibrary.load(None).get(rubric_id).signals
    measured = {name: signals[name] for name in signals if name in load_methods()}
    assert measured
    for name, signal in measured.items():
        assert signal.unit in UNITS[OTHER_THAN_RATIO.get(name, UNIT_RATIO)], name
