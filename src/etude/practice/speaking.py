"""What the toy says by itself: short prompts, spoken if there is a clip, else shown."""

import asyncio
from collections.abc import Callable

import structlog

from etude.gateway.ports import Device, PlaybackEnd
from etude.i18n import text
from etude.practice.records import EncodedPrompt, Prompt

_log = structlog.get_logger(__name__)

Prompts = Callable[[Prompt, str], EncodedPrompt | None]
"""Finds a prompt in a locale, in memory; None = there is no such clip."""


class Speaker:
    """The toy's own voice on one device.

    Attributes:
        speaking: whether a prompt is being said.
    """

    def __init__(self, device: Device, prompts: Prompts) -> None:
        """Speak on `device`."""
        self._device = device
        self._prompts = prompts
        self.speaking = False

    def say(
        self, prompt: Prompt, locale: str, then: Callable[[PlaybackEnd], None] | None = None
    ) -> None:
        """Say a prompt; `then` is called once it is over, never from within this call."""
        encoded = self._find(prompt, locale)
        if encoded is None:
            self._device.show(text(f"prompt.{prompt.value}", locale))
            if then:
                asyncio.get_running_loop().call_soon(then, PlaybackEnd.COMPLETED)
            return

        def over(end: PlaybackEnd) -> None:
            self.speaking = False
            if then:
                then(end)

        self._device.play(encoded.clip, over, text=encoded.text)
        self.speaking = True

    def _find(self, prompt: Prompt, locale: str) -> EncodedPrompt | None:
        try:
            return self._prompts(prompt, locale)
        except Exception:  # noqa: BLE001 - without a voice the toy still has a display
            _log.exception("a prompt is not there", action="prompt.failed", prompt=prompt.value)
            return None
