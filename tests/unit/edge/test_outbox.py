import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from etude.edge import errors, layout, upload_state
from etude.edge.batch import next_batch
from etude.edge.journal import Journal
from etude.edge.media import keep_recording, recordings
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder, Position
from etude.edge.upload_state import UploadState, UploadStatus, load_state
from etude.edge.uploader import Uploader
from etude.events.model import Event
from etude.files import Files, armed
from etude.net import HttpClient
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import Answer, Cut, FakeCloud
from etude.testing.lossy_files import LossyFiles, PowerCutError

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
OpenOutbox = Callable[..., Outbox]


def event(number: int, session_id: str = "s-1") -> Event:
    return Event(
        event_id=f"e{number:03}",
        session_id=session_id,
        ts=float(number),
        event_type="streak",
        signal="x",
        seq=number,
    )


def write(root: Path, session_id: str = "s-1", count: int = 3, *, seal: bool = True) -> Path:
    journal = Journal.open(root, session_id)
    for number in range(1, count + 1):
        journal.append(event(number, session_id))
    if seal:
        journal.seal(NOW)
    else:
        journal.close()
    return journal.folder


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture
def open_outbox(tmp_path: Path, cloud: FakeCloud, clock: ManualClock) -> Iterator[OpenOutbox]:
    """Open an outbox on `tmp_path`; the one before is closed."""
    opened: list[Outbox] = []

    def open_one(root: Path = tmp_path, files: Files | None = None) -> Outbox:
        close_all()
        client = HttpClient("https://cloud.test", wire=cloud.wire())
        outbox = Outbox(root, client, clock=clock, files=files, chance=lambda: 0.0)
        opened.append(outbox)
        return outbox

    def close_all() -> None:
        while opened:
            opened.pop().close()

    yield open_one
    close_all()


