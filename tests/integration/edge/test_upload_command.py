"""`etude events upload` against a real socket."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from etude.cli import exits
from etude.cli.app import run
from etude.edge.journal import Journal
from etude.edge.upload_state import load_state
from etude.events.model import Event
from etude.testing.fake_cloud import Answer, Cut, FakeCloud

Upload = Callable[..., int]
LINE = '{{"event_id":"e{0}","session_id":"{1}","ts":{0},"event_type":"streak","signal":"x"}}\n'


@pytest.fixture
def cloud() -> FakeCloud:
    cloud = FakeCloud()
    cloud.token = "secret-token"
    return cloud


@pytest.fixture
def upload(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upload]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("ETUDE_TOKEN", "secret-token")
    monkeypatch.setenv("LC_ALL", "C")
    with cloud.serve() as server:
        yield lambda source, *more: run(
            ["events", "upload", str(source), "--server", server, *more]
        )


def write_file(folder: Path) -> Path:
    file = folder / "events.jsonl"
    file.write_text("".join(LINE.format(n, f"s-{n % 3}") for n in range(30)))
    return file


def test_a_file_of_several_sessions_is_uploaded(
    tmp_path: Path, cloud: FakeCloud, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line in its session, in order; again, all are duplicates."""
    file = write_file(tmp_path)
    assert upload(file) == exits.OK
    assert {key: len(lines) for key, lines in cloud.events.items()} == {
        "s-0": 10,
        "s-1": 10,
        "s-2": 10,
    }
    assert "s-0: uploaded so far, the session is open; 10 received" in capsys.readouterr().out
    assert upload(file, "--json") == exits.OK
    report = json.loads(capsys.readouterr().out)
    assert (report["events_received"], report["duplicates_skipped"]) == (30, 30)
    assert len(report["sessions"]) == 3


def test_a_root_of_journals_keeps_its_state(
    tmp_path: Path, cloud: FakeCloud, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was uploaded is remembered beside the journal and not sent again."""
    journal = Journal.open(tmp_path, "s-1")
    journal.append(Event(event_id="e1", session_id="s-1", ts=0, event_type="streak", signal="x"))
    journal.seal(datetime(2026, 3, 1, tzinfo=UTC))
    assert upload(tmp_path) == exits.OK
    assert upload(tmp_path / "s-1") == exits.OK
    assert len(cloud.requests) == 1
    assert load_state(tmp_path / "s-1", "s-1").received == 1
    assert "uploaded; 1 received" in capsys.readouterr().out


def test_broken_lines_are_named_and_their_neighbours_uploaded(
    tmp_path: Path, cloud: FakeCloud, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; the number is that of the file."""
    file = write_file(tmp_path)
    file.write_text("{broken\n" + file.read_text())
    cloud.poison = {"e4"}
    assert upload(file, "--json") == exits.REFUSED
    report = json.loads(capsys.readouterr().out)
    assert [(one["line"], one["code"]) for one in report["rejected_lines"]] == [(1, "invalid_json")]
    assert (report["events_received"], report["events_rejected"]) == (29, 2)
    (refused,) = report["sessions"][1]["refused"]
    assert (refused["code"], refused["event_id"]) == ("bad_type", "e4")


def test_a_lost_answer_is_waited_out(
    tmp_path: Path, cloud: FakeCloud, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command tries again by the schedule and says so on stderr."""
    cloud.next.append(Cut(10))
    assert upload(write_file(tmp_path)) == exits.OK
    said = capsys.readouterr()
    assert "next try in" in said.err
    assert "next try in" not in said.out


def test_once_does_not_wait(tmp_path: Path, cloud: FakeCloud, upload: Upload) -> None:
    """Exit code 4: something is not uploaded yet."""
    cloud.next.append(Answer(503))
    assert upload(write_file(tmp_path), "--once") == exits.UNAVAILABLE


def test_a_wrong_token_is_said_and_never_shown(
    tmp_path: Path, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; no output holds the token."""
    (tmp_path / "token").write_text("wrong-token\n")
    file = write_file(tmp_path)
    assert upload(file, "--token-file", str(tmp_path / "token")) == exits.REFUSED
    said = capsys.readouterr()
    assert "TOKEN_INVALID" in said.err
    assert "wrong-token" not in said.out + said.err


def test_an_erased_session_is_refused(tmp_path: Path, cloud: FakeCloud, upload: Upload) -> None:
    """Exit code 1, once asked and no more."""
    cloud.erased = {"s-0"}
    assert upload(write_file(tmp_path)) == exits.REFUSED
    assert sum("s-0" in request for request in cloud.requests) == 1


def test_a_missing_file_is_not_found(tmp_path: Path, upload: Upload) -> None:
    """Exit code 3."""
    assert upload(tmp_path / "absent.jsonl") == exits.NOT_FOUND


def test_a_missing_token_file_is_not_found(tmp_path: Path, upload: Upload) -> None:
    """Exit code 3."""
    file = write_file(tmp_path)
    assert upload(file, "--token-file", str(tmp_path / "absent")) == exits.NOT_FOUND


@pytest.mark.parametrize(
    ("server", "token"),
    [("ftp://a.test", "secret"), ("https://a.test", "a b"), ("https://a.test", "")],
)
def test_an_unusable_address_or_token_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, token: str
) -> None:
    """Exit code 2, before anything is sent."""
    monkeypatch.setenv("ETUDE_TOKEN", token)
    assert run(["events", "upload", str(write_file(tmp_path)), "--server", server]) == exits.USAGE


def test_nothing_to_upload_is_said(
    tmp_path: Path, upload: Upload, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty folder is no error."""
    assert upload(tmp_path) == exits.OK
    assert "nothing to upload" in capsys.readouterr().err
