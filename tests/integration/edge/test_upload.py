"""The outbox over real sockets: cut connections, slow answers, killed uploaders."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.edge.media import keep_recording
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder
from etude.edge.upload_state import UploadState, UploadStatus
from etude.net import FaultKind, HttpClient, NetworkFault, Timeouts
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import Answer, Cut, FakeCloud
from etude.testing.journals import write_journal
from etude.testing.waiting import PATIENCE_S, joined, run_bounded


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server(cloud: FakeCloud) -> Iterator[str]:
    with cloud.serve() as address:
        yield address


def upload(root: Path, server: str, clock: ManualClock) -> UploadState:
    with (
        HttpClient(server, timeouts=Timeouts(silence_s=20)) as client,
        Outbox(root, client, clock=clock) as outbox,
    ):
        outbox.run_due()
        return outbox.states()[0]


def test_events_and_recordings_arrive(tmp_path: Path, cloud: FakeCloud, server: str) -> None:
    """Over a real connection, packed on the way."""
    folder = write_journal(tmp_path, count=40)
    sha256 = keep_recording(folder, os.urandom(300_000), "audio/wav")
    state = upload(tmp_path, server, ManualClock())
    assert (state.status, state.received) == (UploadStatus.DONE, 40)
    assert list(cloud.media["s-1"]) == [sha256]


def test_an_answer_cut_at_any_byte_is_no_answer(
    tmp_path: Path, cloud: FakeCloud, server: str
) -> None:
    """Stored but not acknowledged: sent again, counted as duplicates, stored once."""
    clock = ManualClock()
    for number, answer_bytes in enumerate([0, 1, 12, 40, 70, 100, 150]):
        root = tmp_path / str(number)
        session_id = f"s-{number}"
        write_journal(root, session_id, 3)
        cloud.next.append(Cut(answer_bytes))
        cut = upload(root, server, clock)
        assert (cut.status, cut.acknowledged.line) == (UploadStatus.RETRYING, 0)
        assert len(cloud.events[session_id]) == 3
        clock.advance(5)
        again = upload(root, server, clock)
        assert (again.status, again.duplicates_skipped) == (UploadStatus.DONE, 3)
        assert len(cloud.events[session_id]) == 3


def test_a_connection_cut_before_the_server_looked_stores_nothing(
    tmp_path: Path, cloud: FakeCloud, server: str
) -> None:
    """The next try stores everything, without duplicates."""
    clock = ManualClock()
    write_journal(tmp_path, count=40)
    cloud.next.append(Cut())
    assert upload(tmp_path, server, clock).status is UploadStatus.RETRYING
    assert cloud.events == {}
    clock.advance(5)
    assert upload(tmp_path, server, clock).duplicates_skipped == 0


def test_nobody_there_is_tried_later(tmp_path: Path) -> None:
    """A closed port is a connection fault, not a crash."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    write_journal(tmp_path, count=40)
    state = upload(tmp_path, address, ManualClock())
    assert state.status is UploadStatus.RETRYING
    assert state.problem is not None
    assert state.problem.code == "NETWORK_CONNECT"


def test_a_server_that_says_nothing_is_given_up() -> None:
    """A port that accepts and never answers ends in a time-out."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = HttpClient(
            f"http://127.0.0.1:{silent.getsockname()[1]}", timeouts=Timeouts(silence_s=0.05)
        )
        with client, pytest.raises(NetworkFault) as fault:
            client.send("POST", "/x", b"", {})
    assert fault.value.kind is FaultKind.TIMEOUT


def test_what_is_not_http_is_no_answer() -> None:
    """Another program on the port is a fault of the wire."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def speak() -> None:
            connection, _ = other.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                connection.recv(65536)
                connection.sendall(b"220 mail.test ESMTP\r\n")

        other.settimeout(PATIENCE_S)
        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        with (
            HttpClient(f"http://127.0.0.1:{other.getsockname()[1]}") as client,
            pytest.raises(NetworkFault) as fault,
        ):
            client.send("POST", "/x", b"", {})
        joined(thread)
    assert fault.value.kind in {FaultKind.CUT, FaultKind.PROTOCOL}