def test_a_sealed_session_is_sent_whole_and_done(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """One request; the state says what is acknowledged."""
    folder = write(tmp_path)
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
    folder = write(tmp_path)
    open_outbox().run_due()
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    assert list(cloud.events["s-1"].values()) == lines


def test_what_is_done_is_not_sent_again(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Neither by time, nor by a trigger, nor after a restart."""
    write(tmp_path)
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
    journal.append(event(1))
    outbox = open_outbox()
    assert outbox.run_due() == []
    assert outbox.next_wait_s() == 300
    clock.advance(300)
    assert outbox.run_due()[0].status is UploadStatus.WAITING
    journal.append(event(2))
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
    write(tmp_path)
    outbox = open_outbox()
    outbox.run_due()
    contests = Journal.open_contests(tmp_path, "s-1")
    contests.append(event(4))
    contests.seal(NOW)
    assert outbox.run_due()[0].acknowledged.part == 2
    assert list(cloud.events["s-1"])[-1] == "e004"


def test_an_empty_part_of_contests_keeps_nobody_busy(
    tmp_path: Path, open_outbox: OpenOutbox
) -> None:
    """Nothing to send is not something unsent."""
    write(tmp_path)
    outbox = open_outbox()
    outbox.run_due()
    Journal.open_contests(tmp_path, "s-1").seal(NOW)
    assert outbox.run_due() == []


def test_a_failed_try_is_repeated_by_the_schedule_across_restarts(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """1, 2, 4 … 60 s apart, ten tries, whoever runs the outbox; then five minutes of peace."""
    write(tmp_path)
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
    write(tmp_path)
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
    write(tmp_path)
    cloud.next.append(Answer(429, headers={"Retry-After": "90"}))
    outbox = open_outbox()
    outbox.run_due()
    clock.advance(89)
    outbox.trigger()
    assert outbox.run_due() == []
    clock.advance(1)
    assert outbox.run_due()[0].status is UploadStatus.DONE


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 415])
def test_a_4xx_is_kept_aside_and_shown(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, status: int
) -> None:
    """Not retried by time or trigger; a person releases it."""
    write(tmp_path)
    cloud.next.append(Answer(status, {"code": "NO", "detail": "no."}))
    outbox = open_outbox()
    (state,) = outbox.run_due()
    assert state.status is UploadStatus.REFUSED
    assert state.problem == upload_state.Problem(code="NO", message="no.", http_status=status)
    outbox.trigger()
    assert outbox.run_due() == []
    outbox = open_outbox()
    assert outbox.run_due() == []
    outbox.release("s-1")
    assert outbox.run_due()[0].status is UploadStatus.DONE


def test_an_erased_session_is_shown_and_never_sent_again(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """410, and not even a release brings it back."""
    write(tmp_path)
    cloud.erased.add("s-1")
    outbox = open_outbox()
    assert outbox.run_due()[0].status is UploadStatus.ERASED
    outbox.trigger()
    outbox.release()
    assert outbox.run_due() == []
    assert len(cloud.requests) == 1


def test_one_session_does_not_keep_the_others(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Cut off, refused, answered with nonsense: the sessions behind are sent all the same."""
    for number in range(1, 5):
        write(tmp_path, f"s-{number}")
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
    folder = write(tmp_path, "s-1", 200)
    packed = gzip.compress((folder / "events.jsonl").read_bytes())
    (folder / "events.jsonl").unlink()
    (folder / "events.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    write(tmp_path, "s-2")
    bad, good = open_outbox().run_due()
    assert (bad.status, good.status) == (UploadStatus.RETRYING, UploadStatus.DONE)
    assert bad.problem is not None
    assert bad.problem.code == "JOURNAL_UNREADABLE"


def test_a_poisoned_line_is_kept_aside_alone(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Named in `errors`: its neighbours are stored, it is shown with its place."""
    write(tmp_path, count=5)
    cloud.poison = {"e003"}
    (state,) = open_outbox().run_due()
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e004", "e005"]
    assert state.status is UploadStatus.DONE
    (refused,) = state.refused
    assert (refused.code, refused.part, refused.line, refused.event_id) == (
        "bad_type",
        1,
        3,
        "e003",
    )


def test_more_refused_lines_than_the_server_names_are_all_named(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """50 bad lines of 100, 20 named a time: every one is listed with its id, the rest is stored."""
    write(tmp_path, count=100)
    cloud.poison = {f"e{number:03}" for number in range(2, 101, 2)}
    (state,) = open_outbox().run_due()
    assert {one.event_id for one in state.refused} == cloud.poison
    assert (state.refused_count, len(cloud.events["s-1"])) == (50, 50)
    assert state.status is UploadStatus.DONE


@pytest.mark.parametrize("poisoned", [1, 2, 37, 64, 100])
def test_a_line_that_spoils_the_whole_body_is_found(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, poisoned: int
) -> None:
    """A 422 for everything: halved until the one line stands alone; all others are stored once."""
    write(tmp_path, count=100)
    cloud.poison_422 = {f"e{poisoned:03}"}
    (state,) = open_outbox().run_due()
    assert len(cloud.events["s-1"]) == 99
    assert [one.event_id for one in state.refused] == list(cloud.poison_422)
    assert state.status is UploadStatus.DONE
    assert len(cloud.requests) < 40


def test_a_body_of_bad_lines_only_is_not_halved(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """`NO_VALID_LINE` says it for all: one request."""
    write(tmp_path, count=30)
    cloud.poison = {f"e{number:03}" for number in range(1, 31)}
    (state,) = open_outbox().run_due()
    assert (state.refused_count, len(cloud.requests)) == (30, 1)
    assert {one.code for one in state.refused} == {"bad_type", "NO_VALID_LINE"}


def test_a_body_too_large_for_the_server_is_halved(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """A server with lower limits than the protocol's gets smaller bodies."""
    write(tmp_path, count=10)
    cloud.next.extend([Answer(413), Answer(413)])
    assert open_outbox().run_due()[0].status is UploadStatus.DONE
    assert len(cloud.events["s-1"]) == 10


def test_broken_and_overlong_lines_are_kept_aside(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """What is no event is refused by the server, what is too long is not even sent."""
    folder = write(tmp_path, seal=False)
    with (folder / "events.jsonl").open("ab") as part:
        part.write(b"{broken\n" + b'{"x":"' + b"x" * 70_000 + b'"}\n')
    write(tmp_path, count=1)
    (state,) = open_outbox().run_due()
    assert [(one.code, one.line) for one in state.refused] == [
        ("too_long", 5),
        ("invalid_json", 4),
    ]
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e003"]
    assert state.status is UploadStatus.DONE


def test_conflicts_are_shown(tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox) -> None:
    """The server holds the id with other content: named, not retried."""
    cloud.events["s-1"] = {"e002": b'{"other":1}'}
    write(tmp_path)
    (state,) = open_outbox().run_due()
    assert (state.conflicts, state.status) == (["e002"], UploadStatus.DONE)


def test_a_session_is_sent_in_bodies_within_the_limits(tmp_path: Path) -> None:
    """At most so many lines and bytes a body, every line once, in order, across parts."""
    folder = JournalFolder(write(tmp_path, count=25))
    contests = Journal.open_contests(tmp_path, "s-1")
    contests.append(event(26))
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


def test_recordings_follow_the_events(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Each once, after every event, with its type."""
    folder = write(tmp_path)
    first = keep_recording(folder, b"RIFF one", "audio/wav")
    assert keep_recording(folder, b"RIFF one", "audio/wav") == first
    second = keep_recording(folder, b"OggS two", "audio/ogg")
    outbox = open_outbox()
    (state,) = outbox.run_due()
    assert cloud.media["s-1"] == {first: b"RIFF one", second: b"OggS two"}
    assert cloud.requests[0].startswith("POST")
    assert len(cloud.requests) == 3
    assert (sorted(state.media), state.status) == (sorted([first, second]), UploadStatus.DONE)
    assert outbox.run_due() == []


def test_a_recording_that_is_refused_is_kept_aside(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Its bytes are not those of its name: shown, its neighbours are sent."""
    folder = write(tmp_path)
    sha256 = keep_recording(folder, b"RIFF good", "audio/wav")
    (folder / "media" / f"{'0' * 64}.wav").write_bytes(b"damaged")
    (state,) = open_outbox().run_due()
    assert [(one.code, one.sha256) for one in state.refused] == [
        ("MEDIA_DIGEST_MISMATCH", "0" * 64)
    ]
    assert (list(cloud.media["s-1"]), state.status) == ([sha256], UploadStatus.DONE)


def test_a_recording_cut_off_is_sent_again_and_the_events_are_not(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """What is acknowledged stays acknowledged."""
    folder = write(tmp_path)
    keep_recording(folder, b"RIFF one", "audio/wav")
    cloud.next.extend([None, Cut()])
    outbox = open_outbox()
    assert outbox.run_due()[0].status is UploadStatus.RETRYING
    clock.advance(1)
    assert outbox.run_due()[0].status is UploadStatus.DONE
    assert sum(request.startswith("POST") for request in cloud.requests) == 1


def test_a_recording_of_an_unknown_type_or_size_is_not_kept(tmp_path: Path) -> None:
    """It could not be uploaded: said where it is made."""
    with pytest.raises(errors.MediaTypeUnknownError):
        keep_recording(tmp_path, b"x", "text/html")
    with pytest.raises(errors.MediaTooLargeError):
        keep_recording(tmp_path, bytes(32 * 1024 * 1024 + 1), "audio/wav")
    assert list(recordings(tmp_path)) == []


def test_a_token_that_the_server_does_not_know_is_shown(tmp_path: Path, cloud: FakeCloud) -> None:
    """401 keeps the session aside; with the right token and a release it goes."""
    write(tmp_path)
    cloud.token = "right"
    for bearer, expected in (("wrong", UploadStatus.REFUSED), ("right", UploadStatus.DONE)):
        client = HttpClient("https://cloud.test", bearer=bearer, wire=cloud.wire())
        with Outbox(tmp_path, client, clock=ManualClock()) as outbox:
            outbox.release()
            assert outbox.run_due()[0].status is expected


def test_only_one_outbox_works_on_a_root(tmp_path: Path, open_outbox: OpenOutbox) -> None:
    """A second one is refused."""
    open_outbox()
    with pytest.raises(errors.OutboxLockedError):
        Outbox(tmp_path, HttpClient("https://cloud.test"), clock=ManualClock())


def test_only_the_wanted_session_is_sent(tmp_path: Path, cloud: FakeCloud) -> None:
    """An outbox may be kept to one session."""
    write(tmp_path, "s-1")
    write(tmp_path, "s-2")
    client = HttpClient("https://cloud.test", wire=cloud.wire())
    with Outbox(tmp_path, client, clock=ManualClock(), only="s-2") as outbox:
        outbox.run_due()
    assert list(cloud.events) == ["s-2"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"session_id":"other"}', b"\0" * 100])
def test_a_broken_state_costs_a_second_upload_and_no_event(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, content: bytes
) -> None:
    """It is as if nothing had been acknowledged."""
    folder = write(tmp_path)
    open_outbox().run_due()
    (folder / layout.STATE).write_bytes(content)
    (state,) = open_outbox().run_due()
    assert (state.status, state.duplicates_skipped) == (UploadStatus.DONE, 3)
    assert len(cloud.events["s-1"]) == 3


def test_a_full_disk_does_not_stop_the_upload(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The state cannot be written: it is shown, lives on in memory, nothing is sent twice."""
    write(tmp_path, "s-1")
    write(tmp_path, "s-2")
    disk = LossyFiles(tmp_path, space_bytes=0)
    outbox = open_outbox(files=disk)
    outbox.run_due()
    assert sorted(cloud.events) == ["s-1", "s-2"]
    problems = [state.problem and state.problem.code for state in outbox.states()]
    assert problems == ["JOURNAL_DISK_FULL"] * 2
    assert outbox.run_due() == []


def test_leftovers_of_a_killed_outbox_are_removed(tmp_path: Path, open_outbox: OpenOutbox) -> None:
    """Temporary states do not pile up."""
    leftover = write(tmp_path) / ".state.json.123.tmp"
    leftover.write_bytes(b"half")
    open_outbox()
    assert not leftover.exists()


def test_an_id_that_needs_encoding_is_addressed_rightly(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The path is percent-encoded, the id in the lines is itself."""
    write(tmp_path, "练习%41")
    open_outbox().run_due()
    assert list(cloud.events) == ["练习%41"]


def test_listed_refusals_are_bounded_and_counted() -> None:
    """A state does not grow without end."""
    state = UploadState(session_id="s-1")
    state = state.with_refusals([upload_state.Refusal(code="x")] * 1500)
    assert (len(state.refused), state.refused_count) == (1000, 1500)


class Attempt:
    """One upload of a session with a recording, on a disk that may lose its power."""

    def __init__(self, folder: Path, cut_at: int | None = None) -> None:
        self.folder = folder
        self.cloud = FakeCloud()
        root = folder / "live"
        keep_recording(write(root), b"RIFF", "audio/wav")
        self.disk = LossyFiles(root, cut_at=cut_at)

    def upload(self, root: Path, files: Files) -> UploadState:
        client = HttpClient("https://cloud.test", wire=self.cloud.wire())
        with Outbox(root, client, clock=ManualClock(), files=files) as outbox:
            outbox.trigger()
            outbox.run_due()
            return outbox.states()[0]

    def upload_until_the_cut(self) -> bool:
        try:
            self.upload(self.disk.root, self.disk)
        except PowerCutError:
            self.disk.cut_power()
            return False
        return True

    def go_on(self) -> None:
        """After the cut, whatever it left: sent to the end, each event once."""
        for seed in (None, 1, 2, 3):
            after = self.disk.survivors(self.folder / f"after-{seed}", seed)
            assert self.upload(after, Files()).status is UploadStatus.DONE
            assert list(self.cloud.events["s-1"]) == ["e001", "e002", "e003"]
            assert len(self.cloud.media["s-1"]) == 1


def test_an_uploader_cut_off_at_every_operation_loses_nothing_and_stores_nothing_twice(
    tmp_path: Path,
) -> None:
    """A power cut at each operation on the disk."""
    operation, finished = 0, False
    while not finished:
        attempt = Attempt(tmp_path / str(operation), cut_at=operation)
        finished = attempt.upload_until_the_cut()
        attempt.go_on()
        operation += 1
    assert operation > 10


def test_an_uploader_killed_at_every_named_point_loses_nothing_and_stores_nothing_twice(
    tmp_path: Path,
) -> None:
    """Before and after sending, between the answer and the state, behind the state."""
    passed: list[str] = []
    attempt = Attempt(tmp_path / "counted")
    with armed(passed.append):
        assert attempt.upload_until_the_cut()
    assert {name for name in passed if name.startswith("edge.outbox")} == {
        "edge.outbox.sending",
        "edge.outbox.answered",
        "edge.outbox.before_state",
        "edge.outbox.state_saved",
    }
    for place in range(len(passed)):
        attempt = Attempt(tmp_path / str(place))
        left = [place]

        def die(name: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise PowerCutError(name)

        with armed(die):
            assert not attempt.upload_until_the_cut()
        attempt.go_on()


def test_an_uploader_sends_from_where_the_server_acknowledged(
    tmp_path: Path, cloud: FakeCloud, clock: ManualClock
) -> None:
    """Given a state in the middle, only the rest is sent."""
    folder = JournalFolder(write(tmp_path, count=4))
    second = list(folder.lines())[1]
    state = UploadState(session_id="s-1", acknowledged=second.after)
    client = HttpClient("https://cloud.test", wire=cloud.wire())
    Uploader(client, folder, state, save=lambda _: None, clock=clock).run()
    assert list(cloud.events["s-1"]) == ["e003", "e004"]
