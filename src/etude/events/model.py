"""One event of a practice session, as the protocol defines it (`docs/events.md §Fields`).

An `Event` is what code works with; what is stored and sent is always the line itself. Reading and
writing lines is `etude.events.ndjson`.
"""

import math
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

TIER_HIGH_FROM: Final = 0.85
TIER_MEDIUM_FROM: Final = 0.5
"""Below this an observation is doubtful and must be offered for review."""

TIERS: Final = ("high", "medium", "low")
TRANSITION_SOURCES: Final = ("ai_detected", "user_manual", "timeout")
PERCEPTION_LEVELS: Final = ("L0", "L1", "L2")
PRIMITIVES: Final = ("presence", "sequence", "timing", "quality", "safety")
PHASES: Final = ("preparation", "operation", "cleanup")
SERVER_PRODUCER: Final = "server"

_AwareDatetime = Annotated[datetime, msgspec.Meta(tz=True)]


def derive_tier(confidence: float | None) -> str | None:
    """Return the alert tier of a confidence (0 to 1); none without one (`docs/rules.md 1`)."""
    if confidence is None:
        return None
    if confidence >= TIER_HIGH_FROM:
        return "high"
    return "medium" if confidence >= TIER_MEDIUM_FROM else "low"


def parse_started_at(value: object) -> datetime | None:
    """Return `meta.started_at` as an aware time; `None` unless it is RFC 3339 with an offset."""
    if not isinstance(value, str):
        return None
    try:
        return msgspec.convert(value, _AwareDatetime)
    except msgspec.ValidationError:
        return None


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event. Fields and their rules are those of `docs/events.md §Fields`.

    `signal` holds the signal whichever of `signal` and `signal_id` named it. `alert_tier` is
    derived from `confidence` when absent, and kept as sent when present. Fields that the protocol
    does not know are in `extra`. A decoded event remembers which keys it came with (`sent_keys`,
    in order) and which of them were null, so that encoding it again says the same; to change a
    decoded event, build a new one.
    """

    # gc=False: what JSON can say holds no cycle, and a recap makes hundreds of these at once.
    event_id: str
    session_id: str
    ts: float
    event_type: str
    signal: str
    phase: str | None = None
    value: Any = msgspec.field(default_factory=dict)
    confidence: float | None = None
    alert_tier: str | None = None
    cloud_review_available: bool = False
    transition_source: str | None = None
    meta: dict[str, Any] | None = None
    journey_id: str | None = None
    perception_level: str | None = None
    primitive: str | None = None
    correlation_id: str | None = None
    seq: int | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)
    sent_keys: tuple[str, ...] | None = None
    sent_nulls: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Derive the tier where none was given."""
        if self.alert_tier is None and self.confidence is not None:
            msgspec.structs.force_setattr(self, "alert_tier", derive_tier(self.confidence))

    @property
    def order_key(self) -> tuple[float, float, str]:
        """Its place in the session: `seq` or last, then `ts`, then id (`docs/rules.md 6`)."""
        return (math.inf if self.seq is None else self.seq, self.ts, self.event_id)

    @property
    def is_doubtful(self) -> bool:
        """Whether it may only be shown as uncertain (`docs/rules.md 12`)."""
        return (
            self.cloud_review_available
            or self.alert_tier == "low"
            or (self.confidence is not None and self.confidence < TIER_MEDIUM_FROM)
        )

    @property
    def started_at(self) -> datetime | None:
        """Wall-clock time of the session's begin as the device had it; `None` if not said."""
        return None if self.meta is None else parse_started_at(self.meta.get("started_at"))

    @property
    def is_server_made(self) -> bool:
        """Whether the server wrote it about another event (`docs/rules.md 9`)."""
        return self.meta is not None and self.meta.get("producer") == SERVER_PRODUCER


PROTOCOL_FIELDS: Final = (
    "event_id",
    "session_id",
    "ts",
    "event_type",
    "phase",
    "signal",
    "value",
    "confidence",
    "alert_tier",
    "cloud_review_available",
    "transition_source",
    "meta",
    "journey_id",
    "perception_level",
    "primitive",
    "correlation_id",
    "seq",
)
"""The protocol's field names, in the order in which a new event is written."""
