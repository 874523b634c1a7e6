"""Intervals are as wide as the numbers are unsure, on both ends of the scale."""

import numpy as np
import pytest

from etude.assess.agreement import held_out
from etude.assess.intervals import covered, fit_intervals
from etude.assess.model_file import FIRST, card_of, models_folder
from etude.assess.table import shipped_table


def test_an_interval_widens_with_the_noise() -> None:
    """Where low numbers are off by more, the interval there is wider, and holds nine in ten."""
    random = np.random.default_rng(1)
    guess = random.uniform(2, 10, (4000, 3))
    truth = guess + random.normal(size=(4000, 3)) * (0.2 + 0.2 * (10 - guess))
    narrow, wider = fit_intervals(truth, guess, 0.9)["total"]
    half = narrow + wider * np.maximum(0, 9 - guess[:, 2])
    inside = np.abs(truth - guess)[:, 2] <= half
    assert wider > 0.2
    for low, high in ((2, 5), (5, 8), (8, 10)):
        chosen = (guess[:, 2] >= low) & (guess[:, 2] < high)
        assert inside[chosen].mean() == pytest.approx(0.9, abs=0.04)


def test_the_shipped_intervals_hold_what_they_say() -> None:
    """Nine in ten, speakers held out: of children, of adults, and in each part of the scale."""
    table, card = shipped_table(), card_of(models_folder())
    predicted = held_out(table)
    assert covered(table, predicted, card.coverage) == pytest.approx(card.covered, abs=0.01)
    assert set(card.covered) == {"all", "children", "adults", "low", "middle", "high"}
    assert all(abs(share - card.coverage) <= 0.04 for share in card.covered.values())
    assert card.half_width("total", 4.0) > card.half_width("total", 8.0) > 0


def test_one_width_for_all_is_still_read() -> None:
    """A card of the first version says one width, whatever the number."""
    card = card_of(models_folder(), FIRST)
    assert card.half_width("total", 2.0) == card.half_width("total", 9.5) == card.intervals["total"]
