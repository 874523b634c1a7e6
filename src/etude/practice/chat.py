"""Chat and translation while no model is configured: a short fixed answer. Never assessed."""

from collections.abc import Callable

from etude.practice.records import EndReason, Prompt
from etude.practice.speaking import Speaker
from etude.practice.voice import is_voice


class Talk:
    """Answers whatever is said; runs between tasks, and as the task `TRANSLATE`."""

    def __init__(
        self, speaker: Speaker, locale: str, finished: Callable[[EndReason], None] | None = None
    ) -> None:
        """Answer in `locale`. `finished` is called once, when somebody leaves."""
        self._speaker = speaker
        self._locale = locale
        self._finished = finished
        self._heard = False

    def begin(self) -> None:
        """Wait to be spoken to."""

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Note that somebody speaks."""
        del arrived_s
        self._heard = self._heard or is_voice(packet)

    def listen_stopped(self) -> None:
        """Somebody has let go of the button: what they said gets its answer."""
        if self._heard:
            self._answer()

    def recognised(self, text: str, at_s: float) -> None:
        """Something was said."""
        del at_s
        if text:
            self._answer()

    def aborted(self) -> None:
        """Whoever interrupts wants to go on talking."""

    def leave(self, reason: EndReason) -> None:
        """End it."""
        finished, self._finished = self._finished, None
        if finished:
            finished(reason)

    def disconnect(self) -> None:
        """There is nothing to keep."""

    def _answer(self) -> None:
        self._heard = False
        if not self._speaker.speaking:
            self._speaker.say(Prompt.FIXED_ANSWER, self._locale)
