"""Verification: make a report again from its inputs and say what differs, by name.

Needed are the events, the rubric that the report names, and the report itself, which holds the rest
(values of earlier sessions, recordings at hand, language).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from etude.events.model import Event
from etude.examiner.citations import check_narrative, evidence_of
from etude.examiner.digests import events_digest
from etude.examiner.errors import ReportUnreadableError
from etude.examiner.examining import EXAMINER_VERSION, Material, assemble
from etude.examiner.report import EvidenceItem, Report, Stamp, digest_of_report, reproducible
from etude.rubric.library import rubric_digest
from etude.rubric.model import Rubric

Part = Literal["events", "rubric", "history", "examiner_version", "digest", "narrative", "field"]
MAX_FIELDS: Final = 20


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as the report says. `name`: which session, dimension or field."""

    part: Part
    name: str = ""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What came out: the digest made now, and every difference (none: the report holds)."""

    digest: str
    differences: tuple[Difference, ...]

    @property
    def holds(self) -> bool:
        """Whether the report is what its inputs give."""
        return not self.differences


def read_rubric_json(data: bytes) -> Rubric:
    """Return the rubric kept with a report (`etude.rubric.library.rubric_json`).

    Raises:
        ReportUnreadableError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Rubric)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportUnreadableError(file="rubric", reason=str(error)) from error


def verify(report: Report, events: Sequence[Event], rubric: Rubric) -> Verification:
    """Make `report` again from `events` and `rubric` and compare.

    Raises:
        NoEventsError, SessionsMixedError: these events have no report at all.
    """
    material = Material(
        events=events,
        rubric=rubric,
        history=[earlier.values for earlier in report.inputs.history],
        media=report.inputs.media,
        locale=report.inputs.locale,
    )
    made = assemble(material, _stamp(report))
    return Verification(
        digest=made.digest, differences=tuple(_differences(report, made, events, rubric))
    )


def _stamp(report: Report) -> Stamp:
    return Stamp(
        report_id=report.report_id,
        revision=report.revision,
        generated_at=report.generated_at,
        processing_time_s=report.processing_time_s,
        started_at=report.started_at,
    )


def _differences(
    report: Report, made: Report, events: Sequence[Event], rubric: Rubric
) -> Iterator[Difference]:
    if report.inputs.examiner_version != EXAMINER_VERSION:
        yield Difference(part="examiner_version", name=str(report.inputs.examiner_version))
    if report.inputs.events_digest != events_digest(events):
        yield Difference(part="events")
    if report.inputs.rubric.digest != rubric_digest(rubric):
        yield Difference(part="rubric")
    for earlier in report.inputs.history:
        if (earlier.values.session_id, earlier.values.digest) != (
            earlier.session_id,
            earlier.digest,
        ):
            yield Difference(part="history", name=earlier.session_id)
    plain, refused = _with_templates(report, made)
    for name in refused:
        yield Difference(part="narrative", name=name)
    if digest_of_report(plain) != report.digest:
        yield Difference(part="digest")
    yield from _fields(reproducible(plain), reproducible(made))


def _with_templates(report: Report, made: Report) -> tuple[Report, list[str]]:
    """Put the templates back in place of what a model reworded, and name what it may not say."""
    templates = {one.dimension: one for one in made.examiner_assessment.evidence_chain}
    refused: list[str] = []

    def plain(item: EvidenceItem) -> EvidenceItem:
        template = templates.get(item.dimension)
        if item.narrative_source == "template" or template is None:
            return item
        if check_narrative(item.narrative, evidence_of(template, made)):
            refused.append(item.dimension)
        return msgspec.structs.replace(
            item, narrative=template.narrative, narrative_source="template"
        )

    chain = tuple(map(plain, report.examiner_assessment.evidence_chain))
    assessment = msgspec.structs.replace(report.examiner_assessment, evidence_chain=chain)
    return msgspec.structs.replace(report, examiner_assessment=assessment), refused


def _fields(said: object, made: object) -> list[Difference]:
    """Name the first fields that differ, by path."""
    return [
        Difference(part="field", name=path)
        for path, _ in zip(_differing(said, made, ""), range(MAX_FIELDS), strict=False)
    ]


def _differing(said: Any, made: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(said, dict) and isinstance(made, dict):
        for name in sorted(said.keys() | made.keys()):
            below = f"{path}.{name}" if path else name
            yield from _differing(said.get(name), made.get(name), below)
    elif isinstance(said, list | tuple) and isinstance(made, list | tuple):
        if len(said) != len(made):
            yield path
            return
        for index, (one, other) in enumerate(zip(said, made, strict=True)):
            yield from _differing(one, other, f"{path}[{index}]")
    elif said != made:
        yield path
