"""`etude examine SESSION`: of a stored session, before and after its report is made."""

import json
from collections.abc import Callable, Coroutine
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from etude.cli.examine import examine
from etude.cli.installation import make_folder
from etude.clock import RandomIds, SystemClock
from etude.errors import EtudeError
from etude.events.ndjson import decode_line
from etude.examiner import repository as reports
from etude.examiner.examining import make_report
from etude.examiner.report import report_bytes
from etude.examiner.repository import RevisionRow
from etude.files import Files
from etude.rubric.library import RubricLibrary, rubric_digest, rubric_json
from etude.sessions import repository
from etude.sessions.ingest import Ingest
from etude.sessions.server_events import server_upload
from etude.store import Database
from etude.testing.samples import read_sample, sample_lines
from etude.testing.school import School

SESSION = "s-abc-123"
RUBRIC = RubricLibrary.load().get("violin-basic")
app = typer.Typer()
app.command()(examine)
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def data(tmp_path: Path, sqlite_url: str, run: Run) -> Path:
    """An installation that holds the sample session."""
    folder = tmp_path / "data"
    make_folder(Files(), folder)
    Path(sqlite_url.removeprefix("sqlite:///")).rename(folder / "etude.db")

    async def fill() -> None:
        async with await Database.open(f"sqlite:///{folder / 'etude.db'}") as database:
            school = School(database, run)
            await school.furnish()
            await school.send(school.device("toy-1"), SESSION, read_sample("violin-3min"))

    run(fill())
    return folder


async def keep_report(data: Path, **changed: object) -> None:
    """Store revision 1 as the worker does."""
    events = [decode_line(line) for line in sample_lines("violin-3min")]
    made = make_report(events, RUBRIC, locale="en", clock=SystemClock(), ids=RandomIds(), media=())
    made = msgspec.structs.replace(made, **changed)
    async with (
        await Database.open(f"sqlite:///{data / 'etude.db'}") as database,
        database.transaction() as work,
    ):
        record = await repository.find(work.connection, SESSION)
        assert record is not None
        row = RevisionRow(
            session_key=record.session_key,
            revision=1,
            report_id=made.report_id,
            digest=made.digest,
            events_digest=made.inputs.events_digest,
            rubric_digest=rubric_digest(RUBRIC),
            overall_score=89,
            body=report_bytes(made),
            made_us=1,
        )
        await reports.add_revision(work, row, rubric_json(RUBRIC))
        head = await reports.head(work.connection, record.session_key)
        await reports.save_head(work, msgspec.structs.replace(head, revision=1))


async def send_late(data: Path) -> None:
    """Store one more event of the session."""
    late = json.loads(sample_lines("violin-3min")[5]) | {"event_id": "late"}
    async with await Database.open(f"sqlite:///{data / 'etude.db'}") as database:
        async with database.read() as connection:
            record = await repository.find(connection, SESSION)
        assert record is not None
        await Ingest(database, SystemClock()).receive(
            server_upload(record, [json.dumps(late).encode()])
        )


def examined(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--data", str(data)])


def test_a_session_without_a_report_is_examined_now(data: Path) -> None:
    """Nothing is stored; there is nothing to verify yet."""
    ended = examined(data, SESSION, "--json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["examiner_assessment"]["overall_score"] == 89
    assert examined(data, SESSION, "--verify").exit_code == 2


def test_the_stored_report_is_shown_and_holds(data: Path, run: Run) -> None:
    """The revision as it was made, verified by the rubric that was kept with it."""
    run(keep_report(data, report_id="r-kept"))
    ended = examined(data, SESSION, "--json")
    assert json.loads(ended.stdout)["report_id"] == "r-kept"
    assert examined(data, SESSION, "--verify").exit_code == 0
    other = json.loads(examined(data, SESSION, "--json", "--locale", "zh-CN").stdout)
    assert other["inputs"]["locale"] == "zh-CN"


def test_a_stored_report_that_was_changed_is_found_out(data: Path, run: Run) -> None:
    """Exit code 1, and the digest is named."""
    run(keep_report(data, rubric_title="Other"))
    ended = examined(data, SESSION, "--verify", "--json")
    assert ended.exit_code == 1
    assert {one["part"] for one in json.loads(ended.stdout)["differences"]} == {"digest", "field"}


def test_a_report_holds_although_events_came_and_the_rubric_changed(
    data: Path, run: Run, tmp_path: Path
) -> None:
    """The latest revision, and one in a file: each by what it was made from, at any time."""
    run(keep_report(data))
    first = tmp_path / "first.json"
    first.write_text(examined(data, SESSION, "--json").stdout, "utf-8")
    page = tmp_path / "page.html"
    assert examined(data, SESSION, "--html", str(page)).exit_code == 0
    run(send_late(data))
    (data / "rubrics").mkdir(exist_ok=True)
    shipped = files("etude.rubric").joinpath("rubrics/violin-basic.yaml").read_text("utf-8")
    (data / "rubrics" / "mine.yaml").write_text(
        shipped.replace("threshold_s: 60", "threshold_s: 9")
    )
    assert examined(data, SESSION, "--verify").exit_code == 0
    assert examined(data, SESSION, "--verify", "--report", str(first)).exit_code == 0
    before = page.read_bytes()
    assert examined(data, SESSION, "--html", str(page)).exit_code == 0
    assert page.read_bytes() == before
    assert examined(data, SESSION, "--verify", "--rubric", "violin-basic").exit_code == 1
    anew = json.loads(examined(data, SESSION, "--json", "--rubric", "violin-basic").stdout)
    assert anew["inputs"]["event_count"] == 14


@pytest.mark.parametrize("count", [-1, 10**30])
def test_a_report_in_a_file_that_counts_wrongly_does_not_hold(
    data: Path, run: Run, tmp_path: Path, count: int
) -> None:
    """However wrongly: it is told what differs."""
    run(keep_report(data))
    told = json.loads(examined(data, SESSION, "--json").stdout)
    told["inputs"]["event_count"] = count
    file = tmp_path / "told.json"
    file.write_text(json.dumps(told))
    ended = examined(data, SESSION, "--verify", "--report", str(file))
    assert ended.exit_code in {1, 2}, ended.output
    assert ended.exception is None or isinstance(ended.exception, EtudeError | SystemExit)


def test_an_unknown_session_is_told(data: Path) -> None:
    """With the usual code."""
    ended = examined(data, "s-unheard-of")
    assert isinstance(ended.exception, EtudeError)
    assert ended.exception.code == "SESSION_UNKNOWN"
