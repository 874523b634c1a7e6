"""Hears and speaks while somebody practises: the engines' pool, beside every clock and bounded.

Whatever is wrong with an engine ends here: who asks gets None, and what nobody heard now is left to
the assessment after the session. No text that was said or is to be said is logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import structlog

from etude.errors import EtudeError
from etude.practice.phrases import plain
from etude.speech.audio import Pcm, resampled
from etude.speech.clip_cache import encode_clip
from etude.speech.clips import EncodedClip
from etude.speech.errors import (
    ModelChangedError,
    ModelMissingError,
    OpusPacketError,
    SpeechExtraMissingError,
    SpeechLanguageError,
)
from etude.speech.opus import OpusDecoder
from etude.speech.pool import Lane, SpeechPool
from etude.speech.recognise import Recognised, base_language, is_invented
from etude.speech.synthesise import Speech

ANSWER_S: Final = 8.0
"""How long an engine may take. What comes later is no answer to somebody who stands there."""
AT_ONCE: Final = 16
"""Requests on their way, hearing and speaking together; what is more is dropped."""
_HEARING_HZ: Final = 16_000
_SPEAKING_HZ: Final = 24_000
_NEVER: Final = (
    SpeechLanguageError,
    SpeechExtraMissingError,
    ModelMissingError,
    ModelChangedError,
)

_log = structlog.get_logger(__name__)
_Result = TypeVar("_Result")


class LiveSpeech:
    """The ears and the voice of a gateway. One event loop; close it before the pool."""

    def __init__(self, pool: SpeechPool, *, at_once: int = AT_ONCE) -> None:
        """Use a pool, which somebody else starts and closes."""
        self._pool = pool
        self._at_once = at_once
        self._asked = 0
        self._impossible: set[tuple[str, str]] = set()
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="live-speech")

    def close(self) -> None:
        """Take no more work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def knows(self, language: str) -> bool:
        """Say whether what is said in a language may be recognised; found out by trying once."""
        return ("recognise", base_language(language)) not in self._impossible

    async def hear(self, packets: Sequence[bytes], language: str) -> str | None:
        """Return what was said in Opus packets: empty = nothing; None = nobody could tell."""

        async def ask() -> str:
            sound = await self._aside(lambda: decoded(packets))
            if not sound.count:
                return ""
            future = self._pool.recognise(sound, language=language, lane=Lane.LIVE)
            heard: Recognised = await _settled(future)
            return "" if is_invented(heard) else plain(heard.text)

        return await self._bounded("recognise", language, ask)

    async def say(self, words: str, language: str) -> EncodedClip | None:
        """Return a text spoken, ready to be played; None = nobody could speak it."""

        async def ask() -> EncodedClip:
            future = self._pool.synthesise(words, language=language, lane=Lane.LIVE)
            spoken: Speech = await _settled(future)
            return await self._aside(lambda: encode_clip(resampled(spoken.sound, _SPEAKING_HZ)))

        return await self._bounded("synthesise", language, ask)

    async def _bounded(
        self, kind: str, language: str, ask: Callable[[], Awaitable[_Result]]
    ) -> _Result | None:
        key = (kind, base_language(language))
        if key in self._impossible:
            return None
        if self._asked >= self._at_once:
            _log.warning("too much is said at once", action="speech.live.dropped", kind=kind)
            return None
        self._asked += 1
        try:
            async with asyncio.timeout(ANSWER_S):
                return await ask()
        except _NEVER as error:
            self._impossible.add(key)
            _explain(kind, language, error.code)
        except TimeoutError:
            _explain(kind, language, "timeout")
        except EtudeError as error:
            _explain(kind, language, error.code)
        except Exception:  # noqa: BLE001 - whatever is wrong with an engine, practice goes on
            _log.exception("an engine failed", action="speech.live.failed", kind=kind)
        finally:
            self._asked -= 1
        return None

    async def _aside(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def _settled(future: "Future[_Result]") -> _Result:
    """Wait for the pool. Who stops waiting takes the request back, if it has not begun."""
    return await asyncio.wrap_future(future)


def _explain(kind: str, language: str, code: str) -> None:
    _log.warning(
        "not heard or not spoken",
        action="speech.live.failed",
        kind=kind,
        language=language,
        code=code,
    )


def decoded(packets: Sequence[bytes]) -> Pcm:
    """Return the sound of packets at the rate of recognisers; what is no Opus is left out.

    Raises:
        SoundLibraryMissingError: libopus is not there.
    """
    decoder = OpusDecoder(_HEARING_HZ)
    samples = bytearray()
    for packet in packets:
        try:
            samples += decoder.decode(packet)
        except OpusPacketError:
            continue
    return Pcm(sample_rate=_HEARING_HZ, samples=bytes(samples))
