"""Inline tasks: question, answer, feedback at once (`docs/practice.md §The others`).

Their own step loop, which shares nothing with the clock of follow-read: here the answer decides
what is said next, there it never does.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from etude.gateway.ports import Device, PlaybackEnd
from etude.practice.evidence import Evidence
from etude.practice.questions import EXACT_MATCH, Question, ask
from etude.practice.records import EndReason, Prompt, Turn
from etude.practice.speaking import Speaker
from etude.practice.tasks import Task
from etude.practice.voice import is_voice, lasts_ms

PAUSE_S: Final = 1.0
"""How long an answer is left on the display before the next question."""
MOST_PACKETS: Final = 4_000
"""Of one answer; more than any microphone sends in the longest window of a question."""


class _Answer:
    """What comes while a question is open."""

    def __init__(self, opened_s: float) -> None:
        self.opened_s = opened_s
        self.text: str | None = None
        self.heard = False
        self.packets: list[bytes] = []


class Inline:
    """A number of questions on one device; used up when it is over."""

    def __init__(  # noqa: PLR0913 - `TaskMaker` names each part
        self,
        task: Task,
        device: Device,
        speaker: Speaker,
        evidence: Evidence,
        chance: random.Random,
        finished: Callable[[EndReason], None],
        *,
        first: int = 0,
        bounded: Callable[[], None] = lambda: None,
    ) -> None:
        """Make it, in the loop it will run in; it begins with question `first`.

        `bounded` is called when an answer begins: what was said before it is none.
        """
        self._task = task
        self._device = device
        self._speaker = speaker
        self._evidence = evidence
        self._chance = chance
        self._finished = finished
        self._bounded = bounded
        self._loop = asyncio.get_running_loop()
        self._step = first
        self._question: Question | None = None
        self._answer: _Answer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def begin(self) -> None:
        """Ask the first question."""
        self._evidence.began()
        self._ask()

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """Keep what is said while a question is open."""
        del arrived_s
        if not lasts_ms(packet):  # no Opus
            return
        if self._answer is not None and len(self._answer.packets) < MOST_PACKETS:
            self._answer.packets.append(packet)
            self._answer.heard = self._answer.heard or is_voice(packet)

    def recognised(self, text: str, at_s: float) -> None:
        """Take an answer; the last one counts."""
        if self._answer is not None and text and at_s >= self._answer.opened_s:
            self._answer.text = text
            self._answer.heard = True

    def listen_stopped(self) -> None:
        """The time of a question is not shortened by it."""

    def aborted(self) -> None:
        """Somebody stopped it."""
        self.leave(EndReason.PLAY_STOPPED)

    def leave(self, reason: EndReason) -> None:
        """End it at once; a question without an answer leaves no turn."""
        if self._over:
            return
        self._quiet()
        if self._answer is not None and self._answer.text is not None:
            self._write(self._answer)
        self._finish(reason)

    def disconnect(self) -> None:
        """The connection is gone; the open question is asked anew when it comes back."""
        if not self._over:
            self._quiet()
            self._over = True
            self._evidence.disconnected(self._step)

    def _ask(self) -> None:
        if self._over:
            return
        if self._step >= self._task.rounds:
            self._finish(EndReason.LIST_COMPLETED)
            return
        question = ask(self._task.activity, self._step, self._chance)
        self._question = question
        self._evidence.asked(self._step, question.text, question.answer)
        self._device.show(question.text)
        if self._speaker.has_voice:
            words = question.spoken(self._task.language)
            self._speaker.tell((words,), self._task.language, self._open, show=False)
        else:
            self._open(PlaybackEnd.COMPLETED)

    def _open(self, end: PlaybackEnd) -> None:
        """Let the answer come: the question has been asked."""
        if self._over or end is PlaybackEnd.CLOSED:
            return
        if end is PlaybackEnd.STOPPED:
            self.leave(EndReason.PLAY_STOPPED)
            return
        self._answer = _Answer(self._loop.time())
        window_s = (self._task.window_ms or 0) / 1000
        self._timer = self._loop.call_later(window_s, self._judge)
        self._bounded()

    def _judge(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None or self._question is None:
            return
        self._evidence.window_closed(self._step, self._task.window_ms or 0, heard=answer.heard)
        matched = self._write(answer)
        self._step += 1
        if matched is not None:
            prompt = Prompt.RIGHT_ANSWER if matched else Prompt.OTHER_ANSWER
            self._speaker.say(prompt, self._task.language, self._told)
        else:
            self._told(PlaybackEnd.COMPLETED)
        if not matched:
            self._device.show(f"{self._question.text} {self._question.answer}")

    def _told(self, end: PlaybackEnd) -> None:
        if self._over or end is PlaybackEnd.CLOSED:
            return
        if end is PlaybackEnd.STOPPED:
            self.leave(EndReason.PLAY_STOPPED)
        else:
            self._timer = self._loop.call_later(PAUSE_S, self._ask)

    def _write(self, answer: _Answer) -> int | None:
        """Write the turn; return 1, 0, or None if nothing was recognised."""
        question = self._question
        assert question is not None  # noqa: S101 - an answer has a question
        matched = None if answer.text is None else question.match(answer.text)
        detail: dict[str, Any] = {
            "question": question.text,
            "answer": question.answer,
            EXACT_MATCH: matched,
        }
        if matched is None:
            detail["reason"] = "no_speech"
        open_ms = round((self._loop.time() - answer.opened_s) * 1000)
        turn = Turn(
            step_index=self._step,
            prompt_text=question.text,
            expected_text=question.answer,
            asr_text=answer.text,
            heard=answer.heard,
            packets=tuple(answer.packets),
            duration_ms=0,
            window_ms=min(open_ms, self._task.window_ms or open_ms),
            detail=detail,
        )
        self._evidence.turn(turn)
        return matched

    def _quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._speaker.hush()

    def _finish(self, reason: EndReason) -> None:
        self._over = True
        self._answer = None
        self._evidence.ended(reason)
        self._finished(reason)
