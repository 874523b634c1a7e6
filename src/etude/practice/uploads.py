"""What a gateway records reaches the server: the outbox, in a thread of its own.

    uploads = Uploads(root, "http://127.0.0.1:8080", token, clock=SystemClock())
    recorder = Recorder(root, clock=clock, ids=ids, on_ended=uploads.ended)
    uploads.start()
    ...
    uploads.stop()

The token is a service's with `upload:on-behalf`; the uploader names the device of each session. A
server that is away, for however long, is tried again as the outbox's schedule says. What was
refused is tried again once a day and at every start, old journals go by the archive's rules.
"""

import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import httpx2
import structlog

from etude.clock import Clock
from etude.edge.archive import Archive
from etude.edge.errors import ServerAddressError, TokenUnusableError
from etude.edge.outbox import Outbox
from etude.edge.upload_state import UploadState, UploadStatus
from etude.errors import EtudeError
from etude.files import Files
from etude.net import FaultKind, HttpClient, NetworkFault

STOP_TIMEOUT_S: Final = 5.0
_AGAIN_S: Final = 5.0  # after a failure of the outbox itself: another process has the folder, say
_TIDIED_EVERY: Final = timedelta(days=1)

_log = structlog.get_logger("etude.uploads")


class Uploads:
    """See the module.

    Args:
        root: the folder of the journals.
        server: the server's address.
        token: of a service that may upload for devices.
        clock: wall-clock times of the schedule.
        files: the disk.
        wire: what stands in for the network in a test.

    Raises:
        ServerAddressError, TokenUnusableError: they cannot work as given.
    """

    def __init__(
        self,
        root: Path,
        server: str,
        token: str,
        *,
        clock: Clock,
        files: Files | None = None,
        wire: httpx2.BaseTransport | None = None,
    ) -> None:
        """Check address and token; nothing is sent yet."""
        self._root = root
        self._clock = clock
        self._files = files or Files()
        self._client = _client(server, token, wire)
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uploads", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ended(self, session_id: str) -> None:
        """Upload soon: a session has ended. From any thread."""
        _log.debug("a session has ended", action="uploads.ended", session_id=session_id)
        self.trigger()

    def trigger(self) -> None:
        """Upload soon: the server is back, or there is something new. From any thread."""
        self._woken.set()

    def stop(self) -> None:
        """End the thread; an upload under way is waited for a few seconds, then left.

        Whatever was not acknowledged is sent again by the next one.
        """
        self._stopped.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        with self._client:
            while not self._stopped.is_set():
                try:
                    self._upload_a_day()
                except EtudeError as error:
                    self._failed(error.code)
                except Exception as error:  # noqa: BLE001 - nobody else would ever upload again
                    self._failed(type(error).__name__)

    def _failed(self, error_code: str) -> None:
        _log.error("uploading failed", action="uploads.failed", error_code=error_code)
        self._stopped.wait(_AGAIN_S)

    def _upload_a_day(self) -> None:
        """Upload until it is time to tidy, then do that: what an outbox remembers ends with it."""
        began = self._clock.now()
        with Outbox(self._root, self._client, clock=self._clock, files=self._files) as outbox:
            outbox.release()
            outbox.trigger()
            while not self._stopped.is_set() and not self._day_over(began):
                outbox.run_due(_report)
                self._woken.wait(outbox.next_wait_s())
                if self._woken.is_set():
                    self._woken.clear()
                    outbox.trigger()
        if not self._stopped.is_set():
            self._tidy()

    def _tidy(self) -> None:
        archive = Archive(self._root, clock=self._clock, files=self._files)
        archive.pack_old()
        archive.delete_old()

    def _day_over(self, began: datetime) -> bool:
        return abs(self._clock.now() - began) >= _TIDIED_EVERY


def _client(server: str, token: str, wire: httpx2.BaseTransport | None) -> HttpClient:
    try:
        return HttpClient(server, bearer=token, wire=wire)
    except NetworkFault as fault:
        if fault.kind is FaultKind.TOKEN:
            raise TokenUnusableError(reason=fault.reason) from fault
        raise ServerAddressError(reason=fault.reason) from fault


def _report(state: UploadState) -> None:
    if state.status in {UploadStatus.REFUSED, UploadStatus.ERASED}:
        _log.warning(
            "the server refused a session",
            action=f"uploads.{state.status.value}",
            session_id=state.session_id,
            error_code=state.problem.code if state.problem else None,
        )
