"""What the examiner found: scores, the evidence that they stand on, and what is not sure.

Numbers here are exact where arithmetic goes on (`Fraction`), rounded where people read them:
scores half-up to whole numbers, interval ends to a tenth (`docs/rules.md 29`).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import msgspec

from etude.rubric.primitives import Observation

ItemState = Literal["confirmed", "overturned", "unknown", "no_confidence"]


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's verdict on one event, as an event of type `signal_reviewed` says it."""

    review_id: str
    """Id of the event that says it."""
    verdict: Literal["confirmed", "overturned", "unknown"]
    confidence: Fraction
    measured: bool | int | float | str | None = None
    """What was there instead, for an overturned one."""
    reviewer: str | None = None
    method: str | None = None
    note: str | None = None


class LedgerItem(msgspec.Struct, frozen=True, kw_only=True):
    """An event that could not be taken at its word (`docs/rules.md 28`)."""

    event_id: str
    signal: str
    dimensions: tuple[str, ...]
    edge_confidence: float | None
    cloud_review_available: bool
    contested: bool
    state: ItemState
    review: Review | None = None


class SignalResult(msgspec.Struct, frozen=True, kw_only=True):
    """A signal's value in this session; None = not observed."""

    signal: str
    weight: Fraction
    """In its dimension, before the unobserved ones are left out."""
    value: Fraction | None
    observations: tuple[Observation, ...]


class DimensionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension's score with what it stands on; `score` None = not observed.

    Attributes:
        dimension: its name in the rubric.
        weight: in the overall score, before unobserved dimensions are left out.
        value: 0 to 1, exactly.
        score: on the dimension's scale.
        interval: 95 %, from confidence and count; never without a score.
        evidence: ids of the events that weigh, in the order of the session.
        parts: its signals.
    """

    dimension: str
    weight: Fraction
    value: Fraction | None
    score: int | None
    interval: tuple[float, float] | None
    evidence: tuple[str, ...]
    parts: tuple[SignalResult, ...]


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """A safety gate: `failed` None = its signal was not observed."""

    signal: str
    cap: int
    failed: bool | None
    evidence: tuple[str, ...]
    """The events that broke it, else those that show that it held."""


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that follows from events and rubric alone.

    Attributes:
        overall_score: weighted mean of the scored dimensions, capped by gates; None = none scored.
        uncapped_score: the same before the gates.
        coverage: weight of the scored dimensions over the weight of all, 0 to 1.
        ledger: every event that was doubtful, contested or without confidence, in order.
        measures: per growth metric of the rubric: the session's measured number, exactly.
        measured_by: per growth metric: the methods and model versions behind that number.
        methods: `name_version` of what made server-made evidence, sorted.
    """

    overall_score: int | None
    uncapped_score: int | None
    coverage: Fraction
    dimensions: tuple[DimensionResult, ...]
    gates: tuple[GateResult, ...]
    ledger: tuple[LedgerItem, ...]
    measures: Mapping[str, Fraction]
    measured_by: Mapping[str, tuple[str, ...]]
    methods: tuple[str, ...]
