"""Three ways to learn numbers from a table, each small, exact and the same on every machine.

All are solved in closed form; what is drawn, is drawn from a seeded generator. Numpy only: what is
trained with nothing else can be used with nothing else.
"""

from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[np.float64]]

_LEAST_SD: Final = 1e-6
_CLIP: Final = 0.01
_LANDMARKS: Final = 600
_SEED: Final = 762
_STRAIGHT: Final = 0.1
_DUST: Final = 1e-12


class Scaler(msgspec.Struct, frozen=True):
    """Brings columns to a common scale: medians for what is missing, clipped, standardised."""

    median: Floats
    low: Floats
    high: Floats
    mean: Floats
    sd: Floats

    @classmethod
    def fitted(cls, rows: Floats) -> Self:
        """Learn the scale of a table, in which nan is a missing value."""
        median = np.nanmedian(rows, axis=0)
        filled = np.where(np.isnan(rows), median, rows)
        low, high = np.quantile(filled, [_CLIP, 1 - _CLIP], axis=0)
        clipped = np.clip(filled, low, high)
        return cls(median, low, high, clipped.mean(axis=0), clipped.std(axis=0) + _LEAST_SD)

    def apply(self, rows: Floats) -> Floats:
        """Return rows at the common scale."""
        filled = np.where(np.isnan(rows), self.median, rows)
        scaled: Floats = (np.clip(filled, self.low, self.high) - self.mean) / self.sd
        return scaled


class Linear(msgspec.Struct, frozen=True):
    """A linear model: a column of weights for each target."""

    weights: Floats
    mean: Floats
    targets: Floats

    @classmethod
    def fitted(
        cls, rows: Floats, targets: Floats, penalty: float, weight: Floats | None = None
    ) -> Self:
        """Fit by ridge regression.

        Args:
            rows: one observation each, scaled.
            targets: of the same length, a column each.
            penalty: on the weights, for each observation.
            weight: of the observations; None = equal.
        """
        weight = np.ones(len(rows)) if weight is None else weight
        share = weight / weight.sum()
        mean, middle = _without_dust(share @ rows), share @ targets
        centred = rows - mean
        gram = (centred * share[:, None]).T @ centred + penalty * np.eye(rows.shape[1])
        weights = np.linalg.solve(gram, (centred * share[:, None]).T @ (targets - middle))
        return cls(weights, mean, middle)

    def predict(self, rows: Floats) -> Floats:
        """Return a row of predictions for each row."""
        found: Floats = (rows - self.mean) @ self.weights + self.targets
        return found


class Kernel(msgspec.Struct, frozen=True):
    """Kernel ridge regression with a Gaussian kernel."""

    rows: Floats
    weights: Floats
    targets: Floats
    width: float

    @classmethod
    def fitted(cls, rows: Floats, targets: Floats, width: float, penalty: float) -> Self:
        """Fit. `width` multiplies the mean squared difference of two rows."""
        middle = targets.mean(axis=0)
        gram = _gaussian(rows, rows, width) + penalty * np.eye(len(rows))
        return cls(rows, np.linalg.solve(gram, targets - middle), middle, width)

    def predict(self, rows: Floats) -> Floats:
        """Return a row of predictions for each row."""
        found: Floats = _gaussian(rows, self.rows, self.width) @ self.weights + self.targets
        return found


class Landmarks(msgspec.Struct, frozen=True):
    """A kernel model for many rows: their nearness to some of them, and the rows themselves."""

    rows: Floats
    linear: Linear
    width: float

    @classmethod
    def fitted(cls, rows: Floats, targets: Floats, width: float, penalty: float) -> Self:
        """Fit. `width` multiplies the mean squared difference of two rows."""
        count = min(_LANDMARKS, len(rows))
        drawn = np.random.default_rng(_SEED).choice(len(rows), count, replace=False)
        marks = rows[np.sort(drawn)]
        return cls(marks, Linear.fitted(_near(rows, marks, width), targets, penalty), width)

    def predict(self, rows: Floats) -> Floats:
        """Return a row of predictions for each row."""
        return self.linear.predict(_near(rows, self.rows, self.width))


def _without_dust(means: Floats) -> Floats:
    """Return means with 0 for what is rounding only: it depends on how many threads have summed."""
    return np.where(np.abs(means) < _DUST, 0.0, means)


def _near(rows: Floats, marks: Floats, width: float) -> Floats:
    return np.column_stack([_gaussian(rows, marks, width), _STRAIGHT * rows])


def _gaussian(first: Floats, second: Floats, width: float) -> Floats:
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    found: Floats = np.exp(-width * np.maximum(squares, 0) / first.shape[1])
    return found
