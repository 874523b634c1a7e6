"""A rubric: what a session's events mean (`docs/rubrics.md`).

Pure data, as the YAML says it; `etude.rubric.loading` reads it. A signal says which events it looks
at, what it measures in them (`measure`: a path from the event, by event type) and how good that is
(`polarity`, `grade`, `band`, `order`), by one of five primitives. Dimensions weigh signals; safety
gates cap the overall score. Words for people are given by locale.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

Primitive = Literal["presence", "sequence", "timing", "quality", "safety"]
Aggregate = Literal["confidence_weighted_mean", "minimum", "latest", "best"]
Better = Literal["higher", "lower"]
Level = Literal["L0", "L1", "L2"]
Unit = Literal[
    "ratio",
    "points",
    "count",
    "s",
    "ms",
    "per_minute",
    "cm",
    "bpm",
    "words_per_min",
    "characters_per_min",
]

NAME: Final = r"^[a-z][a-z0-9_]{0,63}$(?!\n)"
"""Names of signals, dimensions and phases, as events carry them.

`$` alone would also stand before a last line feed.
"""
PATH: Final = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,7}$(?!\n)"
"""A path into an event: names and dots, nothing that could run."""

Name = Annotated[str, Meta(pattern=NAME)]
RubricId = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]
RubricVersion = Annotated[str, Meta(pattern=r"^v[0-9]+(\.[0-9]+){0,2}$(?!\n)")]
FieldPath = Annotated[str, Meta(pattern=PATH)]
Weight = Annotated[float, Meta(gt=0, le=1000)]
Words = dict[Literal["en", "zh-CN"], Annotated[str, Meta(min_length=1, max_length=500)]]
Expected = bool | float | str


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A phase of a session; after `timeout_s` the learner is asked whether to go on."""

    id: Name
    title: Words = {}
    threshold_s: Annotated[float, Meta(gt=0)] | None = None
    timeout_s: Annotated[float, Meta(gt=0)] | None = None


class Observe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events a signal looks at, beside their `signal`."""

    event_types: Annotated[tuple[str, ...], Meta(min_length=1)]
    signals: tuple[str, ...] = ()
    """What these events call the signal, if not by its own name."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a number or word holds: exactly one is given."""

    at_least: float | None = None
    at_most: float | None = None
    one_of: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None


class PolarityRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When what was measured is good news and when it is an issue; neither counts nowhere.

    Without `issue`, everything comparable that is not positive is an issue.
    """

    positive: Expected | Condition
    issue: Expected | Condition | None = None


class Grade(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How good a measured number or word is, from 0 to 1: `worst` and `best`, or `words`.

    A number is graded along the line from `worst` (0) to `best` (1), whichever is larger.
    """

    worst: float | None = None
    best: float | None = None
    words: dict[str, Annotated[float, Meta(ge=0, le=1)]] | None = None


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Timing: 1 from `at_least` to `at_most`, falling to 0 at `zero_below` and `zero_above`."""

    at_least: float
    at_most: float
    zero_below: float
    zero_above: float


class Coach(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coach says about a signal at once, by what it counts as."""

    positive: Words = {}
    uncertain: Words = {}


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is looked for.

    Attributes:
        primitive: how its events become a value; see `etude.rubric.primitives`.
        phases: where it counts; none = anywhere.
        measure: by event type, what is measured; an event type without one counts as happened.
        unit: of what is measured, for people.
        at_least: presence: how many times it has to happen.
        order: sequence: the words that should be measured, in this order.
        step: narrative: what to practise next when this is weak, by locale.
    """

    primitive: Primitive
    title: Words = {}
    phases: tuple[str, ...] = ()
    level: Level | None = None
    observe: Observe
    measure: dict[str, FieldPath] = {}
    unit: Unit | None = None
    polarity: PolarityRule | None = None
    grade: Grade | None = None
    band: Band | None = None
    at_least: Annotated[int, Meta(ge=1, le=1000)] = 1
    order: tuple[str, ...] = ()
    aggregate: Aggregate = "confidence_weighted_mean"
    coach: Coach = Coach()
    step: Words = {}


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal's share in a dimension."""

    signal: str
    weight: Weight = 1.0


class Dimension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A score of the report, from its signals; only observed ones count."""

    title: Words = {}
    weight: Weight = 1.0
    parts: Annotated[tuple[Part, ...], Meta(min_length=1)] = msgspec.field(name="from")
    aggregate: Aggregate | None = None
    """How the events of its signals become a value, where not as the signals say themselves."""
    scale: Annotated[tuple[int, ...], Meta(min_length=2, max_length=2)] = (0, 100)


class SafetyGate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A safety signal that failed caps the overall score, and the report says so."""

    signal: str
    cap: Annotated[int, Meta(ge=0, le=100)]
    says: Words = {}


class Growth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal whose measured value is compared along a journey."""

    metric: str
    better: Better = "higher"
    error: Annotated[float, Meta(ge=0)] = 0.0
    """Measurement error, in the unit of what is measured: a smaller change is none."""


class Rubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rubric. `instruments`: values of `session_start` that it is for (`docs/rules.md 3`)."""

    id: RubricId
    version: RubricVersion
    locale: Annotated[Words, Meta(min_length=1)]
    instruments: tuple[str, ...] = ()
    phases: Annotated[tuple[Phase, ...], Meta(min_length=1)]
    signals: Annotated[dict[Name, Signal], Meta(min_length=1)]
    dimensions: Annotated[dict[Name, Dimension], Meta(min_length=1)]
    safety_gates: tuple[SafetyGate, ...] = ()
    growth: tuple[Growth, ...] = ()

    @property
    def key(self) -> str:
        """`violin-basic@v1.2`."""
        return f"{self.id}@{self.version}"


def title_of(words: Words, name: str, locale: str) -> str:
    """Return the words for `locale`, else the English ones, else the name, readable."""
    found = {str(tag): said for tag, said in words.items()}
    return found.get(locale) or found.get("en") or name.replace("_", " ")
