"""Letting a model reword the report: only the words, only what the check lets through.

The report is complete before anybody is asked, so that a model that hangs, fails or makes things up
changes nothing. What was reworded says so (`narrative_source: model`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from etude.examiner.citations import check_narrative, evidence_of
from etude.examiner.report import EvidenceItem, Report
from etude.i18n import text

Ask = Callable[[str], Awaitable[str]]
"""Takes a prompt, returns what the model wrote. May raise anything, and may take for ever."""

TIMEOUT_S: Final = 20.0
MOST_CITED: Final = 50
"""So many events a model is told of; a few sentences cite fewer."""
_log: Final = structlog.get_logger()


async def reworded(report: Report, ask: Ask, *, timeout_s: float = TIMEOUT_S) -> Report:
    """Return the report with the narratives that a model reworded and the check accepted.

    Args:
        report: as `make_report` returned it: every narrative is the template's.
        ask: the model.
        timeout_s: for all dimensions together; what is not there by then keeps its template.
    """
    chain = report.examiner_assessment.evidence_chain
    told = [item for item in chain if item.score is not None]
    tasks = {item.dimension: asyncio.create_task(_reworded(item, report, ask)) for item in told}
    if not tasks:
        return report
    try:
        done, _ = await asyncio.wait(tasks.values(), timeout=timeout_s)
    finally:
        for task in tasks.values():  # not awaited: one that will not be cancelled delays nothing
            task.cancel()
    new = {name: task.result() for name, task in tasks.items() if task in done}
    assessment = msgspec.structs.replace(
        report.examiner_assessment,
        evidence_chain=tuple(new.get(item.dimension) or item for item in chain),
    )
    return msgspec.structs.replace(report, examiner_assessment=assessment)


async def _reworded(item: EvidenceItem, report: Report, ask: Ask) -> EvidenceItem | None:
    try:
        said = (await ask(prompt(item, report))).strip()
    except Exception as error:  # noqa: BLE001 - a model's failures are its own; the template stands
        _log.warning("model failed", action="examiner.reword", error=type(error).__name__)
        return None
    problems = check_narrative(said, evidence_of(item, report))
    if problems:
        reasons = sorted({one.reason for one in problems})
        _log.info("text refused", action="examiner.reword", reasons=reasons)
        return None
    return msgspec.structs.replace(item, narrative=said, narrative_source="model")


def prompt(item: EvidenceItem, report: Report) -> str:
    """Return what the model is asked: rules and the template; nothing of the learner but events."""
    return text(
        "examiner.prompt",
        report.inputs.locale,
        template=item.narrative,
        events=", ".join(item.evidence_events[:MOST_CITED]),
    )
