import asyncio
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from etude.practice.live_speech import ANSWER_S, AT_ONCE, LiveSpeech, decoded
from etude.speech.audio import Pcm
from etude.speech.clip_cache import encode_clip
from etude.speech.errors import SpeechBusyError, SpeechLanguageError, SpeechWorkerError
from etude.speech.pool import Lane
from etude.speech.recognise import Recognised, TokenScore, is_invented
from etude.speech.synthesise import Speech
from etude.testing.virtual_time import run

TONE = encode_clip(Pcm(sample_rate=24_000, samples=b"\0\x10" * 24_000)).packets


class Pool:
    """A pool that answers what it is told to, after a while of the loop's time."""

    def __init__(self, answer: Any, *, takes_s: float = 0.2) -> None:
        self.answer, self.takes_s = answer, takes_s
        self.asked: list[dict[str, Any]] = []

    def recognise(self, sound: Pcm, **how: Any) -> "Future[Any]":
        return self._later({"sound": sound} | how)

    def synthesise(self, text: str, **how: Any) -> "Future[Any]":
        return self._later({"text": text} | how)

    def _later(self, asked: dict[str, Any]) -> "Future[Any]":
        self.asked.append(asked)
        if isinstance(self.answer, SpeechBusyError):
            raise self.answer
        future: Future[Any] = Future()
        settle = future.set_exception if isinstance(self.answer, Exception) else future.set_result

        def answer() -> None:
            if future.set_running_or_notify_cancel():
                settle(self.answer)

        if self.takes_s < 100:
            asyncio.get_running_loop().call_later(self.takes_s, answer)
        return future


def heard(text: str, no_speech: float | None = 0.1) -> Recognised:
    return Recognised(
        text=text, language="en", engine="e", model="m", no_speech_probability=no_speech
    )


@pytest.mark.parametrize(
    ("no_speech", "probabilities", "invented"),
    [
        (0.82, (0.8, 0.65), False),  # "42"
        (0.95, (0.2, 0.05), True),  # noise
        (0.1, (0.1, 0.1), False),
        (0.9, (), True),
        (None, (), False),  # a server does not say
    ],
)
def test_words_for_noise_are_told_from_short_ones(
    no_speech: float | None, probabilities: tuple[float, ...], *, invented: bool
) -> None:
    """Only a recogniser that hears silence and is unsure of its words has made them up."""
    tokens = tuple(TokenScore(" x", one) for one in probabilities)
    found = msgspec.structs.replace(heard("x", no_speech), tokens=tokens)
    assert is_invented(found) is invented


def live(pool: Pool) -> LiveSpeech:
    made: Any = LiveSpeech
    speech: LiveSpeech = made(pool)
    return speech


def test_packets_are_decoded_and_heard_in_the_live_lane() -> None:
    """At 16 kHz, before everything that is swept; wrappings of recognisers are taken off."""

    async def play() -> None:
        pool = Pool(heard("<|en|> Start reading."))
        assert await live(pool).hear(TONE, "en") == "Start reading."
        (asked,) = pool.asked
        assert (asked["language"], asked["lane"]) == ("en", Lane.LIVE)
        assert asked["sound"].sample_rate == 16_000
        assert asked["sound"].duration_ms == pytest.approx(1000, abs=130)

    run(play)


def test_silence_is_nothing() -> None:
    """What a recogniser invents for silence is no text; no packet at all asks nobody."""

    async def play() -> None:
        pool = Pool(heard("Thank you.", 0.9))
        assert await live(pool).hear(TONE, "en") == ""
        assert await live(pool).hear([b"", b"\xff" * 30], "en") == ""
        assert len(pool.asked) == 1

    run(play)


@pytest.mark.parametrize(
    "wrong",
    [
        SpeechWorkerError(reason="crashed"),
        SpeechBusyError(waiting=1, retry_after_s=5),
        RuntimeError("?"),
    ],
)
def test_whatever_is_wrong_is_none_and_logged_without_words(wrong: Exception) -> None:
    """Crash, full lane, defect: nothing is raised, and no text is in the log."""

    async def play() -> None:
        with capture_logs() as logs:
            speech = live(Pool(wrong))
            assert await speech.hear(TONE, "en") is None
            assert await speech.say("a secret", "en") is None
            assert len(speech._pool.asked) == 2  # type: ignore[attr-defined] # the next one is tried
        assert {line["action"] for line in logs} == {"speech.live.failed"}
        assert "secret" not in str(logs)

    run(play)


def test_a_hung_engine_is_given_up() -> None:
    """After the bound, in the loop's time; the request is taken back."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        assert await live(Pool(heard("late"), takes_s=1000)).hear(TONE, "en") is None
        assert loop.time() - began_s == pytest.approx(ANSWER_S, abs=0.1)

    run(play)


def test_more_than_is_heard_at_once_is_dropped() -> None:
    """The seventeenth is dropped at once; when the others are done, there is room again."""

    async def play() -> None:
        speech = live(Pool(heard("hi"), takes_s=3))
        asked = [asyncio.create_task(speech.hear(TONE, "en")) for _ in range(AT_ONCE)]
        await asyncio.sleep(1)
        assert await speech.hear(TONE, "en") is None
        assert await asyncio.gather(*asked) == ["hi"] * AT_ONCE
        assert await speech.hear(TONE, "en") == "hi"

    run(play)


def test_a_language_that_nobody_knows_is_asked_for_once() -> None:
    """Of each kind; other languages are still asked for."""

    async def play() -> None:
        pool = Pool(SpeechLanguageError(engine="e", language="zh", known="en"))
        speech = live(pool)
        assert speech.knows("zh-CN")
        for _ in range(3):
            assert await speech.hear(TONE, "zh-CN") is None
        assert not speech.knows("zh-CN")
        assert speech.knows("en")
        assert await speech.hear(TONE, "en") is None
        assert await speech.say("你好", "zh") is None
        assert len(pool.asked) == 3

    run(play)


def test_what_is_spoken_can_be_played_by_a_device() -> None:
    """24 kHz in frames of 60 ms, whatever the voice's rate."""

    async def play() -> None:
        sound = Pcm(sample_rate=16_000, samples=b"\0\x10" * 16_000)
        spoken = Speech(sound=sound, language="en", engine="e", model="m", licence="l")
        clip = await live(Pool(spoken)).say("hello", "en")
        assert clip is not None
        assert (clip.sample_rate, clip.frame_ms) == (24_000, 60)
        assert clip.duration_ms == pytest.approx(1000, abs=20)

    run(play)


def test_packets_that_are_no_opus_are_left_out() -> None:
    """Garbage among good packets costs itself only."""
    assert decoded([TONE[0], b"\xff" * 9, TONE[1]]).duration_ms == 120