def test_the_loop_uploads_what_ends_while_it_runs(
    tmp_path: Path, cloud: FakeCloud, server: str
) -> None:
    """`run` sleeps until it is triggered, sends, and ends when it is told to."""
    arrived, stop = threading.Event(), threading.Event()

    class Watched(Outbox):
        def run_due(self, report: Callable[[UploadState], None] | None = None) -> list[UploadState]:
            tried = super().run_due(report)
            if tried:
                arrived.set()
            return tried

    with HttpClient(server) as client, Watched(tmp_path, client, clock=ManualClock()) as outbox:
        thread = threading.Thread(target=outbox.run, args=(stop,))
        thread.start()
        write_journal(tmp_path, count=40)
        outbox.trigger()
        assert arrived.wait(30)
        stop.set()
        outbox.trigger()
        thread.join(30)
        assert not thread.is_alive()
    assert len(cloud.events["s-1"]) == 40


UPLOADER = """
import sys
from pathlib import Path
from etude.clock import SystemClock
from etude.edge.outbox import Outbox
from etude.files import arm_from_environment
from etude.net import HttpClient
arm_from_environment()
root = Path(sys.argv[1])
with HttpClient(sys.argv[2]) as client, Outbox(root, client, clock=SystemClock()) as outbox:
    outbox.trigger()
    outbox.run_due()
"""


@pytest.mark.parametrize(
    "point",
    [
        "edge.outbox.sending:1",
        "edge.outbox.sending:2",
        "edge.outbox.answered:1",
        "edge.outbox.before_state:1",
        "edge.outbox.state_saved:1",
        "files.replace.written:1",
        "files.replace.renamed:1",
    ],
)
def test_a_killed_uploader_loses_nothing_and_stores_nothing_twice(
    tmp_path: Path, cloud: FakeCloud, server: str, point: str
) -> None:
    """`kill -9` at each point of a real process; the next one finishes."""
    keep_recording(write_journal(tmp_path, count=40), b"RIFF", "audio/wav")
    command = [sys.executable, "-c", UPLOADER, str(tmp_path), server]
    environment = {**os.environ, "ETUDE_CRASH_AT": point}
    killed = run_bounded(command, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    state = upload(tmp_path, server, ManualClock())
    assert state.status is UploadStatus.DONE
    assert list(cloud.events["s-1"]) == [f"e{number:03}" for number in range(1, 41)]
    assert len(cloud.media["s-1"]) == 1


WRITER = """
import sys
from pathlib import Path
from etude.clock import RandomIds, SystemClock
from etude.edge.journal import Journal
from etude.edge.session_writer import Observation, SessionWriter
journal = Journal.open(Path(sys.argv[1]), "s-1")
writer = SessionWriter.open(journal, clock=SystemClock(), ids=RandomIds())
if writer.state == "new":
    print(writer.begin({}).seq, flush=True)
while True:
    print(writer.observe(Observation(event_type="streak", signal="x")).seq, flush=True)
"""


def test_a_killed_writer_keeps_every_event_it_said_it_wrote(tmp_path: Path) -> None:
    """`kill -9` in the middle of writing, five times: no event lost, no `seq` twice or missing."""
    said = 0
    for rounds in range(5):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:  # noqa: S603 - ours
            assert writer.stdout is not None
            overdue = threading.Timer(PATIENCE_S, writer.kill)  # a line that never comes is empty
            overdue.start()
            for _ in range(20 + 7 * rounds):
                said = int(writer.stdout.readline())
            overdue.cancel()
            writer.kill()
            said = max([said, *(int(line) for line in writer.stdout if line.endswith(b"\n"))])
        numbers = [event.seq for event in JournalFolder(tmp_path / "s-1").events()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= said


def test_a_server_error_in_between_is_waited_out(
    tmp_path: Path, cloud: FakeCloud, server: str
) -> None:
    """502, then 429 with `Retry-After`, then it goes."""
    clock = ManualClock()
    write_journal(tmp_path, count=40)
    cloud.next.extend([Answer(502), Answer(429, headers={"Retry-After": "7"})])
    assert upload(tmp_path, server, clock).status is UploadStatus.RETRYING
    clock.advance(1)
    assert upload(tmp_path, server, clock).attempts == 2
    clock.advance(6)
    assert upload(tmp_path, server, clock).status is UploadStatus.RETRYING
    clock.advance(1)
    assert upload(tmp_path, server, clock).status is UploadStatus.DONE
