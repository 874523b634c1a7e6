"""Where the threshold for hints lies, and what is said of it."""

import numpy as np
import pytest

from etude.assess.hints import PRECISION, RatedWords, fit_hints
from etude.assess.model_file import card_of, models_folder


def test_the_threshold_keeps_false_alarms_few() -> None:
    """As many words as possible are hinted at while three hints in four are right."""
    random = np.random.default_rng(4)
    bad = random.random(4000) < 0.1
    values = np.where(bad, random.normal(6, 1.5, 4000), random.normal(9, 1, 4000))
    words = RatedWords(np.where(bad, 5.0, 10.0), values, random.random(4000) < 0.5)
    threshold, told = fit_hints(words)
    hinted = values < threshold
    assert bad[hinted].mean() == pytest.approx(PRECISION, abs=0.01)
    assert told["precision"] == pytest.approx(PRECISION, abs=0.01)
    assert told["children_words"] + told["adults_words"] == told["words"] == 4000
    assert told["recall_at_precision_0.6"] >= told["recall_at_precision_0.8"]


def test_words_without_a_rating_count_for_nothing() -> None:
    """Of words that nobody rated nothing is learnt; without any there is no hint."""
    assert fit_hints(RatedWords.of([(float("nan"), 3.0, True)])) == (0.0, {})


def test_the_shipped_threshold_is_precise_and_finds_half() -> None:
    """The model that ships: three hints in four right, half of the badly said words found."""
    told = card_of(models_folder()).word_hints
    assert told["precision"] >= 0.74
    assert told["recall"] >= 0.5
    assert {"children_precision", "children_recall"} <= set(told)
