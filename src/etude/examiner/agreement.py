"""How far scores agree with people's, and people with each other.

The coefficients: `docs/agreement.md §What is computed`. A run follows from the file, the options
and the seed alone: the same input gives the same bytes, and its digest names the run.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from etude.events.canonical import canonical
from etude.examiner.agreement_statistics import (
    FEWEST,
    Ratings,
    intervals,
    of_each_with_the_others,
    of_pair,
)
from etude.examiner.ratings import Columns, Item

AGREEMENT_VERSION: Final = 1
"""Counts up with every change of the arithmetic."""
RESAMPLES: Final = 2000
_DECIMALS: Final = 4

Compared = Literal["machine_with_humans", "each_human_with_the_others"]
Reason = Literal["too_few", "constant"]


class Coefficient(msgspec.Struct, frozen=True, kw_only=True):
    """A coefficient with its 95 % interval.

    Attributes:
        value: None = it has no meaning here, for `reason`.
        low: lower end; both ends None: fewer than three people, or too few usable resamples.
        high: upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: Reason | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sides compared over the items of one dimension, or of a subgroup of it.

    Attributes:
        compared: the machine with the mean of the humans; or each human with the mean of the
            others, averaged (what a machine can be expected to reach).
        dimension: None = the file names none.
        subgroup: value of the column `by`; None = everybody.
        n: items with every rating that the comparison needs.
        missing: items that lack one.
        subjects: people behind the `n` items; None = the file does not say.
        pearson: linear correlation.
        spearman: rank correlation.
        quadratic_weighted_kappa: of ratings rounded half-up to whole numbers.
        icc_2_1: absolute agreement of a single rater.
    """

    compared: Compared
    dimension: str | None
    subgroup: str | None
    n: int
    missing: int
    subjects: int | None
    pearson: Coefficient
    spearman: Coefficient
    quadratic_weighted_kappa: Coefficient
    icc_2_1: Coefficient


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run was made from."""

    file_sha256: str
    columns: Columns
    seed: int
    resamples: int
    agreement_version: int = AGREEMENT_VERSION


class AgreementRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as stored: `inputs_digest` is the sha256 of the canonical JSON of `inputs`."""

    inputs: Inputs
    inputs_digest: str
    comparisons: tuple[Comparison, ...]


def run_agreement(
    items: Sequence[Item],
    inputs: Inputs,
    track: Callable[[Sequence["Part"]], Iterable["Part"]] = iter,
) -> AgreementRun:
    """Compare per dimension, then per subgroup of it.

    Args:
        items: as `read_ratings` returned them.
        inputs: of the run; the file's digest is believed.
        track: goes through the parts of the work, and may show how far it is.
    """
    parts = list(_parts(items, inputs.columns))
    digest = hashlib.sha256(canonical(msgspec.to_builtins(inputs))).hexdigest()
    return AgreementRun(
        inputs=inputs,
        inputs_digest=digest,
        comparisons=tuple(_compare(part, inputs) for part in track(parts)),
    )


def run_bytes(run: AgreementRun) -> bytes:
    """Return a run as canonical JSON (RFC 8785), which is what is stored."""
    return canonical(msgspec.to_builtins(run)) + b"\n"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison that is to be made."""

    compared: Compared
    dimension: str | None
    subgroup: str | None
    items: tuple[Item, ...]


def _parts(items: Sequence[Item], columns: Columns) -> Iterator[Part]:
    sides: list[Compared] = ["machine_with_humans"] if columns.machine else []
    sides += ["each_human_with_the_others"] if len(columns.humans) > 1 else []
    for dimension, of_dimension in _grouped(items, lambda item: item.dimension):
        groups: list[tuple[str | None, tuple[Item, ...]]] = [(None, of_dimension)]
        if columns.by is not None:
            groups += _grouped(of_dimension, lambda item: item.subgroup)
        for subgroup, members in groups:
            for side in sides:
                yield Part(compared=side, dimension=dimension, subgroup=subgroup, items=members)


def _grouped(
    items: Iterable[Item], key: Callable[[Item], str | None]
) -> list[tuple[str | None, tuple[Item, ...]]]:
    groups: dict[str | None, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return [(name, tuple(groups[name])) for name in sorted(groups, key=lambda name: name or "")]


def _compare(part: Part, inputs: Inputs) -> Comparison:
    machine = part.compared == "machine_with_humans"
    used = [item for item in part.items if _is_complete(item, machine=machine)]
    ratings = _matrix(used, len(inputs.columns.humans), machine=machine)
    with_subjects = inputs.columns.subject is not None
    clusters: dict[str | int, list[int]] = {}
    for row, item in enumerate(used):
        clusters.setdefault((item.subject or "") if with_subjects else row, []).append(row)
    return Comparison(
        compared=part.compared,
        dimension=part.dimension,
        subgroup=part.subgroup,
        n=len(used),
        missing=len(part.items) - len(used),
        subjects=len(clusters) if with_subjects else None,
        **_coefficients(ratings, list(clusters.values()), part, inputs),
    )


def _is_complete(item: Item, *, machine: bool) -> bool:
    return None not in item.humans and (item.machine is not None or not machine)


def _matrix(items: Sequence[Item], humans: int, *, machine: bool) -> Ratings:
    """Return the ratings side by side: each human's, or the humans' mean and the machine's."""
    people = np.array([item.humans for item in items], dtype=np.float64).reshape(-1, humans)
    if not machine:
        return people
    scores = np.array([item.machine for item in items], dtype=np.float64)
    means = people.mean(axis=1) if len(people) else np.zeros(0)
    return np.stack([means, scores], axis=1)


def _coefficients(
    ratings: Ratings, clusters: Sequence[Sequence[int]], part: Part, inputs: Inputs
) -> Mapping[str, Coefficient]:
    compute = of_pair if part.compared == "machine_with_humans" else of_each_with_the_others
    found = compute(ratings)
    rows = [np.array(one, dtype=np.intp) for one in clusters]
    ends: Mapping[str, tuple[float, float] | None] = {}
    if any(value is not None for value in found.values()):
        ends = intervals(ratings, rows, compute, inputs.resamples, _random(part, inputs.seed))
    reason: Reason = "too_few" if len(ratings) < FEWEST else "constant"
    return {
        name: Coefficient(value=None, reason=reason)
        if value is None
        else _rounded(value, ends.get(name))
        for name, value in found.items()
    }


def _random(part: Part, seed: int) -> np.random.Generator:
    """Return draws of the part's own: another dimension in the file does not change them."""
    name = msgspec.json.encode((part.compared, part.dimension, part.subgroup))
    return np.random.default_rng([seed, *hashlib.sha256(name).digest()[:8]])


def _rounded(value: float, ends: tuple[float, float] | None) -> Coefficient:
    low, high = (None, None) if ends is None else (round(end, _DECIMALS) for end in ends)
    return Coefficient(value=round(value, _DECIMALS), low=low, high=high)
