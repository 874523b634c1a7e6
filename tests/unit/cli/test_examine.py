"""`etude examine` on files: report, page, verification."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from etude.cli.bench.examine import examine as bench
from etude.cli.examine import examine
from etude.edge.journal import Journal
from etude.errors import EtudeError
from etude.events.ndjson import decode_line
from etude.testing.samples import read_sample, sample_lines

app = typer.Typer()
app.command()(examine)


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path / "data"))
    file = tmp_path / "events.jsonl"
    file.write_bytes(read_sample("violin-3min"))
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def code(ended: Result) -> str:
    assert isinstance(ended.exception, EtudeError)
    return ended.exception.code


def as_json(*arguments: object) -> Any:
    ended = run(*arguments, "--json")
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_a_file_is_examined_where_it_lies(sample: Path) -> None:
    """The rubric is the session's own; nothing is stored."""
    report = as_json(sample)
    assert report["examiner_assessment"]["overall_score"] == 89
    assert report["inputs"]["rubric"]["id"] == "violin-basic"
    assert not (sample.parent / "data").exists()


def test_a_journal_folder_is_the_same(sample: Path) -> None:
    """As the file of its events."""
    with Journal.open(sample.parent / "journals", "s-abc-123") as journal:
        for line in sample_lines("violin-3min"):
            journal.append(decode_line(line))
    folder = sample.parent / "journals" / "s-abc-123"
    assert as_json(folder)["digest"] == as_json(sample)["digest"]


@pytest.mark.parametrize(("locale", "word"), [("en", "Next step"), ("zh-CN", "下一步")])
def test_people_read_it_in_their_language(sample: Path, locale: str, word: str) -> None:
    """The text names scores, evidence, doubts and the next step."""
    ended = run(sample, "--locale", locale)
    assert ended.exit_code == 0
    assert all(said in ended.stdout for said in (word, "91", "[e006]", "e008"))


def test_how_much_a_score_is_of_stands_beside_it(sample: Path) -> None:
    """On its scale, with the share that was observed."""
    said = run(sample, "--locale", "en").stdout
    assert "Overall: 89 of 100 (75% of the weight observed)" in said


def test_another_rubric_reads_the_same_events(sample: Path) -> None:
    """Named by id, and by a file; another digest each."""
    own = as_json(sample)
    other = as_json(sample, "--rubric", "cpr-bls")
    assert other["examiner_assessment"]["overall_score"] is None
    assert other["digest"] != own["digest"]
    assert other["inputs"]["events_digest"] == own["inputs"]["events_digest"]
    assert code(run(sample, "--rubric", "unheard-of")) == "RUBRIC_UNKNOWN"


def test_the_page_is_written(sample: Path) -> None:
    """To the file that was named; one that cannot be written is told."""
    page = sample.parent / "report.html"
    assert run(sample, "--html", page).exit_code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert code(run(sample, "--html", sample.parent / "no" / "report.html")) == "OUTPUT_UNWRITABLE"


def test_verification_holds_and_names_what_does_not(sample: Path) -> None:
    """The same events: exit code 0; another event: 1, and what differs."""
    report = sample.parent / "report.json"
    report.write_text(json.dumps(as_json(sample)), "utf-8")
    assert as_json(sample, "--verify", "--report", report)["holds"] is True
    sample.write_bytes(sample.read_bytes().replace(b'"accuracy":0.91', b'"accuracy":0.92'))
    ended = run(sample, "--verify", "--report", report)
    assert ended.exit_code == 1
    assert "The events are not those of the report." in ended.stdout
    assert "examiner_assessment.dimension_scores.intonation" in ended.stdout


def test_verification_of_a_file_needs_a_report(sample: Path) -> None:
    """Its absence is a usage error, a file that is none a typed one."""
    assert run(sample, "--verify").exit_code == 2
    assert code(run(sample, "--verify", "--report", sample)) == "REPORT_UNREADABLE"
    assert code(run(sample, "--verify", "--report", sample.parent / "no")) == "EVENT_FILE_UNKNOWN"
    assert code(run(sample, "--verify", "--report", sample.parent)) == "REPORT_UNREADABLE"


def test_earlier_reports_give_growth(sample: Path) -> None:
    """Two of the same journey before this one: three are compared."""
    lines = [json.loads(line) | {"journey_id": "j"} for line in sample_lines("violin-3min")]
    earlier = []
    for number in (1, 2):
        events = [line | {"session_id": f"s-{number}"} for line in lines]
        file = sample.parent / f"{number}.jsonl"
        file.write_text("\n".join(map(json.dumps, events)), "utf-8")
        report = sample.parent / f"{number}.json"
        report.write_text(json.dumps(as_json(file)), "utf-8")
        earlier += ["--earlier", report]
    sample.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    growth = as_json(sample, *earlier)["examiner_assessment"]["growth_indicators"][0]
    assert (growth["trend"], growth["sessions_compared"]) == ("steady", 3)


def test_refused_lines_are_named(sample: Path) -> None:
    """The report is of the others; the exit code is 1."""
    sample.write_bytes(sample.read_bytes() + b"\nnot json\n")
    ended = run(sample)
    assert ended.exit_code == 1
    assert "Next step" in ended.stdout


def test_what_cannot_be_examined_is_told(sample: Path) -> None:
    """No events, no such file, an empty folder, a language that nobody speaks here."""
    sample.write_bytes(b"")
    assert code(run(sample, "--rubric", "violin-basic")) == "REPORT_WITHOUT_EVENTS"
    assert code(run(sample.parent / "no.jsonl")) == "EVENT_FILE_UNKNOWN"
    assert code(run(sample.parent)) == "RUBRIC_UNKNOWN"
    (sample.parent / "empty").mkdir()
    assert code(run(sample.parent / "empty")) == "EVENT_FILE_UNKNOWN"
    assert run(sample, "--locale", "fr").exit_code == 2


def test_the_bench_measures_both() -> None:
    """Percentiles of report and baseline, and their ratio."""
    figures = bench(events=10, runs=3)
    assert 0 < figures["p50_ms"] <= figures["p95_ms"]
    assert figures["baseline_p50_ms"] > 0
    assert figures["ratio"] > 0
