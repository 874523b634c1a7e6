"""The engines that ship, live: what the voice says is heard from a device's packets."""

import asyncio
import math
import random
from array import array
from collections.abc import Iterable, Iterator

import pytest

from etude.practice.apps import shipped_apps
from etude.practice.live_speech import LiveSpeech
from etude.practice.numerals import number_in
from etude.speech.audio import Pcm
from etude.speech.clip_cache import encode_clip
from etude.speech.engines import SpeechOptions
from etude.speech.libraries import engines_installed
from etude.speech.pool import SpeechPool


def noises() -> Iterator[Pcm]:
    """A second and a half of hiss, soft and loud, and of a tone."""
    chance = random.Random(4)
    for level in (100, 1500):
        yield sound(round(chance.gauss(0, level)) for _ in range(36_000))
    yield sound(round(6000 * math.sin(n / 12)) for n in range(36_000))


def sound(samples: Iterable[int]) -> Pcm:
    return Pcm(sample_rate=24_000, samples=array("h", samples).tobytes())


def test_a_phrase_that_the_voice_says_is_heard_as_that_phrase() -> None:
    """It starts its task; a short answer is heard, too; noise is nothing."""
    if not engines_installed():
        pytest.skip("SPEECH ENGINES NOT TESTED: install etude[speech]")
    apps = shipped_apps()

    async def play() -> None:
        with SpeechPool(SpeechOptions(), warm=("recognise", "synthesise")) as pool:
            # The first request waits for the models; whoever practises would have been given up.
            await asyncio.wrap_future(pool.synthesise("Hello.", language="en"))
            speech = LiveSpeech(pool)
            clip = await speech.say("Start reading.", "en")
            assert clip is not None
            heard = await speech.hear(clip.packets, "en")
            assert heard is not None
            started = apps.entered(heard)
            assert started is not None, heard
            assert started.task_id == "shadowing"
            short = await speech.say("Forty two.", "en")
            assert short is not None
            assert number_in(await speech.hear(short.packets, "en") or "") == 42
            for noise in noises():
                assert await speech.hear(encode_clip(noise).packets, "en") == ""
            assert await speech.say("你好", "zh-CN") is None
            speech.close()

    asyncio.run(play())
