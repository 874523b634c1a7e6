"""What the toy says by itself: prompts from clips, and texts spoken by a voice, else shown."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from etude.gateway.ports import Device, PlaybackEnd
from etude.i18n import text
from etude.practice.conversation import spoken_language
from etude.practice.records import EncodedPrompt, Prompt
from etude.speech.clips import EncodedClip

_log = structlog.get_logger(__name__)

Prompts = Callable[[Prompt, str], EncodedPrompt | None]
"""Finds a prompt in a locale, in memory; None = there is no such clip."""

Voice = Callable[[str, str], Awaitable[EncodedClip | None]]
"""Speaks a text in a language; None = it cannot."""

Then = Callable[[PlaybackEnd], None]


class Speaker:
    """The toy's own voice on one device.

    Attributes:
        speaking: whether something is being said, or made in order to be said.
        said: what was said last.
        quiet_s: since when it has been quiet, on the loop's clock.
    """

    def __init__(self, device: Device, prompts: Prompts, voice: Voice | None = None) -> None:
        """Speak on `device`; without a voice, texts are shown."""
        self._device = device
        self._prompts = prompts
        self._voice = voice
        self._telling: asyncio.Task[None] | None = None
        self._playing = False
        self.speaking = False
        self.said = ""
        self.quiet_s = float("-inf")

    def say(self, prompt: Prompt, locale: str, then: Then | None = None) -> None:
        """Say a prompt; `then` is called once it is over, never from within this call."""
        self.hush()
        encoded = self._find(prompt, locale)
        if encoded is None:
            self._device.show(text(f"prompt.{prompt.value}", locale))
            if then:
                asyncio.get_running_loop().call_soon(then, PlaybackEnd.COMPLETED)
            return

        def over(end: PlaybackEnd) -> None:
            self._quiet()
            if then:
                then(end)

        self._device.play(encoded.clip, over, text=encoded.text)
        self.speaking, self.said = True, encoded.text

    def show(self, words: str) -> None:
        """Show what was understood."""
        self._device.show(words)

    @property
    def has_voice(self) -> bool:
        """Whether texts are spoken."""
        return self._voice is not None

    def tell(
        self, sentences: Iterable[str], language: str, then: Then, *, show: bool = True
    ) -> None:
        """Say sentences one after the other; the next is made while one is being said.

        What cannot be spoken is shown, unless `show` is off: it is on the display already. `then`
        is called once, when all were said or one was stopped; not at all after `hush`. Without a
        voice it is called from within this call.
        """
        self.hush()
        if self._voice is None:
            for sentence in sentences if show else ():
                self._device.show(sentence)
            then(PlaybackEnd.COMPLETED)
            return
        self.speaking = True
        telling = self._tell(self._voice, tuple(sentences), language, then, show=show)
        self._telling = asyncio.get_running_loop().create_task(telling)

    def hush(self) -> None:
        """Say nothing more of what is being told; what was on its way is dropped."""
        telling, self._telling = self._telling, None
        if telling is None:
            return
        telling.cancel()
        if self._playing:
            self._playing = False
            self._device.stop_playing()
        self._quiet()

    async def _tell(
        self,
        voice: Voice,
        sentences: tuple[str, ...],
        language: str,
        then: Then,
        *,
        show: bool,
    ) -> None:
        end = PlaybackEnd.COMPLETED
        loop = asyncio.get_running_loop()
        making: list[asyncio.Task[EncodedClip | None]] = []
        try:
            for number, sentence in enumerate(sentences):
                while len(making) < min(number + 2, len(sentences)):
                    words = sentences[len(making)]
                    making.append(loop.create_task(self._made(voice, words, language)))
                clip = await making[number]
                if clip is not None:
                    more = number + 1 < len(sentences)
                    end = await self._told(clip, sentence, more=more)
                elif show:
                    self._device.show(sentence)
                if end is not PlaybackEnd.COMPLETED:
                    break
        finally:
            for made in making:
                made.cancel()
        self._telling, self._playing = None, False
        self._quiet()
        try:
            then(end)
        except Exception:  # noqa: BLE001 - there is nobody above a task to tell
            _log.exception("what was to follow failed", action="speech.live.failed")

    async def _made(self, voice: Voice, words: str, language: str) -> EncodedClip | None:
        try:
            return await voice(words, spoken_language(words, language))
        except Exception:  # noqa: BLE001 - without a voice the toy still has a display
            _log.exception("a sentence is not spoken", action="speech.live.failed")
            return None

    async def _told(self, clip: EncodedClip, sentence: str, *, more: bool) -> PlaybackEnd:
        over: asyncio.Future[PlaybackEnd] = asyncio.get_running_loop().create_future()

        def ended(end: PlaybackEnd) -> None:
            if not over.done():
                over.set_result(end)

        self._device.play(clip, ended, text=sentence, more=more)
        self._playing, self.said = True, sentence
        return await over

    def _quiet(self) -> None:
        self.speaking = False
        self.quiet_s = asyncio.get_running_loop().time()

    def _find(self, prompt: Prompt, locale: str) -> EncodedPrompt | None:
        try:
            return self._prompts(prompt, locale)
        except Exception:  # noqa: BLE001 - without a voice the toy still has a display
            _log.exception("a prompt is not there", action="prompt.failed", prompt=prompt.value)
            return None
