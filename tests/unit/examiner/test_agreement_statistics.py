"""The coefficients against published worked examples, other ways of computing them, and bounds."""

import statistics
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.examiner.agreement_statistics import (
    Ratings,
    icc_2_1,
    intervals,
    mid_ranks,
    of_each_with_the_others,
    of_pair,
    pearson,
    quadratic_weighted_kappa,
    spearman,
)

# Shrout & Fleiss 1979, table 2: six targets, four judges.
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float
)
# Anscombe 1973, first set.
ANSCOMBE_X = np.array([10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5], float)
ANSCOMBE_Y = np.array([8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68])

whole = st.integers(0, 10).map(float)
pairs = st.lists(st.tuples(whole, whole), min_size=3, max_size=30).map(
    lambda rows: np.array(rows, float)
)
tables = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(whole, min_size=raters, max_size=raters), min_size=3, max_size=20
    ).map(lambda rows: np.array(rows, float))
)


def kappa_by_table(one: Ratings, other: Ratings) -> float | None:
    """Cohen's definition, literally: observed and expected cells of the table of categories."""
    n = len(one)
    cells, rows, columns = Counter(zip(one, other, strict=True)), Counter(one), Counter(other)
    categories = sorted({*one, *other})
    observed = sum((a - b) ** 2 * cells[a, b] / n for a, b in product(categories, repeat=2))
    expected = sum(
        (a - b) ** 2 * rows[a] * columns[b] / n**2 for a, b in product(categories, repeat=2)
    )
    return None if expected == 0 else float(1 - observed / expected)


def test_icc_of_shrout_and_fleiss() -> None:
    """Their ICC(2,1) is .29; to four digits .2898, as R's `psych` prints it for the same table."""
    assert icc_2_1(SHROUT_FLEISS) == pytest.approx(0.2898, abs=5e-5)


def test_pearson_of_anscombe() -> None:
    """The first set of the quartet has r = 0.816."""
    assert pearson(ANSCOMBE_X, ANSCOMBE_Y) == pytest.approx(0.81642, abs=5e-6)


def test_spearman_of_intelligence_and_television() -> None:
    """The textbook example of ten pairs has rho = -29/165."""
    iq = np.array([106, 100, 86, 101, 99, 103, 97, 113, 112, 110], float)
    hours = np.array([7, 27, 2, 50, 28, 29, 20, 12, 6, 17], float)
    assert spearman(iq, hours) == pytest.approx(-29 / 165)


def test_ties_share_their_mean_rank() -> None:
    """Of 3, 1, 3, 2 the threes take up ranks 3 and 4, so both are 3.5."""
    assert mid_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_kappa_worked_by_hand() -> None:
    """Four items: observed disagreement 1/4, expected 32/16, so kappa is 1 - 1/8 = 7/8."""
    one, other = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 3])
    assert quadratic_weighted_kappa(one, other) == pytest.approx(7 / 8)


@pytest.mark.parametrize(
    ("one", "other", "kappa"),
    [([1, 2, 3], [1, 2, 3], 1), ([1, 2, 1], [1, 2, 2], 0.4), ([1, 2, 1, 2], [1, 2, 2, 1], 0)],
)
def test_kappa_of_known_examples(one: list[int], other: list[int], kappa: float) -> None:
    """The examples that the essay-scoring competitions' reference (`ml_metrics`) is tested with."""
    found = quadratic_weighted_kappa(np.array(one, float), np.array(other, float))
    assert found == pytest.approx(kappa)


def test_kappa_rounds_half_up() -> None:
    """2.5 is 3 and -2.5 is -2: whole numbers are the categories."""
    one, other = np.array([2.5, -2.5, 0.4]), np.array([3.0, -2.0, 0.0])
    assert quadratic_weighted_kappa(one, other) == 1


@given(pairs)
def test_kappa_is_that_of_the_table(rows: Ratings) -> None:
    """The short form for quadratic weights is Cohen's table, cell by cell."""
    expected = kappa_by_table(rows[:, 0], rows[:, 1])
    assert quadratic_weighted_kappa(rows[:, 0], rows[:, 1]) == pytest.approx(expected)


@given(pairs)
def test_pearson_is_that_of_the_standard_library(rows: Ratings) -> None:
    """Where it has a meaning it equals `statistics.correlation`, ranked too."""
    one, other = rows[:, 0], rows[:, 1]
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert pearson(one, other) is None
        assert spearman(one, other) is None
        return
    assert pearson(one, other) == pytest.approx(statistics.correlation(one, other), abs=1e-9)
    ranks = [[sorted(of).index(x) + (sorted(of).count(x) + 1) / 2 for x in of] for of in rows.T]
    ranked = statistics.correlation(*ranks)
    assert spearman(one, other) == pytest.approx(ranked, abs=1e-9)


