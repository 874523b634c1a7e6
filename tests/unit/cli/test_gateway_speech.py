import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from etude.cli import gateway_speech
from etude.clock import RandomIds
from etude.gateway.model_room import ModelRoom
from etude.llm.chat import Chat, Endpoint
from etude.practice.conversation import Purpose, Said
from etude.practice.live_speech import LiveSpeech
from etude.settings import Settings, load
from etude.testing.fake_llm import FakeModel, Says


def settings_of(tmp_path: Path, **others: Any) -> Settings:
    return load(data=tmp_path, **others)


def opened(settings: Settings) -> LiveSpeech | None:
    async def play() -> LiveSpeech | None:
        async with contextlib.AsyncExitStack() as stack:
            return gateway_speech.opened(settings, stack)

    return asyncio.run(play())


def test_without_processes_or_engines_nothing_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 processes, or neither the extra nor a server: practice as before."""
    assert opened(settings_of(tmp_path, speech_processes=0)) is None
    monkeypatch.setattr(gateway_speech, "engines_installed", lambda: False)
    assert opened(settings_of(tmp_path, speech_processes=1)) is None


def test_a_server_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A speech server makes ears and a voice without the extra; the stack ends the processes."""
    monkeypatch.setattr(gateway_speech, "engines_installed", lambda: False)
    url = "http://127.0.0.1:9/v1"
    assert opened(settings_of(tmp_path, speech_processes=1, speech_voice_url=url)) is not None


def test_a_model_that_cannot_be_used_keeps_nobody_from_practising(tmp_path: Path) -> None:
    """No model: none asked. One without a name: said in the log, and the gateway starts."""

    async def play(settings: Settings) -> Any:
        async with contextlib.AsyncExitStack() as stack:
            return gateway_speech.asked(settings, stack, ModelRoom(RandomIds()))

    assert asyncio.run(play(settings_of(tmp_path))) is None
    with capture_logs() as logs:
        wrong = settings_of(tmp_path, llm_url="http://127.0.0.1:9/v1")
        assert asyncio.run(play(wrong)) is None
    assert [line["action"] for line in logs] == ["chat.unconfigured"]


def test_a_model_gets_what_was_said_and_nothing_else() -> None:
    """Instructions first, then the utterances in their roles; a translation is not made up."""

    async def play(model: FakeModel, url: str) -> None:
        async with Chat(Endpoint(url=url, model="m")) as chat:
            ask = gateway_speech.asking(chat, ModelRoom(RandomIds()))("toy-1")
            said = (Said("learner", "Hi."), Said("toy", "Hello!"), Said("learner", "And now?"))
            assert await ask(Purpose.CHAT, "zh-CN", said) == "Fine."
            assert await ask(Purpose.TRANSLATE, "en", said[:1]) == "Fine."
        first, second = model.asked
        assert [one["role"] for one in first.body["messages"]] == [
            "system",
            "user",
            "assistant",
            "user",
        ]
        assert "simplified Chinese" in first.body["messages"][0]["content"]
        assert first.body["messages"][-1]["content"] == "And now?"
        assert second.body["temperature"] == 0.0

    model = FakeModel(usual=Says("Fine."))
    with model.serve() as url:
        asyncio.run(play(model, url))
