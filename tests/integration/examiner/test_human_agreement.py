"""Agreement on real ratings: five experts who scored learners reading English aloud.

The corpus (speechocean762) is not part of the repository. `ETUDE_TEST_RATINGS` names its
`scores.jsonl` with the single raters' scores; else it is looked for beside the clone.
"""

import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.examiner.agreement import AgreementRun, Comparison, Inputs, run_agreement
from etude.examiner.ratings import Wanted, read_ratings

ROOT = Path(__file__).parents[3]
BESIDE = ROOT.parent / "shared" / "data" / "speechocean-dev" / "scores.jsonl"
FILE = Path(os.environ.get("ETUDE_TEST_RATINGS") or BESIDE)
DIMENSIONS = ("accuracy", "fluency", "prosodic", "total")

pytestmark = pytest.mark.skipif(
    not FILE.exists(), reason="NOT RUN: no real ratings here; name them by ETUDE_TEST_RATINGS"
)


def utterances() -> list[dict[str, object]]:
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


def as_csv() -> Iterator[str]:
    yield "subject,dimension,age,r1,r2,r3,r4,r5"
    for one in utterances():
        group = "child" if one["child"] else "adult"
        for dimension in DIMENSIONS:
            scores = one["experts"][dimension]  # type: ignore[index]  # the corpus' shape
            yield ",".join(map(str, (one["speaker"], dimension, group, *scores)))


@pytest.fixture(scope="module")
def run() -> AgreementRun:
    wanted = Wanted(humans=("r1", "r2", "r3", "r4", "r5"), by="age")
    columns, items = read_ratings("\n".join(as_csv()).encode(), wanted, FILE.name)
    inputs = Inputs(file_sha256="0" * 64, columns=columns, seed=1, resamples=300)
    return run_agreement(items, inputs)


def of(run: AgreementRun, dimension: str, subgroup: str | None = None) -> Comparison:
    (found,) = (
        one for one in run.comparisons if (one.dimension, one.subgroup) == (dimension, subgroup)
    )
    return found


def test_every_utterance_counts(run: AgreementRun) -> None:
    """No rating is lost; adults and children add up."""
    for dimension in DIMENSIONS:
        everybody = of(run, dimension)
        assert (everybody.n, everybody.missing) == (len(utterances()), 0)
        assert everybody.n == sum(of(run, dimension, age).n for age in ("adult", "child"))


def test_figures_are_those_of_another_computation(run: AgreementRun) -> None:
    """Pearson of each rater with the mean of the others, by the standard library."""
    for dimension in DIMENSIONS:
        rows = [one["experts"][dimension] for one in utterances()]  # type: ignore[index]  # see above
        found = [
            statistics.correlation(
                [row[rater] for row in rows], [sum(row) - row[rater] for row in rows]
            )
            for rater in range(5)
        ]
        assert of(run, dimension).pearson.value == pytest.approx(statistics.mean(found), abs=1e-4)


def test_people_agree_as_far_as_people_do(run: AgreementRun) -> None:
    """Experts agree well above chance and far from perfectly, and the interval says how surely."""
    for dimension in DIMENSIONS:
        found = of(run, dimension)
        for figure in (found.pearson, found.spearman, found.icc_2_1):
            assert figure.value is not None
            assert figure.low is not None
            assert figure.high is not None
            assert 0.2 < figure.low < figure.value < figure.high < 0.95