@given(pairs)
def test_each_is_symmetric_and_bounded(rows: Ratings) -> None:
    """Swapping the raters changes nothing; nothing exceeds 1; correlations do not go below -1."""
    there, back = of_pair(rows), of_pair(rows[:, ::-1])
    for name, value in there.items():
        assert back[name] == (None if value is None else pytest.approx(value, abs=1e-9))
        assert value is None or value <= 1 + 1e-9
    for name in ("pearson", "spearman", "quadratic_weighted_kappa"):
        assert there[name] is None or there[name] >= -1 - 1e-9  # type: ignore[operator]  # None is out


@given(tables, st.randoms(use_true_random=False))
def test_order_of_items_does_not_count(rows: Ratings, random: object) -> None:
    """Items in another order give the same figures."""
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]  # hypothesis' own random
    one, other = of_each_with_the_others(rows), of_each_with_the_others(rows[order])
    for name, value in one.items():
        assert other[name] == (None if value is None else pytest.approx(value, abs=1e-9))


@given(pairs, st.floats(0.001, 1000), st.floats(-1000, 1000))
def test_correlations_do_not_depend_on_the_scale(rows: Ratings, by: float, plus: float) -> None:
    """Stretching and moving one rater changes no correlation: agreement is another question."""
    one, other = rows[:, 0], rows[:, 1]
    for coefficient in (pearson, spearman):
        value = coefficient(one, other)
        moved = coefficient(one * by + plus, other)
        assert moved == (None if value is None else pytest.approx(value, abs=1e-6))


@given(tables, st.floats(-100, 100))
def test_icc_of_raters_moved_together_is_the_same(rows: Ratings, plus: float) -> None:
    """Moving everybody changes no ICC; raters who are the same have 1."""
    value = icc_2_1(rows)
    assert icc_2_1(rows + plus) == (None if value is None else pytest.approx(value, abs=1e-6))
    same = np.repeat(rows[:, :1], rows.shape[1], axis=1)
    assert icc_2_1(same) == (None if len(set(rows[:, 0])) == 1 else pytest.approx(1))


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e9])
def test_size_of_ratings_does_not_overflow(size: float) -> None:
    """Very small and very large ratings correlate like others."""
    one, other = np.array([1.0, 2, 3, 5]) * size, np.array([2.0, 1, 4, 5]) * size
    assert pearson(one, other) == pytest.approx(pearson(one / size, other / size))


def test_what_has_no_meaning_is_none() -> None:
    """Two items, a rater who never varies: no number, never NaN."""
    assert of_pair(np.array([[1.0, 2], [2, 3]])) == dict.fromkeys(of_pair(SHROUT_FLEISS[:, :2]))
    constant = of_pair(np.array([[0.1, 0.1]] * 5))
    assert set(constant.values()) == {None}
    assert of_pair(np.zeros((0, 2))) == constant
    one_sided = of_pair(np.array([[1.0, 2], [1, 3], [1, 4]]))
    assert (one_sided["pearson"], one_sided["spearman"]) == (None, None)
    assert one_sided["quadratic_weighted_kappa"] == 0


def test_an_interval_is_wider_when_items_share_a_person() -> None:
    """Forty copies of three people's ratings are three people: the interval says so."""
    rows = np.repeat(np.array([[1.0, 2], [2, 1], [6, 5], [7, 7]]), 40, axis=0)
    alone = [np.array([row]) for row in range(len(rows))]
    people = [np.arange(start, start + 40) for start in range(0, 160, 40)]
    widths = []
    for clusters in (alone, people):
        found = intervals(rows, clusters, of_pair, 200, np.random.default_rng(3))["icc_2_1"]
        assert found is not None
        widths.append(found[1] - found[0])
    assert widths[1] > 3 * widths[0]


def test_an_interval_holds_the_value_and_repeats() -> None:
    """Same draws, same ends; two people give none."""
    rows = np.stack([ANSCOMBE_X, ANSCOMBE_Y], axis=1)
    alone = [np.array([row]) for row in range(len(rows))]
    made = [intervals(rows, alone, of_pair, 300, np.random.default_rng(7)) for _ in range(2)]
    assert made[0] == made[1]
    low, high = made[0]["pearson"] or (1, 0)
    assert low < 0.816 < high
    two = [np.arange(5), np.arange(5, 11)]
    assert set(intervals(rows, two, of_pair, 300, np.random.default_rng(7)).values()) == {None}
