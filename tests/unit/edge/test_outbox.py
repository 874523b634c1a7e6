import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from etude.edge import errors, layout
from etude.edge.batch import next_batch
from etude.edge.journal import Journal
from etude.edge.media import keep_recording
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder, Position
from etude.edge.upload_state import UploadStatus, load_state
from etude.net import HttpClient
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import Answer, Cut, FakeCloud
from etude.testing.journals import numbered, write_journal
from etude.testing.lossy_files import LossyFiles

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
OpenOutbox = Callable[..., Outbox]


def test_a_sealed_session_is_sent_whole_and_done(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """One request; the state says what is acknowledged."""
    folder = write_journal(tmp_path)
    (state,) = open_outbox().run_due()
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e003"]
    assert cloud.requests == ["POST /api/v1/sessions/s-1/events"]
    assert (state.status, state.received, state.acknowledged_event) == (
        UploadStatus.DONE,
        3,
        "e003",
    )
    assert state.acknowledged.line == 3
    assert load_state(folder, "s-1") == state


def test_the_lines_arrive_as_they_were_written(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Byte for byte."""
    folder = write_journal(tmp_path)
    open_outbox().run_due()
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    assert list(cloud.events["s-1"].values()) == lines


def test_what_is_done_is_not_sent_again(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Neither by time, nor by a trigger, nor after a restart."""
    write_journal(tmp_path)
    outbox = open_outbox()
    outbox.run_due()
    outbox.trigger()
    assert outbox.run_due() == []
    assert open_outbox().run_due() == []
    assert len(cloud.requests) == 1


def test_an_open_session_is_sent_in_part_after_five_minutes(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """It goes on from what was acknowledged, each event once."""
    journal = Journal.open(tmp_path, "s-1")
    journal.append(numbered(1))
    outbox = open_outbox()
    assert outbox.run_due() == []
    assert outbox.next_wait_s() == 300
    clock.advance(300)
    assert outbox.run_due()[0].status is UploadStatus.WAITING
    journal.append(numbered(2))
    clock.advance(299)
    assert outbox.run_due() == []
    journal.seal(NOW)
    outbox.trigger()
    assert outbox.run_due()[0].status is UploadStatus.DONE
    assert list(cloud.events["s-1"]) == ["e001", "e002"]
    assert outbox.states()[0].duplicates_skipped == 0


def test_contests_after_the_end_are_sent_too(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """A part behind the seal makes a done session due again."""
    write_journal(tmp_path)
    outbox = open_outbox()
    outbox.run_due()
    contests = Journal.open_contests(tmp_path, "s-1")
    contests.append(numbered(4))
    contests.seal(NOW)
    assert outbox.run_due()[0].acknowledged.part == 2
    assert list(cloud.events["s-1"])[-1] == "e004"


def test_an_empty_part_of_contests_keeps_nobody_busy(
    tmp_path: Path, open_outbox: OpenOutbox
) -> None:
    """Nothing to send is not something unsent."""
    write_journal(tmp_path)
    outbox = open_outbox()
    outbox.run_due()
    Journal.open_contests(tmp_path, "s-1").seal(NOW)
    assert outbox.run_due() == []


def test_a_failed_try_is_repeated_by_the_schedule_across_restarts(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """1, 2, 4 … 60 s apart, ten tries, whoever runs the outbox; then five minutes of peace."""
    write_journal(tmp_path)
    cloud.next.extend([Answer(503)] * 11)
    waits = []
    for _ in range(10):
        outbox = open_outbox()
        assert len(outbox.run_due()) == 1
        assert outbox.run_due() == []
        waits.append(outbox.next_wait_s())
        clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 300]
    assert outbox.states()[0].status is UploadStatus.PENDING
    assert len(cloud.requests) == 10


def test_a_trigger_does_not_wait_for_the_schedule(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The network is back: now."""
    write_journal(tmp_path)
    cloud.next.extend([Answer(503)])
    outbox = open_outbox()
    outbox.run_due()
    assert outbox.run_due() == []
    outbox.trigger()
    assert outbox.run_due()[0].status is UploadStatus.DONE


def test_retry_after_is_honoured(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """A 429 with 90 s is tried again after 90 s, trigger or not."""
    write_journal(tmp_path)
    cloud.next.append(Answer(429, headers={"Retry-After": "90"}))
    outbox = open_outbox()
    outbox.run_due()
    clock.advance(89)
    outbox.trigger()
    assert outbox.run_due() == []
    clock.advance(1)
    assert outbox.run_due()[0].status is UploadStatus.DONE


def test_one_session_does_not_keep_the_others(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Cut off, refused, answered with nonsense: the sessions behind are sent all the same."""
    for number in range(1, 5):
        write_journal(tmp_path, f"s-{number}")
    cloud.next.extend([Cut(), Answer(403), Answer(200, {"hello": 1}), None])
    states = open_outbox().run_due()
    assert [state.status for state in states] == [
        UploadStatus.RETRYING,
        UploadStatus.REFUSED,
        UploadStatus.RETRYING,
        UploadStatus.DONE,
    ]
    assert [state.problem and state.problem.code for state in states] == [
        "NETWORK_CUT",
        "HTTP_403",
        "ANSWER_INVALID",
        None,
    ]


def test_an_unreadable_journal_does_not_keep_the_others(
    tmp_path: Path, open_outbox: OpenOutbox
) -> None:
    """A damaged archive is shown; its neighbours are sent."""
    folder = write_journal(tmp_path, "s-1", 200)
    packed = gzip.compress((folder / "events.jsonl").read_bytes())
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    write_journal(tmp_path, "s-2")
    bad, good = open_outbox().run_due()
    assert (bad.status, good.status) == (UploadStatus.RETRYING, UploadStatus.DONE)
    assert bad.problem is not None
    assert bad.problem.code == "JOURNAL_UNREADABLE"


def test_a_damaged_seal_does_not_keep_the_others(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Its lines are sent, the damage is shown, its neighbours are done."""
    folder = write_journal(tmp_path, "s-1")
    (folder / "events.seal.json").write_bytes(b"{")
    write_journal(tmp_path, "s-2")
    outbox = open_outbox()
    bad, good = outbox.run_due()
    assert (bad.status, good.status) == (UploadStatus.RETRYING, UploadStatus.DONE)
    assert bad.problem is not None
    assert bad.problem.code == "JOURNAL_UNREADABLE"
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e003"]
    assert outbox.next_wait_s() > 0


def test_a_session_is_sent_in_bodies_within_the_limits(tmp_path: Path) -> None:
    """At most so many lines and bytes a body, every line once, in order, across parts."""
    folder = JournalFolder(write_journal(tmp_path, count=25))
    contests = Journal.open_contests(tmp_path, "s-1")
    contests.append(numbered(26))
    contests.close()
    sent: list[str] = []
    at = Position()
    while batch := next_batch(folder, at, max_bytes=600, max_lines=4):
        assert len(batch.lines) <= 4
        assert len(batch.body()) <= 600
        sent += [json.loads(line)["event_id"] for line in batch.body().splitlines()]
        at = batch.end
    assert sent == [f"e{number:03}" for number in range(1, 27)]


def test_twenty_thousand_lines_and_one_are_two_bodies(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The protocol's own limit on lines."""
    (tmp_path / "s-1").mkdir()
    line = '{"event_id":"e%d","session_id":"s-1","ts":0,"event_type":"t","signal":"s"}\n'
    (tmp_path / "s-1" / "events.jsonl").write_text("".join(line % n for n in range(20_001)))
    outbox = open_outbox()
    outbox.trigger()
    outbox.run_due()
    assert (len(cloud.requests), len(cloud.events["s-1"])) == (2, 20_001)


def test_only_one_outbox_works_on_a_root(tmp_path: Path, open_outbox: OpenOutbox) -> None:
    """A second one is refused."""
    open_outbox()
    with pytest.raises(errors.OutboxLockedError):
        Outbox(tmp_path, HttpClient("https://cloud.test"), clock=ManualClock())


def test_only_the_wanted_session_is_sent(tmp_path: Path, cloud: FakeCloud) -> None:
    """An outbox may be kept to one session."""
    write_journal(tmp_path, "s-1")
    write_journal(tmp_path, "s-2")
    client = HttpClient("https://cloud.test", wire=cloud.wire())
    with Outbox(tmp_path, client, clock=ManualClock(), only="s-2") as outbox:
        outbox.run_due()
    assert list(cloud.events) == ["s-2"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"session_id":"other"}', b"\0" * 100])
def test_a_broken_state_costs_a_second_upload_and_no_event(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, content: bytes
) -> None:
    """It is as if nothing had been acknowledged."""
    folder = write_journal(tmp_path)
    open_outbox().run_due()
    (folder / layout.STATE).write_bytes(content)
    (state,) = open_outbox().run_due()
    assert (state.status, state.duplicates_skipped) == (UploadStatus.DONE, 3)
    assert len(cloud.events["s-1"]) == 3


def test_a_full_disk_does_not_stop_the_upload(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The state cannot be written: it is shown, lives on in memory, nothing is sent twice."""
    write_journal(tmp_path, "s-1")
    write_journal(tmp_path, "s-2")
    disk = LossyFiles(tmp_path, space_bytes=0)
    outbox = open_outbox(files=disk)
    outbox.run_due()
    assert sorted(cloud.events) == ["s-1", "s-2"]
    problems = [state.problem and state.problem.code for state in outbox.states()]
    assert problems == ["JOURNAL_DISK_FULL"] * 2
    assert outbox.run_due() == []


def test_leftovers_of_a_killed_outbox_are_removed(tmp_path: Path, open_outbox: OpenOutbox) -> None:
    """Temporary states do not pile up."""
    leftover = write_journal(tmp_path) / ".state.json.123.tmp"
    leftover.write_bytes(b"half")
    open_outbox()
    assert not leftover.exists()


def test_an_id_that_needs_encoding_is_addressed_rightly(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The path is percent-encoded, the id in the lines is itself."""
    write_journal(tmp_path, "练习%41")
    open_outbox().run_due()
    assert list(cloud.events) == ["练习%41"]


@pytest.mark.parametrize(
    ("meta", "header"),
    [
        ({"device_id": "toy-7"}, "toy-7"),
        ({"device_id": "aa:bb:cc:dd:ee:ff"}, "aa:bb:cc:dd:ee:ff"),
        ({"device_id": "玩具"}, None),
        ({"device_id": "toy\r\nX: y"}, None),
        ({"device_id": 7}, None),
        ({}, None),
        (None, None),
    ],
)
def test_every_request_names_the_device_of_its_session(
    tmp_path: Path,
    cloud: FakeCloud,
    clock: ManualClock,
    meta: dict[str, object] | None,
    header: str | None,
) -> None:
    """Recordings too; a name that no header can carry is left out."""
    with Journal.open(tmp_path, "s-1") as journal:
        journal.append(numbered(1, meta=meta))
        journal.append(numbered(2, meta={"device_id": "another"}))
        journal.seal(NOW)
    keep_recording(journal.folder, b"sound", "audio/ogg")
    wire, named = cloud.wire(), []

    def note(request: httpx2.Request) -> httpx2.Response:
        named.append(request.headers.get("etude-device"))
        return wire.handle_request(request)

    client = HttpClient("https://cloud.test", wire=httpx2.MockTransport(note))
    with client, Outbox(tmp_path, client, clock=clock) as outbox:
        (state,) = outbox.run_due()
    assert state.status is UploadStatus.DONE
    assert named == [header, header]
