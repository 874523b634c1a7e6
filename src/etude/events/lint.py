"""What a producer should mend: lines that are refused, and good lines that break a convention.

Lint never decides what is stored. Its codes are listed in `docs/events.md`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import msgspec

from etude.events.errors import LineError
from etude.events.model import (
    PERCEPTION_LEVELS,
    PHASES,
    PRIMITIVES,
    TIER_MEDIUM_FROM,
    TIERS,
    TRANSITION_SOURCES,
    Event,
    derive_tier,
)
from etude.events.ndjson import decode_line_reporting
from etude.events.values import shape_of
from etude.events.vocabulary import TRANSITION_TYPES, VOCABULARY
from etude.i18n import DEFAULT_LOCALE, text

Params = dict[str, str | int | float]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong on one line. `is_rejected`: the line itself is refused."""

    code: str
    line: int
    event_id: str | None = None
    is_rejected: bool = False
    params: Params = msgspec.field(default_factory=dict)

    def message(self, locale: str = DEFAULT_LOCALE) -> str:
        """Return the sentence for a person, in `locale`."""
        if self.is_rejected:
            return text(f"error.{self.code}", locale, **self.params)
        return text(f"events.lint.{self.code}", locale, **self.params)


def lint(
    lines: Iterable[tuple[int, bytes | LineError]], phases: Collection[str] = PHASES
) -> Iterator[Finding]:
    """Yield the findings of numbered lines (`ndjson.split_lines`), in order, in bounded memory.

    `phases` are those of the session's rubric.
    """
    for number, line in lines:
        yield from _refused(line) if isinstance(line, LineError) else _of_line(number, line, phases)


def _refused(error: LineError) -> Iterator[Finding]:
    yield Finding(code=error.code, line=error.line, is_rejected=True, params=error.params)


def _of_line(number: int, line: bytes, phases: Collection[str]) -> Iterator[Finding]:
    repeated: list[str] = []
    try:
        event = decode_line_reporting(line, number, repeated.append)
    except LineError as error:
        yield from _refused(error)
        return
    found: list[tuple[str, Params]] = [("duplicate_key", {"key": key}) for key in repeated]
    for check in _CHECKS:
        found += check(event)
    if event.phase and event.phase not in phases:
        found.append(("unknown_phase", {"phase": event.phase}))
    for code, params in found:
        yield Finding(code=code, line=number, event_id=event.event_id, params=params)


_Findings = Iterator[tuple[str, Params]]


def _check_type(event: Event) -> _Findings:
    if event.event_type not in VOCABULARY:
        yield "unknown_event_type", {"event_type": event.event_type}


def _check_alias(event: Event) -> _Findings:
    alias = event.extra.get("signal_id")
    if alias is not None and alias != event.signal:
        yield "signal_alias_conflict", {"signal": event.signal}


_ENUMERATED: Final = {
    "alert_tier": TIERS,
    "transition_source": TRANSITION_SOURCES,
    "perception_level": PERCEPTION_LEVELS,
    "primitive": PRIMITIVES,
}


def _check_enumerated(event: Event) -> _Findings:
    for field, known in _ENUMERATED.items():
        value = getattr(event, field)
        if value is not None and value not in known:
            yield "unknown_value", {"field": field, "value": value, "known": ", ".join(known)}


def _check_tier(event: Event) -> _Findings:
    derived = derive_tier(event.confidence)
    if derived is not None and event.alert_tier in TIERS and event.alert_tier != derived:
        yield "tier_mismatch", {"sent": event.alert_tier, "derived": derived}


def _check_review(event: Event) -> _Findings:
    confidence = event.confidence
    if (
        confidence is not None
        and confidence < TIER_MEDIUM_FROM
        and not event.cloud_review_available
    ):
        yield "review_not_offered", {"confidence": confidence}


def _check_transition_source(event: Event) -> _Findings:
    if event.transition_source is not None and event.event_type not in TRANSITION_TYPES:
        yield "transition_source_misplaced", {"event_type": event.event_type}


def _check_triple(event: Event) -> _Findings:
    kind = VOCABULARY.get(event.event_type)
    if kind is None or kind.family != "triple":
        return
    if event.correlation_id is None:
        yield "correlation_missing", {"event_type": event.event_type}
    if event.event_type == "signal_detected" and not isinstance(event.extra.get("assertion"), bool):
        yield "assertion_missing", {}


def _check_started_at(event: Event) -> _Findings:
    if event.meta is not None and "started_at" in event.meta and event.started_at is None:
        yield "started_at_invalid", {}


def _check_value(event: Event) -> _Findings:
    shape = shape_of(event.event_type, event.signal, event.value)
    if shape is None:
        return
    try:
        msgspec.convert(event.value, shape)
    except msgspec.ValidationError as error:
        yield "value_shape", {"field": _field_of(error), "signal": event.signal}


def _field_of(error: msgspec.ValidationError) -> str:
    """Return which part of the value msgspec found wrong, as a path from `value`."""
    message = str(error)
    path = re.search(r"at `\$([^`]*)`", message)
    missing = re.search(r"required field `([^`]*)`", message)
    return f"value{path[1] if path else ''}{f'.{missing[1]}' if missing else ''}"


_CHECKS: Final[tuple[Callable[[Event], _Findings], ...]] = (
    _check_type,
    _check_alias,
    _check_enumerated,
    _check_tier,
    _check_review,
    _check_transition_source,
    _check_triple,
    _check_started_at,
    _check_value,
)

CODES: Final = (
    "duplicate_key",
    "unknown_event_type",
    "signal_alias_conflict",
    "unknown_value",
    "tier_mismatch",
    "review_not_offered",
    "transition_source_misplaced",
    "correlation_missing",
    "assertion_missing",
    "started_at_invalid",
    "value_shape",
    "unknown_phase",
)
"""Every code of a line that is accepted; refused lines carry the protocol's line error codes."""
