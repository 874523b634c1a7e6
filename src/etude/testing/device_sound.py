"""Loudspeaker and microphone of a simulated device (`docs/gateway.md §Playing`)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from etude.testing import learner_voice

FRAME_S: Final = learner_voice.FRAME_MS / 1000
_COMFORT_EVERY: Final = 7  # DTX: a comfort frame every 420 ms of silence


class ClipBook:
    """Which clip a packet belongs to, for the timeline."""

    def __init__(self, clips: Mapping[str, Iterable[bytes]] | None = None) -> None:
        """Know `clips`, packets by name; packets that two clips share tell nothing."""
        self._name_of: dict[bytes, str | None] = {}
        for name, packets in (clips or {}).items():
            for packet in packets:
                known = self._name_of.setdefault(packet, name)
                if known != name:
                    self._name_of[packet] = None

    def name_of(self, packet: bytes) -> str | None:
        """Return the name of the one clip that has this packet."""
        return self._name_of.get(packet)


class FramesHeard(msgspec.Struct, kw_only=True):
    """What became of the audio that was sent to a device.

    Attributes:
        played: packets that were decoded in time or late.
        late: came more than a frame after the decoder had run dry: the clip stuttered.
        overflowed: dropped, because the decoder's queue was full.
        unheard: came while the device was not speaking.
        worst_late_s: how long the longest such gap was.
    """

    played: int = 0
    late: int = 0
    overflowed: int = 0
    unheard: int = 0
    worst_late_s: float = 0.0


class Speaker:
    """The decoder's queue, kept as the moment at which it will have been played out."""

    def __init__(self, queue_packets: int) -> None:
        """Hold `queue_packets`; the newest beyond is dropped."""
        self.frames = FramesHeard()
        self._queue_s = queue_packets * FRAME_S
        self._from_s = 0.0
        self._dry_at_s = 0.0

    def reset(self, from_s: float) -> None:
        """Begin to speak; what comes before `from_s` is lost in the change of states."""
        self._from_s, self._dry_at_s = from_s, 0.0

    def take(self, now_s: float) -> bool:
        """Queue a packet that came now; False if it is lost."""
        if now_s < self._from_s:
            self.frames.unheard += 1
            return False
        if self._dry_at_s - now_s > self._queue_s - FRAME_S:
            self.frames.overflowed += 1
            return False
        late_s = now_s - self._dry_at_s
        if self._dry_at_s and late_s > FRAME_S:  # the sound hardware has one frame in hand
            self.frames.late += 1
            self.frames.worst_late_s = max(self.frames.worst_late_s, late_s)
        self._dry_at_s = max(self._dry_at_s, now_s) + FRAME_S
        self.frames.played += 1
        return True

    def left_s(self, now_s: float) -> float:
        """Return how long what is queued still plays."""
        return max(0.0, self._dry_at_s - now_s)


class Microphone:
    """Sends a packet every 60 ms while it is open: what was said, else silence with DTX."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        """Give each packet to `send`."""
        self._send = send
        self._said: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due_s = 0.0
        self._silent_packets = 0

    @property
    def is_open(self) -> bool:
        """Whether it streams."""
        return self._timer is not None

    def open(self) -> None:
        """Stream from now on, the first packet once it is full."""
        self.close()
        loop = asyncio.get_running_loop()
        self._due_s = loop.time() + FRAME_S
        self._timer = loop.call_at(self._due_s, self._tick)

    def close(self) -> None:
        """Stop; what was being said is not heard."""
        self._said.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hear(self, packets: Sequence[bytes]) -> None:
        """Let these be said from now on, in the place of what was being said; if closed, lost."""
        if self.is_open:
            self._said = list(reversed(packets))

    def _tick(self) -> None:
        self._due_s += FRAME_S
        self._timer = asyncio.get_running_loop().call_at(self._due_s, self._tick)
        self._send(self._said.pop() if self._said else self._silence())

    def _silence(self) -> bytes:
        self._silent_packets += 1
        return learner_voice.DTX if self._silent_packets % _COMFORT_EVERY else learner_voice.COMFORT
