"""Making a report: scoring, words and digests put together, from inputs and nothing else.

    report = make_report(events, rubric, history, locale="en", clock=clock, ids=ids)
    store(report_bytes(report))

The same inputs give the same report on every machine, but for its stamp.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Final

import msgspec

from etude.clock import Clock, Ids
from etude.events.model import Event
from etude.examiner.assessment import Assessment, DimensionResult, GateResult
from etude.examiner.digests import events_digest
from etude.examiner.errors import NoEventsError, SessionsMixedError
from etude.examiner.exact import half_up
from etude.examiner.growth import growth_of, measures_of
from etude.examiner.journey import EarlierSession, of_journey
from etude.examiner.ledger_notes import entry, recordings_named, recordings_of
from etude.examiner.narrative import narrate
from etude.examiner.recommendations import next_step
from etude.examiner.report import (
    EvidenceItem,
    ExaminerAssessment,
    Gap,
    HistoryInput,
    Inputs,
    JourneyContext,
    JourneySession,
    Locale,
    LowConfidenceItem,
    RecapSummary,
    Report,
    RubricInput,
    SafetyResult,
    Stamp,
    Uncertainty,
    digest_of_report,
    practised_in,
)
from etude.examiner.score import score
from etude.i18n import text
from etude.rubric.compiling import compile_table
from etude.rubric.library import rubric_digest
from etude.rubric.model import Rubric, title_of
from etude.rubric.placing import ordered
from etude.rubric.polarity import PolarityTable
from etude.rubric.recap import recap

EXAMINER_VERSION: Final = 1
"""Counts up with every change of arithmetic or words: older reports then say why they differ."""
_TEN_THOUSAND: Final = 10_000


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report is made from.

    Attributes:
        events: everything stored of the session, in any order.
        rubric: how it is read.
        history: what is known of other sessions; those of the same journey are looked at. It is for
            the caller to give earlier ones only.
        media: sha256 of the recordings that have arrived; None = not known.
        locale: of the words.
    """

    events: Sequence[Event]
    rubric: Rubric
    history: Sequence[EarlierSession] = ()
    media: Collection[str] | None = None
    locale: Locale = "en"


def make_report(  # noqa: PLR0913 - inputs and stamp, each by name
    events: Iterable[Event],
    rubric: Rubric,
    history: Sequence[EarlierSession] = (),
    *,
    locale: Locale,
    clock: Clock,
    ids: Ids,
    revision: int = 1,
    started_at: datetime | None = None,
    media: Collection[str] | None = None,
) -> Report:
    """Return the report of one session; arguments as in `Material` and `Stamp`.

    Raises:
        NoEventsError: there are no events.
        SessionsMixedError: they are of several sessions.
    """
    began_s = clock.monotonic()
    material = Material(
        events=tuple(events), rubric=rubric, history=history, media=media, locale=locale
    )
    stamp = Stamp(
        report_id=ids.new(),
        revision=revision,
        generated_at=clock.now(),
        processing_time_s=0.0,
        started_at=started_at,
    )
    made = assemble(material, stamp)
    took_s = round(clock.monotonic() - began_s, 3)
    return msgspec.structs.replace(made, processing_time_s=took_s)


def assemble(material: Material, stamp: Stamp) -> Report:
    """Return the report of `material` with a given stamp. Raises what `make_report` does."""
    events = ordered(material.events)
    if not events:
        raise NoEventsError
    if len({event.session_id for event in events}) > 1:
        raise SessionsMixedError(sessions=len({event.session_id for event in events}))
    session_id = events[0].session_id
    journey_id = next((event.journey_id for event in events if event.journey_id), None)
    journey = of_journey(material.history, journey_id, session_id)
    found = score(events, material.rubric)
    made = Report(
        report_id=stamp.report_id,
        session_id=session_id,
        revision=stamp.revision,
        generated_at=stamp.generated_at,
        started_at=stamp.started_at,
        processing_time_s=stamp.processing_time_s,
        rubric_version=material.rubric.version,
        rubric_title=title_of(material.rubric.locale, material.rubric.id, material.locale),
        courseware=practised_in(events),
        recap_summary=_recap(events, material),
        examiner_assessment=_assessment(session_id, found, events, journey, material),
        uncertainty={one.dimension: _uncertainty(one, material.rubric) for one in found.dimensions},
        journey_context=_context(journey_id, journey),
        gaps=tuple(_gaps(events, material.locale)),
        recordings=recordings_of(events, material.media),
        inputs=_inputs(events, found, journey, material),
    )
    return msgspec.structs.replace(made, digest=digest_of_report(made))


def _recap(events: Sequence[Event], material: Material) -> RecapSummary:
    made = recap(events, PolarityTable(compile_table(material.rubric)), material.locale)
    return RecapSummary(
        highlights=made.highlights,
        highlight_events=made.highlight_event_ids,
        phase_summary=made.phase_summary,
        uncertainty_count=made.uncertainty_count,
        recap_version=made.recap_version,
    )


