"""Lesson packs as a gateway reaches them: over HTTP, from web, with the token of its link."""

import threading
from collections.abc import Callable
from typing import BinaryIO, Final
from urllib.parse import quote

import httpx2
import msgspec

from etude.net import HttpClient, NetworkFault, Timeouts
from etude.practice.assigned import LessonAddress
from etude.practice.lesson_errors import LessonPackError
from etude.practice.lesson_packs import Pack, PackClip

PATH: Final = "/api/v1/gateway/lessons"
_TIMEOUTS: Final = Timeouts(connect_s=5.0, silence_s=20.0, answer_s=600.0)
_OK: Final = 200


class PackSource:
    """Asks one server; each call has a connection of its own, from any thread."""

    def __init__(
        self, server: str, token: Callable[[], str], wire: httpx2.BaseTransport | None = None
    ) -> None:
        """Remember the address; `token` reads the gateway's own anew, `wire` is for tests."""
        self._server = server
        self._token = token
        self._wire = wire
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let downloads that are under way fail at their next block."""
        self._stopped.set()

    def ask(self, address: LessonAddress) -> Pack:
        """Return what a lesson holds on web; raises `LessonPackError`."""
        try:
            with self._client() as client:
                reply = client.send("GET", _path(address), b"", {"Accept": "application/json"})
        except NetworkFault as fault:
            raise LessonPackError(lesson=address.lesson_id, reason=fault.kind.value) from fault
        if reply.status != _OK:
            raise LessonPackError(lesson=address.lesson_id, reason=f"HTTP {reply.status}")
        try:
            return msgspec.json.decode(reply.body, type=Pack)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LessonPackError(lesson=address.lesson_id, reason="no pack") from error

    def fetch(self, address: LessonAddress, clip: PackClip, into: BinaryIO) -> None:
        """Write a clip into a file; raises `LessonPackError`."""
        path = f"{_path(address)}/clips/{quote(clip.clip, safe='')}"
        try:
            with self._client() as client, client.fetching(path, clip.size_bytes) as answer:
                status, blocks = answer
                if status != _OK:
                    raise LessonPackError(lesson=address.lesson_id, reason=f"HTTP {status}")
                for block in blocks:
                    if self._stopped.is_set():
                        raise LessonPackError(lesson=address.lesson_id, reason="stopped")
                    into.write(block)
        except NetworkFault as fault:
            raise LessonPackError(lesson=address.lesson_id, reason=fault.kind.value) from fault

    def _client(self) -> HttpClient:
        return HttpClient(self._server, bearer=self._token(), timeouts=_TIMEOUTS, wire=self._wire)


def _path(address: LessonAddress) -> str:
    parts = (address.app_id, address.task_id, address.lesson_id)
    return PATH + "".join(f"/{quote(part, safe='')}" for part in parts)
