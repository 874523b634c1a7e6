"""How well a model agrees with raters, held out by speaker: correlations and their intervals."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from etude.assess.probes import TARGETS
from etude.assess.regression import Floats
from etude.assess.regressor import Regressor
from etude.assess.table import Table

RESAMPLES: Final = 1_000
SEED: Final = 762
_PERCENTILES: Final = (2.5, 97.5)


def held_out(table: Table) -> Floats:
    """Predict every row with a model that never heard its speaker; `TARGETS` in columns."""
    predicted = np.empty_like(table.targets)
    for fold in np.unique(table.folds):
        out = table.folds == fold
        model = Regressor.fitted(table.features[~out], table.targets[~out])
        predicted[out] = model.predict(table.features[out])
    return predicted


def agreement(table: Table, predicted: Floats) -> dict[str, Any]:
    """Return Pearson's correlation with the raters' means for each target and group.

    `interval` is the bootstrap's 95 % over speakers, not utterances: those of one speaker are
    alike.
    """
    child = table.child
    figures: dict[str, Any] = {}
    for column, target in enumerate(TARGETS):
        truth, guess = table.targets[:, column], predicted[:, column]
        whole = _figures(truth, guess, table.speakers, np.ones(len(truth), dtype=np.bool_))
        figures[target] = {
            **whole,
            "children": _figures(truth, guess, table.speakers, child),
            "adults": _figures(truth, guess, table.speakers, ~child),
        }
    return figures


def compared(first: Table, second: Table) -> dict[str, Any]:
    """Return by how much the second table's model agrees better than the first's.

    The two are of the same utterances. `interval` is the bootstrap's 95 % of the difference, with
    the same speakers drawn for both.
    """
    place = {one: row for row, one in enumerate(first.ids)}
    rows = np.array([place[one] for one in second.ids])
    before, after = held_out(first)[rows], held_out(second)
    every = np.ones(len(rows), dtype=np.bool_)
    found: dict[str, Any] = {}
    for column, target in enumerate(TARGETS):
        truth = second.targets[:, column]
        guesses = before[:, column], after[:, column]
        groups = {"all": every, "children": second.child, "adults": ~second.child}
        told = {name: _gain(truth, guesses, second, chosen) for name, chosen in groups.items()}
        found[target] = told.pop("all") | told
    return found


def pearson(first: Floats, second: Floats) -> float:
    """Return Pearson's correlation; 0 where one side does not vary."""
    if len(first) < 2 or not first.std() or not second.std():  # noqa: PLR2004 - two points make a line
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _figures(
    truth: Floats, guess: Floats, speakers: Sequence[str], chosen: NDArray[np.bool_]
) -> dict[str, Any]:
    own = np.array(speakers)[chosen]
    truth, guess = truth[chosen], guess[chosen]
    return {
        "pearson": round(pearson(truth, guess), 4),
        "interval": _interval(truth, guess, own),
        "mean_absolute_error": round(float(np.abs(truth - guess).mean()), 3) if len(own) else None,
        "utterances": len(own),
        "speakers": len(set(own.tolist())),
    }


def _gain(
    truth: Floats, guesses: tuple[Floats, Floats], table: Table, chosen: NDArray[np.bool_]
) -> dict[str, Any]:
    own = np.array(table.speakers)[chosen]
    truth, (first, second) = truth[chosen], (guesses[0][chosen], guesses[1][chosen])

    def gain(rows: NDArray[np.int64]) -> float:
        return pearson(truth[rows], second[rows]) - pearson(truth[rows], first[rows])

    return {
        "difference": round(gain(np.arange(len(truth))), 4),
        "interval": _resampled(gain, own),
    }


def _interval(truth: Floats, guess: Floats, speakers: NDArray[np.str_]) -> list[float]:
    return _resampled(lambda rows: pearson(truth[rows], guess[rows]), speakers)


def _resampled(
    measure: Callable[[NDArray[np.int64]], float], speakers: NDArray[np.str_]
) -> list[float]:
    """Return the bootstrap's interval of a measure, whole speakers drawn."""
    rows = [np.flatnonzero(speakers == one) for one in np.unique(speakers)]
    if len(rows) < 2:  # noqa: PLR2004 - one speaker cannot be resampled
        return []
    random = np.random.default_rng(SEED)
    found = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rows[one] for one in random.integers(len(rows), size=len(rows))])
        found.append(measure(drawn))
    return [round(float(value), 4) for value in np.percentile(found, _PERCENTILES)]
