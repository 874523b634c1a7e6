from collections.abc import Callable
from pathlib import Path

import pytest

from etude.edge import errors
from etude.edge.media import keep_recording, recordings
from etude.edge.outbox import Outbox
from etude.edge.upload_state import UploadStatus
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import Cut, FakeCloud
from etude.testing.journals import write_journal

OpenOutbox = Callable[..., Outbox]


def test_recordings_follow_the_events(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Each once, after every event, with its type."""
    folder = write_journal(tmp_path)
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
    folder = write_journal(tmp_path)
    sha256 = keep_recording(folder, b"RIFF good", "audio/wav")
    (folder / "media" / f"{'0' * 64}.wav").write_bytes(b"damaged")
    (state,) = open_outbox().run_due()
    assert [(one.code, one.sha256) for one in state.refused] == [("BLOB_DIGEST_MISMATCH", "0" * 64)]
    assert (list(cloud.media["s-1"]), state.status) == ([sha256], UploadStatus.DONE)


def test_a_recording_cut_off_is_sent_again_and_the_events_are_not(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, clock: ManualClock
) -> None:
    """What is acknowledged stays acknowledged."""
    folder = write_journal(tmp_path)
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
