"""Chat and translation: what was said, a model's answer, spoken. Never assessed, never recorded.

Without a model there is a short fixed answer. Each thing that is said begins a turn; whatever
interrupts begins another, and an answer to an earlier one is dropped wherever it is by then.
"""

import asyncio
from collections.abc import Callable

import structlog

from etude.errors import EtudeError
from etude.gateway.ports import PlaybackEnd
from etude.practice.conversation import (
    ANSWER_S,
    REMEMBERED,
    Ask,
    Purpose,
    Said,
    sentences,
)
from etude.practice.records import EndReason, Prompt
from etude.practice.speaking import Speaker
from etude.practice.voice import is_voice

_log = structlog.get_logger(__name__)


class Talk:
    """Answers whatever is said; runs between tasks, and as the task `TRANSLATE`."""

    def __init__(
        self,
        speaker: Speaker,
        locale: str,
        finished: Callable[[EndReason], None] | None = None,
        *,
        ask: Ask | None = None,
        has_ear: bool = False,
    ) -> None:
        """Answer in `locale`.

        Args:
            speaker: the device's voice.
            locale: of what is said.
            finished: called once, when somebody leaves a task; None = this is the chat.
            ask: the model; None = the short fixed answer.
            has_ear: whether what is said comes as text; else any voice in push-to-talk is answered.
        """
        self._speaker = speaker
        self._locale = locale
        self._finished = finished
        self._purpose = Purpose.TRANSLATE if finished else Purpose.CHAT
        self._ask = ask
        self._has_ear = has_ear
        self._heard = False
        self._released = False
        self._told_missed = False
        self._turn = 0
        self._answering: asyncio.Task[None] | None = None
        self._history: tuple[Said, ...] = ()

    def begin(self) -> None:
        """Wait to be spoken to."""

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Note that somebody speaks."""
        del arrived_s
        self._heard = self._heard or is_voice(packet)

    def listen_stopped(self) -> None:
        """Somebody has let go of the button: what they said gets its answer."""
        if self._heard and not self._has_ear:
            self._answer_briefly()
        self._released = self._heard and self._has_ear

    def missed(self, *, for_good: bool = False) -> None:
        """Somebody spoke, and nobody could tell what; who held the button waits for an answer.

        `for_good`: no engine here knows the language. Then whoever speaks is told so, once: a toy
        that never hears is not to seem broken, and in a noisy room not to talk without end.
        """
        if self._released or (for_good and not self._told_missed):
            self._told_missed = self._told_missed or for_good
            self._answer_briefly()

    def recognised(self, text: str, at_s: float) -> None:
        """Something was said; while an answer is made or given, it is nobody's."""
        del at_s
        if not text or self._answering is not None or self._speaker.speaking:
            return
        if self._ask is None:
            self._answer_briefly()
            return
        self._heard = self._released = False
        self._speaker.show(text)
        answer = self._answer(self._ask, text, self._turn)
        self._answering = asyncio.get_running_loop().create_task(answer)

    def hush(self) -> None:
        """Drop the answer that is being made or given."""
        self._turn += 1
        answering, self._answering = self._answering, None
        if answering is not None:
            answering.cancel()
        self._speaker.hush()

    def aborted(self) -> None:
        """Whoever interrupts wants to go on talking."""
        self.hush()

    def leave(self, reason: EndReason) -> None:
        """End it."""
        self.hush()
        finished, self._finished = self._finished, None
        if finished:
            finished(reason)

    def disconnect(self) -> None:
        """There is nothing to keep."""
        self.hush()

    async def _answer(self, ask: Ask, text: str, turn: int) -> None:
        said = (*self._history, Said("learner", text))[-REMEMBERED:]
        spoken = await self._asked(ask, said)
        if turn != self._turn:
            return
        self._answering = None
        if not spoken:
            self._answer_briefly()
            return
        if self._purpose is Purpose.CHAT:  # a translation knows no earlier one
            self._history = (*said, Said("toy", " ".join(spoken)))
        self._speaker.tell(spoken, self._locale, self._told)

    async def _asked(self, ask: Ask, said: tuple[Said, ...]) -> tuple[str, ...]:
        """Return the sentences of the answer; none if there is no answer."""
        try:
            async with asyncio.timeout(ANSWER_S):
                return tuple(sentences(await ask(self._purpose, self._locale, said)))
        except TimeoutError:
            _log.warning("no answer", action="chat.unanswered", code="timeout")
        except EtudeError as error:
            _log.warning("no answer", action="chat.unanswered", code=error.code)
        except Exception:  # noqa: BLE001 - whatever is wrong with a model, the toy answers
            _log.exception("no answer", action="chat.failed")
        return ()

    def _told(self, end: PlaybackEnd) -> None:
        """The answer is over, or was stopped: the next thing that is said is heard."""

    def _answer_briefly(self) -> None:
        self._heard = self._released = False
        if not self._speaker.speaking:
            self._speaker.say(Prompt.FIXED_ANSWER, self._locale)
