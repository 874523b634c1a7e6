"""The recording window of one step: how long it is, what falls into it, what turn it leaves. Pure.

All instants are seconds of the event loop's clock. A packet tells when it arrived, not when it was
spoken, and a device holds packets back and sends them at once. The fastest packet tells when the
microphone began; counting from there, a late packet was spoken before the window's end, or not.
"""

import math
from typing import Any, Final

from etude.practice.records import LISTEN_RATIO_MAX, LISTEN_RATIO_MIN, WINDOW_MIN_MS, Turn
from etude.practice.voice import is_voice, lasts_ms

GRACE_S: Final = 0.4
"""How long after its end what arrives late still belongs to a window."""
QUEUE_MS: Final = 2_400
"""What a device may hold back, and then send at once (40 packets)."""


def window_ms(duration_ms: int, ratio: float) -> int:
    """Return how long the learner has after a clip of `duration_ms` (`docs/rules.md 15`).

    max(800, ratio x duration), the ratio clamped to 1.2 to 1.5.
    """
    clamped = min(max(ratio, LISTEN_RATIO_MIN), LISTEN_RATIO_MAX)
    return max(WINDOW_MIN_MS, round(clamped * duration_ms))


class Window:
    """What arrives between the end of a clip and the beginning of the next.

    Attributes:
        step_index: from 0.
        duration_ms: of the clip before it.
        length_ms: how long it is open.
        opened_s: when it opened: the arrival of the clip's end.
        closes_s: when its timer is due.
        heard: whether voice has come.
        text: what was recognised last, None = nothing.
    """

    def __init__(self, step_index: int, duration_ms: int, length_ms: int, opened_s: float) -> None:
        """Open it."""
        self.step_index = step_index
        self.duration_ms = duration_ms
        self.length_ms = length_ms
        self.opened_s = opened_s
        self.closes_s = opened_s + length_ms / 1000
        self.heard = False
        self.text: str | None = None
        self._packets: list[bytes] = []
        self._kept_ms = 0.0
        self._spoken_from_s = math.inf

    def takes(self, at_s: float) -> bool:
        """Whether what was said or has arrived at that time belongs here."""
        return self.opened_s <= at_s <= self.closes_s + GRACE_S

    def hear(self, packet: bytes, arrived_s: float) -> None:
        """Keep a packet; what is no Opus, and more than a microphone can fill, is dropped.

        What arrives in the grace is kept, for it may be the last syllable; it counts as heard only
        if it was spoken before the end.
        """
        packet_ms = lasts_ms(packet)
        if not packet_ms or self._kept_ms > self.length_ms + GRACE_S * 1000 + QUEUE_MS:
            return
        if is_voice(packet) and not self._spoken_after_end(arrived_s):
            self.heard = True
        self._kept_ms += packet_ms
        self._packets.append(packet)
        if arrived_s <= self.closes_s:
            self._spoken_from_s = min(self._spoken_from_s, arrived_s - self._kept_ms / 1000)

    def _spoken_after_end(self, arrived_s: float) -> bool:
        """Whether a packet that arrives now was spoken when the window had closed.

        Where none came in time, all were held back: a microphone that is always on is never silent.
        """
        if arrived_s <= self.closes_s or self._spoken_from_s == math.inf:
            return False
        return self._spoken_from_s + self._kept_ms / 1000 >= self.closes_s

    def cut_short(self, at_s: float) -> None:
        """End it before its timer."""
        self.length_ms = max(0, min(self.length_ms, round((at_s - self.opened_s) * 1000)))

    def turn(
        self, prompt_text: str, expected_text: str | None, detail: dict[str, Any] | None = None
    ) -> Turn:
        """Return what it leaves."""
        return Turn(
            step_index=self.step_index,
            prompt_text=prompt_text,
            expected_text=expected_text,
            asr_text=self.text,
            heard=self.heard,
            packets=tuple(self._packets),
            duration_ms=self.duration_ms,
            window_ms=self.length_ms,
            detail=detail,
        )
