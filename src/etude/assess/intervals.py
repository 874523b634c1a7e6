"""How sure a number is: an interval that is wider, the lower the number; learnt from held-out ones.

One width for all would hold nine in ten on the whole, and of those who read worst six in ten only.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from etude.assess.model_file import SURE_FROM
from etude.assess.probes import TARGETS
from etude.assess.regression import Floats
from etude.assess.table import Table

LOW: Final = 6.0
HIGH: Final = 8.0
_NARROWEST: Final = 0.1


def fit_intervals(
    truth: Floats, predicted: Floats, coverage: float
) -> dict[str, float | tuple[float, float]]:
    """Return half the width of each target's interval: at 9 and above, and more a point below."""
    return {
        target: _fitted(truth[:, column], predicted[:, column], coverage)
        for column, target in enumerate(TARGETS)
    }


def covered(table: Table, predicted: Floats, coverage: float) -> dict[str, float]:
    """Return which share of the raters' means on `total` is inside, where no speaker was known."""
    column = TARGETS.index("total")
    truth, guess = table.targets[:, column], predicted[:, column]
    inside = np.zeros(len(truth), dtype=np.bool_)
    for fold in np.unique(table.folds):
        out = table.folds == fold
        narrow, wider = _fitted(truth[~out], guess[~out], coverage)
        inside[out] = np.abs(truth - guess)[out] <= narrow + wider * _below(guess[out])
    groups = {
        "all": np.ones(len(truth), dtype=np.bool_),
        "children": table.child,
        "adults": ~table.child,
        "low": guess < LOW,
        "middle": (guess >= LOW) & (guess < HIGH),
        "high": guess >= HIGH,
    }
    return {name: _share(inside[chosen]) for name, chosen in groups.items() if chosen.any()}


def _fitted(truth: Floats, guess: Floats, coverage: float) -> tuple[float, float]:
    """Fit the mean distance by the number, and stretch it until it holds the share."""
    apart, below = np.abs(truth - guess), _below(guess)
    columns = np.column_stack([np.ones(len(below)), below])
    start, slope = np.linalg.lstsq(columns, apart, rcond=None)[0]
    start, slope = max(float(start), _NARROWEST), max(float(slope), 0.0)
    stretch = float(np.quantile(apart / (start + slope * below), coverage))
    return round(start * stretch, 3), round(slope * stretch, 3)


def _below(guess: Floats) -> Floats:
    return np.maximum(0.0, SURE_FROM - guess)


def _share(inside: NDArray[np.bool_]) -> float:
    return round(float(inside.mean()), 3)
