from pathlib import Path

from etude.edge.media import keep_recording
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder
from etude.edge.upload_state import UploadState, UploadStatus
from etude.edge.uploader import Uploader
from etude.files import Files, armed
from etude.net import HttpClient
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import FakeCloud
from etude.testing.journals import write_journal
from etude.testing.lossy_files import LossyFiles, PowerCutError


class Attempt:
    """One upload of a session with a recording, on a disk that may lose its power."""

    def __init__(self, folder: Path, cut_at: int | None = None) -> None:
        self.folder = folder
        self.cloud = FakeCloud()
        root = folder / "live"
        keep_recording(write_journal(root), b"RIFF", "audio/wav")
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
    folder = JournalFolder(write_journal(tmp_path, count=4))
    second = list(folder.lines())[1]
    state = UploadState(session_id="s-1", acknowledged=second.after)
    client = HttpClient("https://cloud.test", wire=cloud.wire())
    Uploader(client, folder, state, save=lambda _: None, clock=clock).run()
    assert list(cloud.events["s-1"]) == ["e003", "e004"]
