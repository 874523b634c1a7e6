"""The registry and bundles of courseware as a gateway reaches them: over HTTP, from web.

The routes are public, so no token is sent. No address that an answer names is followed.
"""

import threading
from typing import BinaryIO, Final
from urllib.parse import quote

import httpx2
import msgspec

from etude.courseware.errors import DownloadFailedError, ManifestWithdrawnError
from etude.courseware.loading import Registered
from etude.courseware.zip_writing import LARGEST_BYTES
from etude.net import HttpClient, NetworkFault, Timeouts

_TIMEOUTS: Final = Timeouts(connect_s=5.0, silence_s=20.0, answer_s=1800.0)
_OK, _UNKNOWN, _GONE = 200, 404, 410


class CoursewareSource:
    """Asks one server; each call has a connection of its own, from any thread."""

    def __init__(self, server: str, wire: httpx2.BaseTransport | None = None) -> None:
        """Remember the address; `wire` stands in for the network in a test."""
        self._server = server
        self._wire = wire
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let downloads that are under way fail at their next block."""
        self._stopped.set()

    def ask(self, courseware_id: str, version: int) -> Registered | None:
        """Return what the registry knows of a version that a course pins; None: nothing.

        Raises:
            ManifestWithdrawnError: it was taken away.
            DownloadFailedError: the server cannot be reached, or does not answer as it should.
        """
        path = f"/api/coursewares/{quote(courseware_id, safe='')}?version={version}"
        try:
            with self._client() as client:
                reply = client.send("GET", path, b"", {"Accept": "application/json"})
        except NetworkFault as fault:
            raise DownloadFailedError(reason=fault.kind.value) from fault
        if reply.status == _UNKNOWN:
            return None
        if reply.status == _GONE:
            raise ManifestWithdrawnError(course=courseware_id, version=version, reason="—")
        if reply.status != _OK:
            raise DownloadFailedError(reason=f"HTTP {reply.status}")
        try:
            return msgspec.json.decode(reply.body, type=Registered)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DownloadFailedError(reason="not the registry's answer") from error

    def download(self, registered: Registered, into: BinaryIO) -> None:
        """Write the bundle of a version into a file; raises `DownloadFailedError`."""
        name = quote(registered.courseware_id, safe="")
        path = f"/api/coursewares/{name}/bundles/{registered.version}/download"
        try:
            with self._client() as client, client.fetching(path, LARGEST_BYTES) as answer:
                status, blocks = answer
                if status != _OK:
                    raise DownloadFailedError(reason=f"HTTP {status}")
                for block in blocks:
                    if self._stopped.is_set():
                        raise DownloadFailedError(reason="stopped")
                    into.write(block)
        except NetworkFault as fault:
            raise DownloadFailedError(reason=fault.kind.value) from fault

    def _client(self) -> HttpClient:
        return HttpClient(self._server, timeouts=_TIMEOUTS, wire=self._wire)
