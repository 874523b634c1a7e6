"""How far two or more raters agree: four coefficients, each None where it has no meaning.

Ratings are float arrays without gaps, one row an item. Sources: Pearson; Spearman with mid-ranks
for ties; Cohen 1968 for the weighted kappa; Shrout & Fleiss 1979 for ICC(2,1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ratings = NDArray[np.float64]
Rows = NDArray[np.intp]
Statistic = Callable[[Ratings], float | None]

FEWEST: Final = 3
"""Items below which nothing is said: two points always lie on a line."""


def pearson(one: Ratings, other: Ratings) -> float | None:
    """Return the correlation of two raters, -1 to 1; None if one of them never varies."""
    if len(one) < FEWEST or _is_constant(one) or _is_constant(other):
        return None
    # Scaled first: squares of very large or small ratings would leave the range of floats.
    first, second = (_unit(one), _unit(other))
    if first is None or second is None:
        return None
    return float(np.clip(first @ second, -1, 1))


def spearman(one: Ratings, other: Ratings) -> float | None:
    """Return the rank correlation, -1 to 1; equal ratings share the mean of their ranks."""
    return pearson(mid_ranks(one), mid_ranks(other))


def mid_ranks(ratings: Ratings) -> Ratings:
    """Return ranks from 1; equal ratings get the mean of the ranks that they take up."""
    _, place, count = np.unique(ratings, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: Ratings = (2 * last - count + 1)[place] / 2
    return ranks


def quadratic_weighted_kappa(one: Ratings, other: Ratings) -> float | None:
    """Return Cohen's kappa with quadratic weights, at most 1; None if both never vary alike.

    Ratings are rounded half-up to whole numbers, which are the categories. With quadratic weights
    the table of categories need not be built: observed disagreement is the mean squared difference,
    expected disagreement the same over every pair of items.
    """
    if len(one) < FEWEST:
        return None
    first, second = np.floor(one + 0.5), np.floor(other + 0.5)
    expected = first.var() + second.var() + (first.mean() - second.mean()) ** 2
    if not expected > 0:
        return None
    return float(1 - np.mean((first - second) ** 2) / expected)


def icc_2_1(ratings: Ratings) -> float | None:
    """Return ICC(2,1): two-way random effects, absolute agreement, a single rater; at most 1.

    Args:
        ratings: items in rows, raters in columns.
    """
    items, raters = ratings.shape
    if items < FEWEST or raters < 2 or _is_constant(ratings):  # noqa: PLR2004 - agreement is of two
        return None
    centred = ratings - ratings.mean()
    of_items, of_raters = centred.mean(axis=1), centred.mean(axis=0)
    between = raters * float(of_items @ of_items) / (items - 1)
    columns = items * float(of_raters @ of_raters) / (raters - 1)
    rest = centred - of_items[:, None] - of_raters[None, :]
    error = float(np.sum(rest * rest)) / ((items - 1) * (raters - 1))
    whole = between + (raters - 1) * error + raters * (columns - error) / items
    return (between - error) / whole if whole > 0 else None


def of_pair(ratings: Ratings) -> dict[str, float | None]:
    """Return the four coefficients of two columns."""
    one, other = ratings[:, 0], ratings[:, 1]
    return {
        "pearson": pearson(one, other),
        "spearman": spearman(one, other),
        "quadratic_weighted_kappa": quadratic_weighted_kappa(one, other),
        "icc_2_1": icc_2_1(ratings),
    }


def of_each_with_the_others(ratings: Ratings) -> dict[str, float | None]:
    """Return the mean over the columns of each one's coefficients with the mean of the others.

    ICC(2,1) is that of all columns: it is of a single rater already.
    """
    others = (ratings.sum(axis=1, keepdims=True) - ratings) / (ratings.shape[1] - 1)
    pairs = [of_pair(np.stack(pair, axis=1)) for pair in zip(ratings.T, others.T, strict=True)]
    found = {name: _mean([pair[name] for pair in pairs]) for name in pairs[0]}
    return {**found, "icc_2_1": icc_2_1(ratings)}


def intervals(
    ratings: Ratings,
    clusters: Sequence[Rows],
    coefficients: Callable[[Ratings], Mapping[str, float | None]],
    resamples: int,
    random: np.random.Generator,
) -> dict[str, tuple[float, float] | None]:
    """Return 95 % intervals: the 2.5th and 97.5th percentile over bootstrap resamples.

    Whole clusters are drawn, so that the many items of one person do not pass for many people.
    None: fewer than three clusters, or a coefficient that half of the resamples did not have.

    Args:
        ratings: items in rows.
        clusters: the rows of each person; of each item where persons are not known.
        coefficients: what to compute of each resample.
        resamples: how many.
        random: where the draws come from.
    """
    names = list(coefficients(ratings))
    if len(clusters) < FEWEST:
        return dict.fromkeys(names)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    single = all(len(rows) == 1 for rows in clusters)
    flat = np.concatenate(clusters)
    for _ in range(resamples):
        picked = random.integers(len(clusters), size=len(clusters))
        rows = flat[picked] if single else np.concatenate([clusters[index] for index in picked])
        for name, value in coefficients(ratings[rows]).items():
            if value is not None:
                drawn[name].append(value)
    return {name: _ends(values, resamples) for name, values in drawn.items()}


def _ends(values: list[float], resamples: int) -> tuple[float, float] | None:
    if 2 * len(values) < resamples:
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _is_constant(ratings: Ratings) -> bool:
    return bool(ratings.max() == ratings.min())


def _unit(ratings: Ratings) -> Ratings | None:
    """Return the deviations from the mean, as a vector of length 1."""
    scaled = ratings / np.abs(ratings).max()
    centred = scaled - scaled.mean()
    length = float(np.sqrt(centred @ centred))
    return centred / length if length > 0 else None


def _mean(values: list[float | None]) -> float | None:
    """Return the mean; None if one of them is missing, since a mean of the rest would flatter."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None
