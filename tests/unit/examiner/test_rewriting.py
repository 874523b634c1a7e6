"""Rewording by a model: the check decides, and no model delays or breaks a report."""

import asyncio

import pytest

from etude.clock import RandomIds, SystemClock
from etude.events.ndjson import decode_line
from etude.examiner.examining import make_report
from etude.examiner.report import Report
from etude.examiner.rewriting import Ask, reworded
from etude.examiner.verify import verify
from etude.rubric.library import RubricLibrary
from etude.testing.samples import sample_lines

RUBRIC = RubricLibrary.load().get("violin-basic")
EVENTS = [decode_line(line) for line in sample_lines("violin-3min")]
REPORT = make_report(EVENTS, RUBRIC, locale="en", clock=SystemClock(), ids=RandomIds())


def run(ask: Ask, timeout_s: float = 5.0) -> Report:
    return asyncio.run(reworded(REPORT, ask, timeout_s=timeout_s))


async def faithful(prompt: str) -> str:
    if "91%" in prompt:
        return "Bar 1 was in tune to 91% [e006]."
    return "It was good [e999]." if "Tone" in prompt else "It was right 7 times."


def test_what_is_faithful_is_taken_and_the_rest_is_not() -> None:
    """Intonation is reworded; an invented event and an invented number leave the template."""
    intonation, rhythm, tone, posture = run(faithful).examiner_assessment.evidence_chain
    assert (intonation.narrative, intonation.narrative_source) == (
        "Bar 1 was in tune to 91% [e006].",
        "model",
    )
    assert (rhythm, tone, posture) == REPORT.examiner_assessment.evidence_chain[1:]


def test_a_reworded_report_still_verifies() -> None:
    """The digest is of the templates; a reworded text is checked against the evidence again."""
    made = run(faithful)
    assert made.digest == REPORT.digest
    assert verify(made, EVENTS, RUBRIC).holds


async def broken(_: str) -> str:
    message = "no"
    raise OSError(message)


async def hanging(_: str) -> str:
    # not even cancelled when it is asked to be
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if asyncio.current_task() is None:
                raise
            return "late"


@pytest.mark.parametrize("ask", [broken, hanging])
def test_a_model_that_fails_or_hangs_changes_nothing(ask: Ask) -> None:
    """The report is as it was."""
    assert run(ask, timeout_s=0.05) == REPORT
