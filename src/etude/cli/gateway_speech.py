"""What the gateway hears, answers and says with, if it is installed and configured."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import structlog

from etude.cli.model import chat_of
from etude.cli.speech_options import speech_options
from etude.cli.stopping import aside
from etude.errors import EtudeError
from etude.gateway.model_room import ModelRoom
from etude.llm.chat import Chat, Message, Request
from etude.llm.errors import LlmError
from etude.people.spending.link_records import Stage
from etude.people.spending.used import most_tokens, used_by, used_in_vain
from etude.practice.conversation import Ask, AskFor, Purpose, Said, instructions
from etude.practice.live_speech import LiveSpeech
from etude.settings import Settings
from etude.speech.libraries import engines_installed
from etude.speech.pool import PoolLimits, SpeechPool

LIMITS: Final = PoolLimits(waiting=16, request_s=10.0, request_s_per_s=2.0)
"""Shorter than the worker's: who stands before the toy has no use for a late answer."""
MOST_PROCESSES: Final = 2
"""Of the gateway; the others are the worker's, which measures every turn."""

_ANSWER_TOKENS: Final = 400
_STAGES: Final[Mapping[Purpose, Stage]] = {Purpose.CHAT: "chat", Purpose.TRANSLATE: "translate"}
_TEMPERATURES: Final = {Purpose.CHAT: 0.7, Purpose.TRANSLATE: 0.0}

_log = structlog.get_logger("etude.gateway")


def opened(settings: Settings, stack: contextlib.AsyncExitStack) -> LiveSpeech | None:
    """Start the ears and the voice; None where there are none. The stack ends them."""
    servers = settings.speech_recogniser_url or settings.speech_voice_url
    if not settings.speech_processes or not (servers or engines_installed()):
        return None
    pool = SpeechPool(
        speech_options(settings),
        processes=min(settings.speech_processes, MOST_PROCESSES),
        warm=("recognise", "synthesise"),
        limits=LIMITS,
    )
    speech = LiveSpeech(pool)
    pool.start()

    async def close() -> None:
        speech.close()
        await aside(pool.close)

    stack.push_async_callback(close)
    return speech


def asked(settings: Settings, stack: contextlib.AsyncExitStack, room: ModelRoom) -> AskFor | None:
    """Return what asks the configured model, as far as `room` lets toys.

    None = there is none that can be used: practice goes on.
    """
    try:
        chat = chat_of(settings)
    except EtudeError as error:
        _log.warning("no model answers", action="chat.unconfigured", code=error.code)
        return None
    if chat is None:
        return None
    stack.push_async_callback(chat.close)
    return asking(chat, room)


def asking(chat: Chat, room: ModelRoom) -> AskFor:
    """Return what asks `chat`. Sent are instructions and what was said, no name and no id."""
    return lambda device_id: _asking(chat, room, device_id)


def _asking(chat: Chat, room: ModelRoom, device_id: str) -> Ask:
    async def ask(purpose: Purpose, language: str, said: Sequence[Said]) -> str:
        spoken = (Message("user" if one.by == "learner" else "assistant", one.text) for one in said)
        request = Request(
            messages=(Message("system", instructions(purpose, language)), *spoken),
            max_tokens=_ANSWER_TOKENS,
            temperature=_TEMPERATURES[purpose],
        )
        model, most = chat.endpoint.model, most_tokens(request)
        await room.take(device_id, model, most)
        used, estimated, code = most, True, "CANCELLED"  # the model may have worked all the same
        try:
            answer = await chat.ask(request)
            (used, estimated), code = used_by(answer, most), ""
        except LlmError as error:
            used, code = used_in_vain(most, error), error.code
            estimated = used.all > 0
            raise
        finally:
            room.used(
                device_id,
                _STAGES[purpose],
                model,
                most,
                used,
                estimated=estimated,
                error_code=code or None,
            )
        return answer.text

    return ask
