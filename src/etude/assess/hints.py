"""Which words are hinted at: those below a threshold that keeps false alarms few.

A hint that is wrong sends a child back to a word that was well said, so the threshold is chosen by
precision: three hints in four are about words that raters heard as badly said. Pure.
"""

from collections.abc import Sequence
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from etude.assess.agreement import pearson
from etude.assess.regression import Floats

BADLY_SAID: Final = 6
"""A word that raters gave this or less is one to look at again."""
PRECISION: Final = 0.75
"""The share of hints that is to be right, over all speakers."""
FULL_MARKS: Final = 10
_SHOWN: Final = (0.6, 0.7, 0.8, 0.9)
_FEWEST: Final = 20


class RatedWords(msgspec.Struct, frozen=True):
    """Words that raters and the model gave values to, the model without knowing the speaker."""

    ratings: Floats
    values: Floats
    child: NDArray[np.bool_]

    @classmethod
    def of(cls, words: Sequence[tuple[float, float, bool]]) -> Self:
        """Return rating, value and group of each word; those without a rating are left out."""
        rows = np.array([one for one in words if np.isfinite(one[0])], dtype=np.float64)
        rows = rows.reshape(-1, 3)
        return cls(rows[:, 0], rows[:, 1], rows[:, 2] > 0)


def fit_hints(words: RatedWords) -> tuple[float, dict[str, float]]:
    """Return the threshold below which a word is hinted at, and how right that is."""
    if not len(words.ratings):
        return 0.0, {}
    order = np.argsort(words.values, kind="stable")
    right = np.cumsum(words.ratings[order] <= BADLY_SAID, dtype=np.int64)
    precision = right / np.arange(1, len(order) + 1)
    count = _longest(precision, PRECISION)
    threshold = float(words.values[order[min(count, len(order) - 1)]])
    hinted = words.values < threshold
    every = np.ones(len(hinted), dtype=np.bool_)
    return round(threshold, 3), {
        **_figures(words, hinted, every, ""),
        **_figures(words, hinted, words.child, "children_"),
        **_figures(words, hinted, ~words.child, "adults_"),
        **{
            f"recall_at_precision_{share:.1f}": _recall(right, _longest(precision, share))
            for share in _SHOWN
        },
        "pearson": round(pearson(words.ratings, words.values), 3),
    }


def _longest(precision: Floats, share: float) -> int:
    """Return how many of the lowest words can be hinted at so that this share is right."""
    enough = np.flatnonzero(precision[_FEWEST:] >= share)
    return int(enough[-1]) + _FEWEST + 1 if len(enough) else 0


def _recall(right: NDArray[np.int64], count: int) -> float:
    found = right[count - 1] if count else 0
    return round(float(found / max(1, right[-1])), 3)


def _figures(
    words: RatedWords, hinted: NDArray[np.bool_], chosen: NDArray[np.bool_], prefix: str
) -> dict[str, float]:
    hinted, ratings = hinted[chosen], words.ratings[chosen]
    bad = ratings <= BADLY_SAID
    right = float((hinted & bad).sum())
    hints = max(1.0, float(hinted.sum()))
    told: dict[str, float] = {
        "words": len(ratings),
        "share_hinted": round(float(hinted.mean()), 4) if len(ratings) else 0.0,
        "share_badly_said": round(float(bad.mean()), 4) if len(ratings) else 0.0,
        "precision": round(right / hints, 3),
        "recall": round(right / max(1.0, float(bad.sum())), 3),
        "share_below_full_marks": round(float((ratings[hinted] < FULL_MARKS).sum()) / hints, 3),
    }
    return {f"{prefix}{name}": value for name, value in told.items()}