def _assessment(
    session_id: str,
    found: Assessment,
    events: Sequence[Event],
    journey: Sequence[EarlierSession],
    material: Material,
) -> ExaminerAssessment:
    rubric, locale = material.rubric, material.locale
    by_id = {event.event_id: event for event in events}
    measures = measures_of(found)
    growth = growth_of(session_id, measures, journey, rubric, locale)
    entries = [
        (item.dimensions, entry(item, by_id[item.event_id], material.media, locale))
        for item in found.ledger
    ]

    def evidence(one: DimensionResult) -> EvidenceItem:
        own = tuple(said for names, said in entries if one.dimension in names)
        title = title_of(rubric.dimensions[one.dimension].title, one.dimension, locale)
        return EvidenceItem(
            dimension=one.dimension,
            title=title,
            score=one.score,
            evidence_events=one.evidence,
            narrative=narrate(one, rubric, by_id, growth, own, locale),
            low_confidence_items=own,
        )

    return ExaminerAssessment(
        overall_score=found.overall_score,
        uncapped_score=found.uncapped_score,
        coverage=_rounded(found.coverage),
        dimension_scores={one.dimension: one.score for one in found.dimensions},
        evidence_chain=tuple(map(evidence, found.dimensions)),
        other_low_confidence_items=_without_dimension(entries),
        growth_indicators=growth,
        recommendations=(next_step(found, rubric, locale),),
        safety=tuple(
            _safety(index, gate, rubric, locale) for index, gate in enumerate(found.gates)
        ),
        measures=measures,
    )


def _without_dimension(
    entries: Iterable[tuple[tuple[str, ...], LowConfidenceItem]],
) -> tuple[LowConfidenceItem, ...]:
    return tuple(said for names, said in entries if not names)


def _safety(index: int, gate: GateResult, rubric: Rubric, locale: Locale) -> SafetyResult:
    title = title_of(rubric.signals[gate.signal].title, gate.signal, locale)
    status = {None: "not_observed", True: "failed", False: "held"}[gate.failed]
    if status == "failed":
        said = title_of(rubric.safety_gates[index].says, "", locale)
        why = said or text("examiner.safety.broken", locale, title=title)
        says = text("examiner.safety.failed", locale, why=why, cap=gate.cap)
    else:
        says = text(f"examiner.safety.{status}", locale, title=title)
    return SafetyResult(
        signal=gate.signal,
        title=title,
        status=status,  # type: ignore[arg-type]  # one of the three above
        cap=gate.cap,
        says=says,
        evidence_events=gate.evidence,
    )


def _uncertainty(one: DimensionResult, rubric: Rubric) -> Uncertainty:
    total = sum((part.weight for part in one.parts), Fraction(0))
    seen = sum((part.weight for part in one.parts if part.value is not None), Fraction(0))
    low, high = rubric.dimensions[one.dimension].scale
    return Uncertainty(
        status="not_observed" if one.score is None else "observed",
        interval=one.interval,
        scale=(low, high),
        weight=float(one.weight),
        coverage=_rounded(seen / total),
        observations=len(one.evidence),
    )


def _context(journey_id: str | None, journey: Sequence[EarlierSession]) -> JourneyContext:
    return JourneyContext(
        journey_id=journey_id,
        sessions=tuple(
            JourneySession(
                session_id=one.session_id,
                started_at=one.started_at,
                overall_score=one.overall_score,
            )
            for one in journey
        ),
    )


def _gaps(events: Sequence[Event], locale: Locale) -> Iterable[Gap]:
    """Yield what `seq` says is missing before the last event that has arrived."""
    expected = 1
    for number in sorted({event.seq for event in events if event.seq is not None}):
        if number > expected:
            key = "examiner.gap.one" if number - expected == 1 else "examiner.gap.many"
            note = text(key, locale, first=expected, last=number - 1)
            yield Gap(first=expected, last=number - 1, note=note)
        expected = number + 1


def _inputs(
    events: Sequence[Event],
    found: Assessment,
    journey: Sequence[EarlierSession],
    material: Material,
) -> Inputs:
    named = recordings_named(events)
    arrived = None if material.media is None else tuple(sorted(named & set(material.media)))
    return Inputs(
        events_digest=events_digest(events),
        event_count=len(events),
        rubric=RubricInput(
            id=material.rubric.id,
            version=material.rubric.version,
            digest=rubric_digest(material.rubric),
        ),
        history=tuple(
            HistoryInput(session_id=one.session_id, digest=one.digest, values=one)
            for one in journey
        ),
        methods=found.methods,
        media=arrived,
        locale=material.locale,
        examiner_version=EXAMINER_VERSION,
    )


def _rounded(share: Fraction) -> float:
    return half_up(share * _TEN_THOUSAND) / _TEN_THOUSAND
