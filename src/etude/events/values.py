"""What `value` usually holds, by event type or signal (`docs/rules.md 2`).

A check for producers, no gate: a value of another shape is stored and linted. Fields that recap and
report read are required, others may be added freely. An empty value says nothing and is not
linted.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

Ratio = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class SessionStartValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of `session_start`: what is practised, by which rubric."""

    instrument: str | None = None
    piece: str | None = None
    rubric_version: str | None = None


class SessionFocusValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `session_focus`: the opening ritual."""

    focus_duration_s: Seconds
    ritual_type: str | None = None


class SessionEndValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `session_end`: durations as the device measured them."""

    total_duration_s: Seconds
    phases: dict[str, Seconds] | None = None


class PhaseTransitionValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `phase_transition`; `<from>_duration_s` may stand beside these."""

    from_: str = msgspec.field(name="from")
    to: str


class PhaseTimeoutValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `phase_timeout`: how long it took and what the learner chose (`docs/rules.md 10`)."""

    elapsed_s: Seconds
    threshold_s: Seconds
    user_response: Literal["continue", "proceed", "none"] | None = None


class PostureValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `posture_observation`."""

    correct: bool
    details: str | None = None


class PitchAccuracyValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of the signal `pitch_accuracy`."""

    accuracy: Ratio
    measure: int | None = None
    notes_correct: Count | None = None
    notes_total: Count | None = None


class ToneQualityValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of the signal `tone_quality`."""

    quality: str
    bow_pressure: str | None = None
    bow_speed: str | None = None


class AchievementValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `achievement`: what was fulfilled."""

    criteria_met: list[str]


class ImprovementValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `improvement`: ratios then and now."""

    previous_accuracy: Ratio
    current_accuracy: Ratio
    comparison_session: str | None = None


class StreakValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of `streak`."""

    streak_length: Count
    start_measure: int | None = None
    end_measure: int | None = None


class SelfAssessmentValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of the signal `self_assessment`: the learner's own word, 1 to 5 (`docs/rules.md 11`)."""

    student_rating: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None
    student_comment: str | None = None


class DoubtfulValue(msgspec.Struct, frozen=True, kw_only=True):
    """Of any observation that the edge is not sure of: what it may have seen."""

    edge_assessment: str
    note: str | None = None


Shape = type[msgspec.Struct]

SHAPE_OF_SIGNAL: Final[Mapping[str, Shape]] = {
    "pitch_accuracy": PitchAccuracyValue,
    "tone_quality": ToneQualityValue,
    "self_assessment": SelfAssessmentValue,
}
SHAPE_OF_TYPE: Final[Mapping[str, Shape]] = {
    "session_start": SessionStartValue,
    "session_focus": SessionFocusValue,
    "session_end": SessionEndValue,
    "phase_transition": PhaseTransitionValue,
    "phase_timeout": PhaseTimeoutValue,
    "posture_observation": PostureValue,
    "achievement": AchievementValue,
    "improvement": ImprovementValue,
    "streak": StreakValue,
}


def shape_of(event_type: str, signal: str, value: object) -> Shape | None:
    """Return the shape that `value` should have, `None` where any will do."""
    if value == {}:
        return None
    if isinstance(value, dict) and "edge_assessment" in value:
        return DoubtfulValue
    return SHAPE_OF_SIGNAL.get(signal) or SHAPE_OF_TYPE.get(event_type)
