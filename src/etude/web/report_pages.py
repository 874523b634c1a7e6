"""A stored report as a page."""

from collections.abc import Sequence
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncConnection

from etude.events.ndjson import decode_line
from etude.examiner import repository, revisions
from etude.examiner.page import Revision, render_page
from etude.examiner.report import Report
from etude.examiner.repository import RevisionNote, RevisionRow
from etude.rubric.model import Rubric
from etude.sessions.export import first_lines
from etude.sessions.records import SessionRow
from etude.web.services import Services


async def rendered(
    services: Services, session: SessionRow, row: RevisionRow, report: Report
) -> str:
    """Return the page of one revision, with the events that it was made from."""
    async with services.database.read() as connection:
        rubric = await revisions.rubric_of(connection, row)
        lines = await first_lines(connection, session.session_key, report.inputs.event_count)
        others = await _others(connection, session)
    return await services.in_thread(_rendered, report, lines, rubric, others)


async def _others(connection: AsyncConnection, session: SessionRow) -> list[Revision]:
    notes = await repository.revisions(connection, session.session_key)
    return [_linked(session, note) for note in reversed(notes)]


def _linked(session: SessionRow, note: RevisionNote) -> Revision:
    address = f"/api/v1/sessions/{quote(session.session_id, safe='')}/report"
    return Revision(
        revision=note.revision,
        generated_at=note.made_at,
        url=f"{address}?revision={note.revision}",
    )


def _rendered(
    report: Report, lines: Sequence[bytes], rubric: Rubric, others: Sequence[Revision]
) -> str:
    events = [decode_line(line, number) for number, line in enumerate(lines, 1)]
    return render_page(report, events, rubric, others)
