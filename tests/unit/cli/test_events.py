import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from etude.cli import exits, terminal
from etude.cli.app import run
from etude.cli.events import app
from etude.events.ndjson import decode_line
from etude.testing.builders import body, session
from etude.testing.samples import read_sample, sample_lines


@pytest.fixture
def violin(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    file.write_bytes(read_sample("violin-3min"))
    return file


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A session of which one line is broken and one is too long."""
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(body(session(4)) + b"{broken\n" + b"x" * 70_000 + b"\n" + body(session(5)[4:]))
    return file


def invoke(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=given)


def test_lint_names_each_finding(violin: Path) -> None:
    """`lint` prints place, code and sentence of each finding and ends with 1."""
    ended = invoke("lint", violin)
    assert ended.exit_code == exits.REFUSED
    (line,) = ended.stdout.splitlines()
    assert line.startswith(f"{violin}:8: duplicate_key: ")


def test_lint_of_a_good_file_is_silent(tmp_path: Path) -> None:
    """A file without findings gives nothing on stdout and ends with 0."""
    file = tmp_path / "good.jsonl"
    file.write_bytes(body(session(20)))
    ended = invoke("lint", file)
    assert (ended.exit_code, ended.stdout) == (exits.OK, "")


def test_lint_as_json(damaged: Path) -> None:
    """`lint --json` is one document that tells refused lines from broken conventions."""
    ended = invoke("lint", damaged, "--json")
    found = json.loads(ended.stdout)
    assert found["rejected_lines"] == 2
    assert [(one["line"], one["code"]) for one in found["findings"] if one["is_rejected"]] == [
        (5, "invalid_json"),
        (6, "too_long"),
    ]
    assert all(one["message"] for one in found["findings"])


def test_recap_as_json(violin: Path) -> None:
    """`recap --json` has the counts by phase and the highlights."""
    ended = invoke("recap", violin, "--json")
    assert ended.exit_code == exits.OK
    made = json.loads(ended.stdout)
    assert made["phase_summary"]["operation"] == {"positive": 4, "uncertain": 1, "issue": 0}
    assert len(made["highlights"]) == 3


def test_recap_speaks_the_language_of_the_run(
    violin: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--locale zh-CN` gives a Chinese recap, else the environment decides."""
    monkeypatch.setenv("LC_ALL", "C")
    before = terminal.locale()
    try:
        assert run(["--locale", "zh-CN", "events", "recap", str(violin)]) == exits.OK
        assert "★ 音准比上次进步了 9 个百分点" in capsys.readouterr().out
        assert run(["events", "recap", str(violin)]) == exits.OK
        assert "Your pitch is 9 percentage points better" in capsys.readouterr().out
    finally:
        terminal.use_locale(before)


def test_refused_lines_are_told_and_the_others_counted(damaged: Path) -> None:
    """`recap` and `export` use the good lines, name the refused ones on stderr and end with 1."""
    for command in ("recap", "export"):
        ended = invoke(command, damaged, "--json")
        assert ended.exit_code == exits.REFUSED
        json.loads(ended.stdout)
        assert [one.partition(" ")[0] for one in ended.stderr.splitlines()] == ["Line", "Line"]


def exported(*arguments: str | Path, given: bytes | None = None) -> list[Any]:
    ended = invoke("export", *arguments, given=given)
    assert ended.exit_code == exits.OK
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_export_gives_back_what_was_sent(violin: Path) -> None:
    """Every line exported again is equal in meaning, in the order of the file."""
    assert exported(violin) == [json.loads(line) for line in sample_lines("violin-3min")]


def test_export_as_one_document(violin: Path) -> None:
    """`export --json` is one array of the same events."""
    ended = invoke("export", violin, "--json")
    assert json.loads(ended.stdout) == exported(violin)


def test_export_of_nothing(tmp_path: Path) -> None:
    """An empty file exports to nothing, or to an empty array."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert invoke("export", empty).stdout == ""
    assert json.loads(invoke("export", empty, "--json").stdout) == []


def test_export_as_cloudevents(tmp_path: Path) -> None:
    """`--format cloudevents` maps each event, with a time once the session's begin is known."""
    file = tmp_path / "events.jsonl"
    file.write_bytes(body(session(4)))
    made = exported(file, "--format", "cloudevents")
    assert [one["id"] for one in made] == [one.event_id for one in session(4)]
    assert made[2]["time"] == "2026-03-01T08:00:02+08:00"
    assert made[2]["data"]["seq"] == 3


def test_an_archived_journal_and_stdin_are_read_too(violin: Path, tmp_path: Path) -> None:
    """A `.gz` file and `-` give what the plain file gives."""
    archived = tmp_path / "events.jsonl.gz"
    archived.write_bytes(gzip.compress(violin.read_bytes()))
    plain = exported(violin)
    assert exported(archived) == plain
    assert exported("-", given=violin.read_bytes()) == plain
    assert decode_line(json.dumps(plain[0]).encode()).event_id == "e001"


@pytest.mark.parametrize("command", ["lint", "recap", "export"])
def test_a_file_that_is_not_there_ends_with_3(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file is named on stderr, with its code; nothing is on stdout."""
    assert run(["events", command, str(tmp_path / "none.jsonl")]) == exits.NOT_FOUND
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[EVENT_FILE_UNKNOWN]" in captured.err


@pytest.mark.parametrize(
    "content", [b"not gzip", gzip.compress(b"{}\n" * 9, mtime=0)[:-9]], ids=["no gzip", "cut off"]
)
def test_a_file_that_cannot_be_read_ends_with_4(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken archive, or a folder, is a typed error."""
    broken = tmp_path / "broken.gz"
    broken.write_bytes(content)
    for unreadable in (broken, tmp_path):
        assert run(["events", "lint", str(unreadable)]) == exits.UNAVAILABLE
        assert "[EVENT_FILE_UNREADABLE]" in capsys.readouterr().err


def test_wrong_usage_ends_with_2() -> None:
    """An unknown format or a missing file name is a usage error."""
    assert invoke("export", "x.jsonl", "--format", "xml").exit_code == exits.USAGE
    assert invoke("lint").exit_code == exits.USAGE
