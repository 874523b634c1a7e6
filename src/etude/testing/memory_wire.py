"""Both neighbours of a device connection without a socket: what it sends on, and whom it tells."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from etude.gateway.ports import CloseReason, Detected, Device, ListenMode
from etude.speech.clips import EncodedClip


class MemoryWire:
    """A `connection.Wire` that keeps what was sent, with the time it left."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        """Take times from `now_s`."""
        self._now_s = now_s
        self.sent: list[tuple[float, str | bytes]] = []
        self.closed: CloseReason | None = None
        self.unsent = 0

    def send(self, message: str | bytes) -> None:
        """Keep it."""
        self.sent.append((self._now_s(), message))

    def unsent_bytes(self) -> int:
        """Return what the test has set."""
        return self.unsent

    def close(self, reason: CloseReason) -> None:
        """Keep why."""
        self.closed = reason

    def said(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the JSON messages of a type, all by default."""
        texts = [message for _, message in self.sent if isinstance(message, str)]
        messages = [msgspec.json.decode(text, type=dict[str, Any]) for text in texts]
        return [message for message in messages if kind in {"", message["type"]}]

    def order(self) -> list[str]:
        """Return what was sent, each as a word or two: `tts start`, `frame`, `stt`."""
        return [_word(message) for _, message in self.sent]

    def frames(self) -> list[tuple[float, bytes]]:
        """Return the binary messages with their times."""
        return [(at, message) for at, message in self.sent if isinstance(message, bytes)]


def _word(message: str | bytes) -> str:
    if isinstance(message, bytes):
        return "frame"
    fields = msgspec.json.decode(message, type=dict[str, Any])
    return " ".join([fields["type"], *([fields["state"]] if "state" in fields else [])])


class NotingPractice:
    """A `Practice` that notes what it is told, and raises where a test wants it to."""

    def __init__(self, device: Device) -> None:
        """Run on `device`."""
        self.device = device
        self.heard: list[tuple[Any, ...]] = []
        self.broken: set[str] = set()
        self.busy = False

    def names(self) -> list[str]:
        """Return what it was told, without arguments."""
        return [name for name, *_ in self.heard]

    def failed(self) -> None:
        """See `Practice`."""
        self._note("failed")

    def opened(self) -> None:
        """See `Practice`."""
        self._note("opened")

    def tools_listed(self) -> None:
        """See `Practice`."""
        self._note("tools_listed")

    def listen_started(self, mode: ListenMode) -> None:
        """See `Practice`."""
        self._note("listen_started", mode)

    def listen_stopped(self) -> None:
        """See `Practice`."""
        self._note("listen_stopped")

    def detected(self, detected: Detected) -> None:
        """See `Practice`."""
        self._note("detected", detected)

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """See `Practice`."""
        self._note("audio", packet, arrived_s)

    def aborted(self, reason: str) -> None:
        """See `Practice`."""
        self._note("aborted", reason)

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> None:
        """See `Practice`."""
        self._note("start_task", app_id, task_id, dict(arguments))

    def closed(self, reason: CloseReason) -> None:
        """See `Practice`."""
        self._note("closed", reason)

    def _note(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever was told
        self.heard.append((name, *arguments))
        if name in self.broken:
            raise RuntimeError(name)


def plain_clip(frames: int = 10, frame_ms: int = 60, sample_rate: int = 24_000) -> EncodedClip:
    """Return a clip whose packets are numbered, and no sound: for whoever does not decode."""
    packets = tuple(b"packet-%04d" % number for number in range(frames))
    return EncodedClip(
        packets=packets, frame_ms=frame_ms, sample_rate=sample_rate, duration_ms=frames * frame_ms
    )
