"""Cuts what a microphone sends into utterances and has each recognised. Nothing waits for it.

Between utterances lies a pause, by the size of the packets: a device sends silence in a few bytes.
Where a room is never silent, an utterance ends with its window, the button or after 15 s.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from etude.practice.voice import is_voice, lasts_ms

PAUSE_S: Final = 0.6
"""Silence that ends an utterance."""
LONGEST_MS: Final = 15_000
BEFORE: Final = 5
"""Packets before the first voice that belong to it: a word may begin softly."""
LEAST_VOICED: Final = 2
"""Packets of voice; less is a click."""
MOST_PENDING: Final = 2
"""Utterances of one device that are being recognised; what is more is dropped."""

Hear = Callable[[Sequence[bytes], str], Awaitable[str | None]]
"""Recognises packets in a language: empty = nothing was said, None = nobody could tell."""

_log = structlog.get_logger(__name__)


class Ear:
    """The utterances of one connection. Its methods return at once and never raise.

    Args:
        hear: what recognises; None = nothing is cut or recognised.
        language: asked when an utterance is complete.
        understood: called with each text and when its last voice arrived, on the loop's clock.
        missed: called when somebody spoke and nobody could tell what.
    """

    def __init__(
        self,
        hear: Hear | None,
        language: Callable[[], str],
        understood: Callable[[str, float], None],
        missed: Callable[[], None],
    ) -> None:
        """Make it in the loop."""
        self._hear = hear
        self._language = language
        self._understood = understood
        self._missed = missed
        self._loop = asyncio.get_running_loop()
        self._before: deque[bytes] = deque(maxlen=BEFORE)
        self._packets: list[bytes] = []
        self._lasts_ms = 0.0
        self._voiced = 0
        self._voice_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._pending: set[asyncio.Task[None]] = set()

    @property
    def works(self) -> bool:
        """Whether anything is recognised."""
        return self._hear is not None

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Take a packet."""
        packet_ms = lasts_ms(packet) if self._hear else 0.0
        if not packet_ms:  # no Opus
            return
        voice = is_voice(packet)
        if not self._packets:
            if not voice:
                self._before.append(packet)
                return
            self._packets.extend(self._before)
        self._packets.append(packet)
        self._lasts_ms += packet_ms
        if voice:
            self._voiced += 1
            self._voice_s = arrived_s
        if self._lasts_ms >= LONGEST_MS:
            self.cut()
        elif self._timer is None:
            self._timer = self._loop.call_later(PAUSE_S, self._paused)

    def cut(self) -> None:
        """Let the utterance end here, if there is one: at a window's bound, or with the button."""
        packets, voiced = tuple(self._packets), self._voiced
        self.forget()
        if voiced < LEAST_VOICED or self._hear is None:
            return
        if len(self._pending) >= MOST_PENDING:
            _log.warning("not recognised: more is said than heard", action="speech.live.dropped")
            return
        task = self._loop.create_task(self._recognise(self._hear, packets, self._voice_s))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def forget(self) -> None:
        """Drop the utterance that has not ended."""
        self._packets.clear()
        self._before.clear()
        self._lasts_ms, self._voiced = 0.0, 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """The connection is gone: whatever is still recognised is nobody's."""
        self.forget()
        self._hear = None
        for task in self._pending:
            task.cancel()

    def _paused(self) -> None:
        """Look whether it has been silent long enough; one timer, however many packets."""
        self._timer = None
        left_s = self._voice_s + PAUSE_S - self._loop.time()
        if left_s <= 0:
            self.cut()
        else:
            self._timer = self._loop.call_later(left_s, self._paused)

    async def _recognise(self, hear: Hear, packets: Sequence[bytes], at_s: float) -> None:
        try:
            text = await hear(packets, self._language())
        except Exception:  # noqa: BLE001 - an ear that fails is an ear that hears nothing
            _log.exception("recognition failed", action="speech.live.failed")
            text = None
        if text is None:
            self._missed()
        elif text:
            self._understood(text, at_s)
