import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from etude.edge.errors import ServerAddressError, TokenUnusableError
from etude.edge.locks import FolderLock
from etude.edge.outbox import Outbox
from etude.errors import ConflictError
from etude.practice import uploads
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason
from etude.practice.uploads import Uploads
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.fake_cloud import Cut, FakeCloud
from etude.testing.practising import packets_of, play_step, session_of

PATIENCE_S = 60.0


class Wire(httpx2.BaseTransport):
    """The network: counts what arrives, and notes for which device."""

    def __init__(self, cloud: FakeCloud) -> None:
        self._wire = cloud.wire()
        self.devices: list[tuple[str, str | None]] = []
        self.arrived = threading.Semaphore(0)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.devices.append((request.method, request.headers.get("etude-device")))
        try:
            return self._wire.handle_request(request)
        finally:
            self.arrived.release()

    def wait(self, requests: int) -> None:
        for _ in range(requests):
            assert self.arrived.acquire(timeout=PATIENCE_S)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture
def wire(cloud: FakeCloud) -> Wire:
    return Wire(cloud)


@pytest.fixture
def sending(tmp_path: Path, clock: ManualClock, wire: Wire) -> Iterator[Uploads]:
    """Uploads that have been started on `tmp_path`."""
    started = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
    started.start()
    yield started
    started.stop()
    assert not started._thread.is_alive()


def practise(root: Path, clock: ManualClock, told: Callable[[str], None] = lambda _: None) -> None:
    """Two devices read one step each, with sound."""
    recorder = Recorder(root, clock=clock, ids=CountingIds(), on_ended=told)
    recorder.start()
    for device in ("toy-1", "toy-2"):
        recording = recorder.begin(session_of(device))
        play_step(recording, 0, packets_of(device, 0))
        recording.end(EndReason.LIST_COMPLETED)
    recorder.close()


def test_an_ended_session_is_uploaded_for_its_own_device(
    tmp_path: Path, cloud: FakeCloud, clock: ManualClock, wire: Wire, sending: Uploads
) -> None:
    """Events and recordings, each request with the name of the device that practised."""
    practise(tmp_path, clock, sending.ended)
    wire.wait(4)
    sending.stop()
    assert sorted(wire.devices) == [
        ("POST", "toy-1"),
        ("POST", "toy-2"),
        ("PUT", "toy-1"),
        ("PUT", "toy-2"),
    ]
    assert {len(found) for found in cloud.events.values()} == {5}
    assert {len(found) for found in cloud.media.values()} == {1}


def test_a_server_that_was_away_for_hours_gets_everything(
    tmp_path: Path, cloud: FakeCloud, clock: ManualClock, wire: Wire, sending: Uploads
) -> None:
    """What the schedule left pending goes when the server is back."""
    cloud.next.extend([Cut()] * 24)
    practise(tmp_path, clock, sending.ended)
    for _ in range(12):
        wire.wait(2)
        clock.advance(3600)
        sending.trigger()
    wire.wait(4)
    sending.stop()
    assert {len(found) for found in cloud.events.values()} == {5}


def test_a_refused_session_is_tried_again_at_the_next_start(
    tmp_path: Path, cloud: FakeCloud, clock: ManualClock, wire: Wire
) -> None:
    """A person has seen to the token or the device meanwhile; a trigger alone does not help."""
    practise(tmp_path, clock)
    cloud.token = "another"
    first = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
    first.start()
    wire.wait(2)
    first.trigger()
    first.stop()
    assert (len(wire.devices), cloud.events) == (2, {})
    cloud.token = "token"
    second = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
    second.start()
    wire.wait(4)
    second.stop()
    assert {len(found) for found in cloud.events.values()} == {5}


def test_a_folder_that_another_process_holds_is_waited_for(
    tmp_path: Path,
    cloud: FakeCloud,
    clock: ManualClock,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gateway before this one may still be ending."""
    monkeypatch.setattr(uploads, "_AGAIN_S", 0.01)
    practise(tmp_path, clock)
    failed = threading.Event()
    with FolderLock(tmp_path, ConflictError):
        one = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
        monkeypatch.setattr(one, "_failed", lambda _: failed.set())
        one.start()
        assert failed.wait(PATIENCE_S)
    wire.wait(4)
    one.stop()
    assert {len(found) for found in cloud.events.values()} == {5}


def test_a_defect_does_not_end_uploading(
    tmp_path: Path,
    cloud: FakeCloud,
    clock: ManualClock,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is logged, and tried again."""
    monkeypatch.setattr(uploads, "_AGAIN_S", 0.01)
    practise(tmp_path, clock)
    true_run, left = Outbox.run_due, [2]

    def fail_twice(outbox: Outbox, *arguments: object) -> object:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(5, "the disk")
        return true_run(outbox, *arguments)  # type: ignore[arg-type] # handed on as it came

    monkeypatch.setattr(Outbox, "run_due", fail_twice)
    one = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
    one.start()
    wire.wait(4)
    one.stop()
    assert {len(found) for found in cloud.events.values()} == {5}


def test_old_sessions_go_once_they_are_uploaded(
    tmp_path: Path, clock: ManualClock, wire: Wire
) -> None:
    """By the archive's rules: after 30 days, and only what the server has."""
    practise(tmp_path, clock)
    one = Uploads(tmp_path, "https://web.test", "token", clock=clock, wire=wire)
    one.start()
    wire.wait(4)
    one.trigger()
    folders = len(list(tmp_path.glob("*/events.jsonl")))
    clock.advance(timedelta(days=31).total_seconds())
    one.trigger()
    due = time.monotonic() + PATIENCE_S
    while any(tmp_path.glob("*/events.jsonl*")) and time.monotonic() < due:
        time.sleep(0.01)
    one.stop()
    assert (folders, list(tmp_path.iterdir())) == (2, [])


@pytest.mark.parametrize(
    ("server", "token", "error"),
    [
        ("ftp://web.test", "token", ServerAddressError),
        ("https://web.test", "to ken", TokenUnusableError),
        ("https://web.test", "", TokenUnusableError),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    tmp_path: Path, server: str, token: str, error: type[Exception]
) -> None:
    """When it is made, not in its thread."""
    with pytest.raises(error):
        Uploads(tmp_path, server, token, clock=ManualClock())


def test_one_that_was_never_started_stops(tmp_path: Path) -> None:
    """A gateway that fails while it starts stops what it has."""
    Uploads(tmp_path, "https://web.test", "token", clock=ManualClock()).stop()
