"""The up to three sentences of a recap: what went well, said warmly, without a score.

Order (`docs/rules.md 12`): improvement, streak, achievement, observation; then confidence; then
time. A signal that has no sentence of its own is praised without being named: ids are not for
learners.
"""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import msgspec

from etude.events.model import Event
from etude.i18n import catalogue

MAX_HIGHLIGHTS: Final = 3

_RANK: Final = {"improvement": 0, "streak": 1, "achievement": 2}
_OBSERVATION_RANK: Final = 3
_UNSAID_CONFIDENCE: Final = 0.5  # as it weighs in scoring (`docs/rules.md 1`)


class Highlight(msgspec.Struct, frozen=True):
    """One sentence, and the event that it is about."""

    event_id: str
    sentence: str


def choose(positives: Iterable[Event], locale: str) -> list[Highlight]:
    """Return the strongest of `positives` as sentences in `locale`; none is said twice."""
    chosen: dict[str, Highlight] = {}
    for event in sorted(positives, key=_strength):
        sentence = say(event, locale)
        chosen.setdefault(sentence, Highlight(event.event_id, sentence))
        if len(chosen) == MAX_HIGHLIGHTS:
            break
    return list(chosen.values())


def say(event: Event, locale: str) -> str:
    """Return the sentence about one positive event in `locale`."""
    kind = event.event_type if event.event_type in _RANK else "observation"
    values: dict[str, int] = {}
    points, length = _points_gained(event), _streak_length(event)
    if kind == "improvement" and points is not None:
        kind, values = "improvement_by", {"points": points}
    elif kind == "streak" and length is not None:
        kind, values = "streak_of", {"length": length}
    messages = catalogue(locale)
    for key in (f"recap.{kind}.{event.signal}", f"recap.{kind}.any"):
        if key in messages:
            return messages[key].format(**values)
    raise KeyError(key)


def _strength(event: Event) -> tuple[int, float, float, str]:
    confidence = _UNSAID_CONFIDENCE if event.confidence is None else event.confidence
    rank = _RANK.get(event.event_type, _OBSERVATION_RANK)
    return (rank, -confidence, event.ts, event.event_id)


def _points_gained(event: Event) -> int | None:
    """Return the gain of a ratio in whole percentage points; from two on it is worth a number."""
    before, now = _number(event, "previous_accuracy"), _number(event, "current_accuracy")
    if before is None or now is None or not 0 <= before < now <= 1:
        return None
    gained = (Decimal(str(now)) - Decimal(str(before))) * 100
    points = int(gained.quantize(Decimal(1), ROUND_HALF_UP))
    return points if points > 1 else None


def _streak_length(event: Event) -> int | None:
    length = _number(event, "streak_length")
    return int(length) if length is not None and length == int(length) and length > 1 else None


def _number(event: Event, name: str) -> float | None:
    value = event.value.get(name) if isinstance(event.value, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
