"""Hearing through the speech pool, where an engine that hangs or crashes hurts nobody."""

import asyncio
from concurrent.futures import Future
from typing import Final, TypeVar

from etude.assess.high_voices import alignment_in_time, played, recognised_in_time
from etude.assess.listening import ENGLISH, NO_ENGINE, SAMPLE_RATE, Heard, fits, hearing_pace
from etude.assess.words import is_chinese
from etude.speech.audio import Pcm, floats, resampled
from etude.speech.pool import Lane, SpeechPool

CHINESE: Final = "zh"
Answer = TypeVar("Answer")


class PooledEngines:
    """Asks a pool; safe to use from one event loop."""

    def __init__(self, pool: SpeechPool, lane: Lane = Lane.SWEEP) -> None:
        """Ask `pool` in `lane`; its maker closes it."""
        self._pool = pool
        self._lane = lane

    async def hear(self, expected_text: str | None, sound: Pcm) -> Heard:
        """Return what the engines make of a sound.

        Raises:
            SpeechBusyError, SpeechWorkerError, SpeechEngineError, SpeechServerError,
            SpeechClosedError: not now; try again later.
        """
        sound = await asyncio.to_thread(resampled, sound, SAMPLE_RATE)
        samples = floats(sound)
        pace = await asyncio.to_thread(hearing_pace, expected_text, samples)
        aligned = bool(expected_text) and fits(sound)
        spoken = await _unless_missing(self._pool.detect(sound, lane=self._lane))
        sound = await asyncio.to_thread(played, sound, pace)
        language = CHINESE if expected_text and is_chinese(expected_text) else ENGLISH
        recognised = await _unless_missing(
            self._pool.recognise(
                sound, language=language, expected_text=expected_text, lane=self._lane
            )
        )
        alignment = None
        aligned = aligned and language == ENGLISH
        if aligned and expected_text and recognised is not None:
            alignment = await _unless_missing(
                self._pool.align(sound, expected_text, language=language, lane=self._lane)
            )
        return Heard(
            samples=samples,
            recognised=None if recognised is None else recognised_in_time(recognised, pace),
            alignment=alignment_in_time(alignment, pace),
            aligned=aligned,
            pace=pace,
            spoken=spoken,
        )


async def _unless_missing(asked: "Future[Answer]") -> Answer | None:
    """Wait for an answer; None where there is no engine and will be none by waiting."""
    try:
        return await asyncio.wrap_future(asked)
    except NO_ENGINE:
        return None
