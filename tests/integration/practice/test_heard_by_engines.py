"""The engines that ship, live: what the voice says is heard from a device's packets."""

import asyncio

import pytest

from etude.practice.apps import shipped_apps
from etude.practice.live_speech import LiveSpeech
from etude.speech.engines import SpeechOptions
from etude.speech.libraries import engines_installed
from etude.speech.pool import SpeechPool


def test_a_phrase_that_the_voice_says_is_heard_as_that_phrase() -> None:
    """Through synthesis, Opus, decoding and recognition: it starts its task."""
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
            assert await speech.say("你好", "zh-CN") is None
            speech.close()

    asyncio.run(play())
