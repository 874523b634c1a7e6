"""What a gateway records arrives at a real server, under its service token."""

import time
from pathlib import Path

import httpx2

from etude.clock import RandomIds, SystemClock
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason
from etude.practice.uploads import Uploads
from etude.testing.installation import Served
from etude.testing.practising import packets_of, play_step, session_of

PATIENCE_S = 60.0


def stored(client: httpx2.Client, session_id: str) -> dict[str, object]:
    """The session as the server shows it, once it has its recordings."""
    due = time.monotonic() + PATIENCE_S
    while time.monotonic() < due:
        answer = client.get(f"/api/v1/sessions/{session_id}")
        if answer.is_success and answer.json()["media"]:
            return dict(answer.json())
        time.sleep(0.02)
    raise TimeoutError(answer.text)


def test_a_session_of_a_toy_reaches_whom_it_belongs_to(served: Served, tmp_path: Path) -> None:
    """Events, recording and learner are right, although the gateway's token is no device's."""
    token = served.installation.tokens["gateway"]
    clock = SystemClock()
    uploads = Uploads(tmp_path, served.server.url, token, clock=clock)
    recorder = Recorder(tmp_path, clock=clock, ids=RandomIds(), on_ended=uploads.ended)
    recorder.start()
    uploads.start()
    try:
        recording = recorder.begin(session_of("toy-1"))
        play_step(recording, 0, packets_of("toy-1", 0))
        recording.end(EndReason.LIST_COMPLETED)
        with served.client("toy-1") as toy:
            shown = stored(toy, recording.session_id)
    finally:
        recorder.close()
        uploads.stop()
    assert (shown["device_id"], shown["learner_id"], shown["events"]) == ("toy-1", "anna", 5)
