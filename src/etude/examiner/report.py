"""The report, in the shape of the protocol's own example, and its bytes.

Fields: `docs/examiner.md §What a report says`. Everything but the stamp (ids, times, number of the
revision) follows from the inputs, whose digests it names; `digest` covers that part, so that
whoever has the inputs can make it again and compare.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from etude.events.canonical import canonical
from etude.events.model import Event
from etude.examiner.assessment import ItemState
from etude.examiner.errors import ReportUnreadableError
from etude.examiner.journey import EarlierSession, Measure, Moment
from etude.rubric.recap import PhaseCounts

Locale = Literal["en", "zh-CN"]
Status = Literal["observed", "not_observed"]
Recording = Literal["stored", "missing", "never_recorded", "unknown"]
_Named = Annotated[str, Meta(min_length=1, max_length=128)]
_Titled = Annotated[str, Meta(max_length=500)]
Trend = Literal["improving", "steady", "declining", "not_enough_yet", "not_observed"]


class RecapSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the edge told the learner at once; the server makes it again by the same function."""

    generated_by: Literal["edge"] = "edge"
    tone: Literal["coach"] = "coach"
    highlights: tuple[str, ...]
    highlight_events: tuple[str, ...]
    phase_summary: dict[str, PhaseCounts]
    uncertainty_count: int
    recap_version: int


class LowConfidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the uncertainty ledger (`docs/rules.md 28`).

    Attributes:
        cloud_assessment: what the reviewer says was there; None = no reviewer said anything.
        note: what became of it, in the report's language.
        recording: whether there is something to look at again.
        review_id: the event that holds the verdict.
    """

    event_id: str
    signal: str
    edge_confidence: float | None
    cloud_review_available: bool
    contested: bool
    state: ItemState
    cloud_assessment: str | None
    note: str
    recording: Recording
    review_id: str | None = None
    review_method: str | None = None


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension: its score, the events that it stands on, and what they say in words."""

    dimension: str
    title: str
    score: int | None
    evidence_events: tuple[str, ...]
    narrative: str
    narrative_source: Literal["template", "model"] = "template"
    low_confidence_items: tuple[LowConfidenceItem, ...] = ()


class GrowthValue(msgspec.Struct, frozen=True, kw_only=True):
    """One session's number in a comparison."""

    session_id: str
    value: float


class GrowthIndicator(msgspec.Struct, frozen=True, kw_only=True):
    """A metric along the journey; `sessions_compared` counts this one too."""

    metric: str
    title: str
    trend: Trend
    sessions_compared: int
    detail: str
    values: tuple[GrowthValue, ...]


class SafetyResult(msgspec.Struct, frozen=True, kw_only=True):
    """A safety gate; a failed one caps the overall score and says why."""

    signal: str
    title: str
    status: Literal["held", "failed", "not_observed"]
    cap: int
    says: str
    evidence_events: tuple[str, ...]


class ExaminerAssessment(msgspec.Struct, frozen=True, kw_only=True):
    """What the examiner found. A score of None is "not observed", never 0."""

    overall_score: int | None
    uncapped_score: int | None
    coverage: float
    """Weight of the scored dimensions over the weight of all, 0 to 1."""
    dimension_scores: dict[str, int | None]
    evidence_chain: tuple[EvidenceItem, ...]
    other_low_confidence_items: tuple[LowConfidenceItem, ...]
    """Entries of the ledger that belong to no dimension."""
    growth_indicators: tuple[GrowthIndicator, ...]
    recommendations: tuple[str, ...]
    safety: tuple[SafetyResult, ...]
    measures: dict[str, Measure]


class Uncertainty(msgspec.Struct, frozen=True, kw_only=True):
    """How sure a dimension's score is.

    Attributes:
        interval: 95 %, on the dimension's scale.
        weight: of the dimension in the overall score, as the rubric says it.
        coverage: weight of its observed signals over the weight of all, 0 to 1.
        observations: events that weigh.
    """

    status: Status
    interval: tuple[float, float] | None
    scale: tuple[int, int]
    weight: float
    coverage: float
    observations: int


