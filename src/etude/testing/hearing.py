"""Recognition of simulated learners: always right, or failing as a real one may.

Stands between connection and practice, listens to the packets as they come, and hands over what
was said a moment after it was said, as any recogniser does.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal

from etude.gateway.ports import CloseReason, Detected, Device, ListenMode, PracticeFactory
from etude.practice.runtime import DevicePractice
from etude.practice.voice import is_voice
from etude.testing.learner_voice import Voices

SILENCE_S: Final = 0.1
"""So long after the last packet of voice, an utterance is over."""

Recogniser = Literal["right", "raises", "none"]


class RecogniserBrokenError(Exception):
    """What a broken recogniser raises."""


class Hearing:
    """The practice of one connection, with ears."""

    def __init__(self, practice: DevicePractice, voices: Voices, recogniser: Recogniser) -> None:
        """Hear for `practice` what `voices` know."""
        self._practice = practice
        self._voices = voices
        self._recogniser = recogniser
        self._packets: list[bytes] = []
        self._last_s = 0.0
        self._over: asyncio.TimerHandle | None = None
        self._work: set[asyncio.Task[None]] = set()

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Pass a packet on, and keep it if somebody speaks in it."""
        self._practice.audio(packet, arrived_s)
        if self._recogniser == "none" or not is_voice(packet):
            return
        self._packets.append(packet)
        self._last_s = arrived_s
        if self._over is not None:
            self._over.cancel()
        self._over = asyncio.get_running_loop().call_later(SILENCE_S, self._utterance)

    def _utterance(self) -> None:
        packets, self._packets = self._packets, []
        work = asyncio.get_running_loop().create_task(self._recognise(packets, self._last_s))
        self._work.add(work)
        work.add_done_callback(self._settled)

    async def _recognise(self, packets: list[bytes], at_s: float) -> None:
        if self._recogniser == "raises":
            raise RecogniserBrokenError
        text = self._voices.said_in(packets)
        if text is not None:
            self._practice.recognised(text, at_s)

    def _settled(self, work: "asyncio.Task[None]") -> None:
        self._work.discard(work)
        if not work.cancelled():
            work.exception()  # looked at: a recogniser's failure is its own

    @property
    def busy(self) -> bool:
        """See `Practice`."""
        return self._practice.busy

    def failed(self) -> None:
        """See `Practice`."""
        self._practice.failed()

    def opened(self) -> None:
        """See `Practice`."""
        self._practice.opened()

    def tools_listed(self) -> None:
        """See `Practice`."""
        self._practice.tools_listed()

    def listen_started(self, mode: ListenMode) -> None:
        """See `Practice`."""
        self._practice.listen_started(mode)

    def listen_stopped(self) -> None:
        """See `Practice`."""
        self._practice.listen_stopped()

    def detected(self, detected: Detected) -> None:
        """See `Practice`."""
        self._practice.detected(detected)

    def aborted(self, reason: str) -> None:
        """See `Practice`."""
        self._practice.aborted(reason)

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> None:
        """See `Practice`."""
        self._practice.start_task(app_id, task_id, arguments)

    def closed(self, reason: CloseReason) -> None:
        """See `Practice`."""
        if self._over is not None:
            self._over.cancel()
        self._practice.closed(reason)


def with_ears(
    factory: PracticeFactory, voices: Voices, recogniser: Recogniser = "right"
) -> PracticeFactory:
    """Return a factory whose practices hear."""

    def make(device: Device) -> Hearing:
        practice = factory(device)
        assert isinstance(practice, DevicePractice)  # noqa: S101 - what `practice_factory` makes
        return Hearing(practice, voices, recogniser)

    return make
