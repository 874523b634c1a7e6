"""Which events count as good news: the polarity table (`docs/rules.md 12`).

One JSON document that every reader of a session shares: this module, and a page in the browser. The
default table is `tables/default.json`; a rubric compiles to the same form. Its rules are tried from
the top; the first that fits the event and finds what it measures decides:

* `event_types`, `signal`: the events it fits; absent means any.
* `counts`: what such an event counts as, whatever it says, or
* `measure`: a path from the event (`value.accuracy`, `assertion`), with `positive`: the condition
  under which the measured value is good. A comparable value that is not good is an issue, unless
  `issue` says when it is. A value of another JSON type cannot be compared: the next rule is tried.
* a condition is one of `equals`, `at_least`, `at_most`, `one_of`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final, Literal

import msgspec

from etude.events.model import PROTOCOL_FIELDS, Event
from etude.rubric.errors import PolarityTableInvalidError

Polarity = Literal["positive", "issue"]
Counts = Literal["positive", "issue", "nowhere"]

TABLE_VERSION: Final = 1
_FIELDS: Final = frozenset(PROTOCOL_FIELDS)


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a measured value holds: exactly one of the four is set."""

    equals: bool | float | str | None = None
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a condition that says nothing or two things."""
        if sum(getattr(self, name) is not None for name in self.__struct_fields__) != 1:
            reason = "a condition is one of equals, at_least, at_most, one_of"
            raise ValueError(reason)

    def holds(self, value: object) -> bool | None:
        """Whether `value` meets the condition; `None` if it cannot be compared."""
        if self.one_of is not None:
            return value in self.one_of if isinstance(value, str) else None
        if isinstance(self.equals, bool | str):
            return value == self.equals if type(value) is type(self.equals) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.equals is not None:
            return value == self.equals
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is not None and value <= self.at_most


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of the table; see the module."""

    event_types: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    signal: str | None = None
    counts: Counts | None = None
    measure: str | None = None
    positive: Condition | None = None
    issue: Condition | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that decides nothing or in two ways."""
        measures = self.measure is not None and self.positive is not None
        stray = self.measure is not None or self.positive is not None or self.issue is not None
        if not measures if self.counts is None else stray:
            reason = "a rule has `counts`, or `measure` with `positive`"
            raise ValueError(reason)

    def decide(self, event: Event) -> Counts | None:
        """Return what an event that fits counts as; `None` if it lacks what is measured."""
        if self.counts is not None or self.measure is None or self.positive is None:
            return self.counts
        value = look_up(event, self.measure)
        is_good = self.positive.holds(value)
        if is_good is None:
            return None
        if is_good:
            return "positive"
        return "issue" if self.issue is None or self.issue.holds(value) else "nowhere"


class TableDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A polarity table as it is written. `phases` come first in a recap, in this order."""

    table_version: Literal[1]
    phases: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    rules: tuple[Rule, ...]


class PolarityTable:
    """How a session's events are counted: a document, with its rules sorted by event type."""

    def __init__(self, document: TableDocument) -> None:
        """Sort the rules; their order within a type stays."""
        self.phases = document.phases
        self.rules = document.rules
        named = {name for rule in self.rules for name in rule.event_types or ()}
        self._of_type = {
            name: [rule for rule in self.rules if name in (rule.event_types or (name,))]
            for name in named
        }
        self._of_others = [rule for rule in self.rules if rule.event_types is None]

    def counts(self, event: Event) -> Counts | None:
        """Return what the event says, doubts aside; `None` if no rule can tell."""
        for rule in self._of_type.get(event.event_type, self._of_others):
            if rule.signal is None or rule.signal == event.signal:
                decision = rule.decide(event)
                if decision is not None:
                    return decision
        return None


def load_table(document: bytes) -> PolarityTable:
    """Read a polarity table (JSON). Raises `PolarityTableInvalidError` naming the place."""
    try:
        return PolarityTable(msgspec.json.decode(document, type=TableDocument))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PolarityTableInvalidError(reason=str(error)) from error


@cache
def default_table() -> PolarityTable:
    """Return the table that ships, for sessions without a rubric of their own."""
    return load_table(files("etude.rubric").joinpath("tables/default.json").read_bytes())


def look_up(event: Event, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what stands at a dotted path of the event as sent; `None` where nothing does."""
    head, *rest = path.split(".")
    found = getattr(event, head) if head in _FIELDS else event.extra.get(head)
    for name in rest:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