class JourneySession(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier session of the journey."""

    session_id: str
    started_at: Moment | None
    overall_score: int | None


class JourneyContext(msgspec.Struct, frozen=True, kw_only=True):
    """The journey that the session is part of, and its earlier sessions, oldest first."""

    journey_id: str | None
    sessions: tuple[JourneySession, ...]


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Events that have not arrived, by `seq`."""

    first: int
    last: int
    note: str


class MissingRecording(msgspec.Struct, frozen=True, kw_only=True):
    """A recording that an event names and that has not arrived."""

    event_id: str
    sha256: str


class Recordings(msgspec.Struct, frozen=True, kw_only=True):
    """What cannot be listened to: not arrived, and never recorded, apart (`docs/rules.md 5`).

    `missing` None: made where nobody knows which recordings arrived.
    """

    missing: tuple[MissingRecording, ...] | None
    never_recorded: tuple[str, ...]


class RubricInput(msgspec.Struct, frozen=True, kw_only=True):
    """Which rubric, and the digest of what it says."""

    id: str
    version: str
    digest: str


class HistoryInput(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier session that was looked at: its digest, and what the digest is of."""

    session_id: str
    digest: str
    values: EarlierSession


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All that the report was made from; nothing else was read.

    Attributes:
        methods: what made the server-made evidence.
        media: sha256 of the recordings that had arrived; None = not known.
        examiner_version: of the arithmetic and the templates.
    """

    events_digest: str
    event_count: int
    rubric: RubricInput
    history: tuple[HistoryInput, ...]
    methods: tuple[str, ...]
    media: tuple[str, ...] | None
    locale: Locale
    examiner_version: int


class Practised(msgspec.Struct, frozen=True, kw_only=True):
    """The scene of a published course that was practised, as `session_start.meta` says it.

    Attributes:
        title: of the courseware; empty = the device did not say.
        scene_title: of the scene; empty likewise.
        assignment_id: by which it was given out; None = by none.
    """

    courseware_id: _Named
    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    content_hash: _Named
    scene_id: _Named
    title: _Titled = ""
    scene_title: _Titled = ""
    assignment_id: _Named | None = None


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What a report has of its own making: no input leads to it, so no digest covers it."""

    report_id: str
    revision: Annotated[int, Meta(ge=1)]
    generated_at: Moment
    processing_time_s: float
    started_at: Moment | None = None


class SummaryCard(msgspec.Struct, frozen=True, kw_only=True):
    """The card that was made of the report."""

    card_id: str
    teacher_view_url: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report as stored and sent. `courseware` is absent where no course was practised.

    `not_reworded` is only ever sent: the code of the error that kept a model from being asked for
    other words, such as `QUOTA_SPENT`; absent where none did.
    """

    report_id: str
    session_id: str
    revision: int
    generated_at: Moment
    started_at: Moment | None
    processing_time_s: float
    rubric_version: str
    rubric_title: str
    courseware: Practised | msgspec.UnsetType = msgspec.UNSET
    recap_summary: RecapSummary
    examiner_assessment: ExaminerAssessment
    uncertainty: dict[str, Uncertainty]
    journey_context: JourneyContext
    gaps: tuple[Gap, ...]
    recordings: Recordings
    inputs: Inputs
    digest: str = ""
    summary_card: SummaryCard | None = None
    not_reworded: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def rubric_key(self) -> str:
        """`violin-basic@v1.2`."""
        return f"{self.inputs.rubric.id}@{self.inputs.rubric.version}"


# What is no part of the digest: the stamp, and what comes later.
_STAMPED: Final = (
    "report_id",
    "revision",
    "generated_at",
    "started_at",
    "processing_time_s",
    "summary_card",
    "not_reworded",
    "digest",
)
_ESTIMATED: Final = "started_at"


def report_bytes(report: Report) -> bytes:
    """Return a report as canonical JSON (RFC 8785), which is what is stored and sent."""
    return canonical(msgspec.to_builtins(report))


def read_report(data: bytes, file: str = "report") -> Report:
    """Read a report; `file` names it for the message.

    Raises:
        ReportUnreadableError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportUnreadableError(file=file, reason=str(error)) from error


def reproducible(report: Report) -> dict[str, Any]:
    """Return the part of a report that follows from its inputs, as JSON values.

    Times of earlier sessions are left out too: without a clock that can be believed they are
    estimates, and another database has others.
    """
    fields: dict[str, Any] = msgspec.to_builtins(report)
    for name in _STAMPED:
        fields.pop(name, None)
    for session in fields["journey_context"]["sessions"]:
        session.pop(_ESTIMATED)
    for earlier in fields["inputs"]["history"]:
        earlier["values"].pop(_ESTIMATED)
    return fields


def digest_of_report(report: Report) -> str:
    """Return the sha256 of the reproducible part; made before a model rewrites any words."""
    return hashlib.sha256(canonical(reproducible(report))).hexdigest()


def as_earlier(report: Report) -> EarlierSession | None:
    """Return what later sessions of the journey compare with; None outside any journey."""
    journey_id = report.journey_context.journey_id
    if journey_id is None:
        return None
    return EarlierSession(
        session_id=report.session_id,
        journey_id=journey_id,
        started_at=_started(report),
        rubric=report.rubric_key,
        overall_score=report.examiner_assessment.overall_score,
        methods=report.inputs.methods,
        measures=report.examiner_assessment.measures,
    )


def practised_in(events: Iterable[Event]) -> Practised | msgspec.UnsetType:
    """Return what a session says of the course it practised; nothing of what is no pin."""
    start = next((one for one in events if one.event_type == "session_start"), None)
    meta = (start.meta if start else None) or {}
    pin = meta.get("courseware")
    if not isinstance(pin, dict):
        return msgspec.UNSET
    try:
        assignment = {"assignment_id": meta.get("assignment_id")}
        return msgspec.convert(pin | assignment, Practised)
    except msgspec.ValidationError:
        return msgspec.UNSET


def _started(report: Report) -> datetime:
    return report.started_at or report.generated_at
