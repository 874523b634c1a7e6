"""Learners by script: what each says and when, watching the timeline of a simulated device.

A learner hears what the device plays, not what the server knows: a script answers clips that began
and clips that are over. What is out of the ordinary (leaving, the button) is up to the scenario.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from etude.testing.fake_device import FakeDevice, Seen
from etude.testing.learner_voice import Voices

REACTION_S: Final = 0.15
_LEAST_WINDOW_MS: Final = 800
_RATIO: Final = 1.2
_INTO_CLIP_S: Final = 0.1  # while late packets of the window before are still waited for
_TOO_LATE_S: Final = 0.9  # beyond the window and the grace of late packets


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One clip as a learner knows it: what is to be read, and how long that takes."""

    name: str
    text: str
    lasts_ms: int


class Words(msgspec.Struct, frozen=True):
    """Say `text` for `lasts_ms`, so many seconds after what it answers."""

    after_s: float
    text: str
    lasts_ms: int


Answers = Callable[[Part], Sequence[Words]]


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What a learner does when a clip begins and when it is over."""

    begins: Answers = lambda _: ()
    over: Answers = lambda _: ()


def _right(part: Part) -> Sequence[Words]:
    return (Words(REACTION_S, part.text, part.lasts_ms),)


def _wrong(part: Part) -> Sequence[Words]:
    return (Words(REACTION_S, wrong_text(part), part.lasts_ms),)


def _corrected(part: Part) -> Sequence[Words]:
    half_ms = part.lasts_ms // 3
    again_s = REACTION_S + (half_ms + 180) / 1000
    return (
        Words(REACTION_S, wrong_text(part), half_ms),
        Words(again_s, part.text, half_ms),
    )


def _late(part: Part) -> Sequence[Words]:
    window_ms = max(_LEAST_WINDOW_MS, _RATIO * part.lasts_ms)
    return (Words(window_ms / 1000 + _TOO_LATE_S, part.text, part.lasts_ms),)


def _over_the_clip(part: Part) -> Sequence[Words]:
    return (Words(_INTO_CLIP_S, part.text, part.lasts_ms // 3),)


def wrong_text(part: Part) -> str:
    """Return what a learner says who gets this part wrong."""
    return f"not {part.text}"


SCRIPTS: Final[Mapping[str, Script]] = {
    "perfect": Script(over=_right),
    "wrong": Script(over=_wrong),
    "corrects": Script(over=_corrected),
    "silent": Script(),
    "late": Script(over=_late),
    "talks_over": Script(begins=_over_the_clip),
}


class ActingLearner:
    """One learner in front of one device."""

    def __init__(
        self, device: FakeDevice, script: Script, parts: Sequence[Part], voices: Voices
    ) -> None:
        """Sit down in front of `device`; `parts` is the lesson, in any order."""
        self._device = device
        self._script = script
        self._parts = {part.name: part for part in parts}
        self._voices = voices
        self._timers: list[asyncio.TimerHandle] = []
        device.watchers.append(self._notice)

    def say(self, text: str, lasts_ms: int) -> None:
        """Say this now."""
        self._device.speak(self._voices.say(text, lasts_ms))

    def stop(self) -> None:
        """Say nothing more."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _notice(self, seen: Seen) -> None:
        part = self._parts.get(seen.detail)
        if seen.what in {"lost", "left", "frozen"}:
            self.stop()
        elif part is not None and seen.what == "clip":
            self._plan(self._script.begins(part))
        elif part is not None and seen.what == "clip_over":
            self._plan(self._script.over(part))

    def _plan(self, words: Sequence[Words]) -> None:
        loop = asyncio.get_running_loop()
        self._timers = [timer for timer in self._timers if timer.when() > loop.time()]
        self._timers += [
            loop.call_later(one.after_s, self.say, one.text, one.lasts_ms) for one in words
        ]
