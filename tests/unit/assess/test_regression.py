"""The models that learn from tables."""

import numpy as np
import pytest

from etude.assess.regression import Kernel, Landmarks, Linear, Scaler

random = np.random.default_rng(7)
ROWS = random.normal(size=(200, 5))
TRUTH = ROWS @ np.array([[2.0], [0.0], [-1.0], [0.0], [0.5]]) + 3.0


def test_a_linear_truth_is_learnt() -> None:
    """Ridge with a small penalty predicts what it was made from."""
    model = Linear.fitted(ROWS, TRUTH, 1e-6)
    assert model.predict(ROWS) == pytest.approx(TRUTH, abs=1e-3)


def test_weight_says_who_counts() -> None:
    """Observations without weight change nothing."""
    wrong = np.concatenate([TRUTH, TRUTH + 100])
    weight = np.concatenate([np.ones(200), np.zeros(200)])
    model = Linear.fitted(np.concatenate([ROWS, ROWS]), wrong, 1e-6, weight)
    assert model.predict(ROWS) == pytest.approx(TRUTH, abs=1e-3)


def test_a_curve_is_learnt_by_the_kernel_only() -> None:
    """Kernel ridge follows a curve that no line can."""
    curve = np.abs(ROWS[:, :1])
    fits = [
        model.predict(ROWS)
        for model in (Linear.fitted(ROWS, curve, 1e-3), Kernel.fitted(ROWS, curve, 1.0, 1e-3))
    ]
    linear, kernel = (np.abs(fit - curve).mean() for fit in fits)
    assert kernel < linear / 5


def test_missing_and_wild_values_are_brought_in() -> None:
    """A missing value is the median, a wild one no further out than the 99th percentile."""
    scaler = Scaler.fitted(ROWS)
    strange = ROWS[:1].copy()
    strange[0, 0], strange[0, 1] = np.nan, 1e9
    scaled = scaler.apply(strange)
    assert np.isfinite(scaled).all()
    assert abs(scaled[0, 0]) < 0.5
    assert scaled[0, 1] < 4


def test_landmarks_learn_a_curve_and_are_drawn_alike() -> None:
    """Nearness to some rows is enough for a curve; another fit is the same to the bit."""
    rows = random.normal(size=(2000, 2))
    truth = np.cos(2 * rows[:, :1])
    first, again = (Landmarks.fitted(rows, truth, 1.0, 1e-6) for _ in range(2))
    assert len(first.rows) == 600
    assert np.array_equal(first.predict(rows), again.predict(rows))
    apart = np.abs(first.predict(rows) - truth).mean()
    straight = np.abs(Linear.fitted(rows, truth, 1e-6).predict(rows) - truth).mean()
    assert apart < straight / 5


def test_few_rows_are_all_landmarks() -> None:
    """With fewer rows than landmarks each of them is one."""
    assert len(Landmarks.fitted(ROWS, TRUTH, 0.1, 1e-3).rows) == len(ROWS)


def test_means_that_are_rounding_only_are_nothing() -> None:
    """Columns about zero have a mean of zero, however the sums were split among threads."""
    centred = ROWS - ROWS.mean(axis=0)
    assert np.array_equal(Linear.fitted(centred, TRUTH, 0.1).mean, np.zeros(5))
