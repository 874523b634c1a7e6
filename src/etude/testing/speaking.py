"""Toys that are really spoken to: a lesson and learners in the voice of `etude[speech]`.

Nobody's recordings are needed. Each toy's learner reads a little faster or slower and louder or
softer than the next, so no two recordings are the same.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx2

from etude.net import tls_context
from etude.practice.lesson_build import check_lesson
from etude.practice.lesson_install import install_lesson
from etude.settings import Settings
from etude.speech.audio import Pcm, duration_ms, floats, from_floats, resampled
from etude.speech.clip_cache import ClipCache, encode_clip
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.mp3 import encode_mp3
from etude.testing import device_ota
from etude.testing.device_ota import NotProvisionedError
from etude.testing.device_socket import DeviceRefusedError
from etude.testing.device_sound import ClipBook
from etude.testing.fake_device import FakeDevice, Manners, NoHelloError, Seen
from etude.testing.learner_voice import FRAME_MS, SAMPLE_RATE, Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part

SENTENCES: Final = (
    "The cat sat on the warm stone wall.",
    "She sells sea shells by the sea shore.",
    "We walked along the river until the sun went down.",
    "Good morning, may I have a glass of water?",
    "My little brother likes to play with his red ball.",
    "There are seven days in a week.",
    "The train to the city leaves at half past nine.",
    "Please open the window, it is very hot today.",
)
APP_ID: Final = "english_learning"
TASK_ID: Final = "shadowing"
LESSON_ID: Final = "spoken"
ENTRY: Final = "[voice_entry]start reading"
PATIENCE_S: Final = 200.0
_CLIP_HZ: Final = 24_000
_CLIP_RATE: Final = 0.85
_RATES: Final = (0.95, 1.05, 1.2)
_SOFTEST: Final = 0.5
_AGAIN_S: Final = 0.5
_LOOK_S: Final = 0.05
_AFTER_LAST: Final = 1.5  # lengths of the last clip: its window
_SETTLED_S: Final = 2.0


class SpokenLesson:
    """A lesson on the disk, and what its learners say.

    Attributes:
        parts: the clips.
        clips: their packets by name, as a device is sent them.
    """

    def __init__(self, folder: Path, *, steps: int) -> None:
        """Speak `steps` clips into `folder / LESSON_ID`."""
        self.folder = folder / LESSON_ID
        self.folder.mkdir(parents=True)
        voice = Engines(SpeechOptions()).synthesiser()
        self._said: dict[str, tuple[Pcm, ...]] = {}
        for number in range(steps):
            text = SENTENCES[number % len(SENTENCES)]
            file = self.folder / f"{number + 1:02}.mp3"
            slow = voice.synthesise(text, language="en", rate=_CLIP_RATE).sound
            file.write_bytes(encode_mp3(resampled(slow, _CLIP_HZ), "simulated"))
            file.with_suffix(".txt").write_text(text + "\n", "utf-8")
            if text not in self._said:
                self._said[text] = tuple(
                    resampled(voice.synthesise(text, language="en", rate=rate).sound, SAMPLE_RATE)
                    for rate in _RATES
                )
        self.parts = tuple(self._parts())
        cache = ClipCache(None)
        self.clips: Mapping[str, tuple[bytes, ...]] = {
            part.name: cache.encode(self.folder / part.name).packets for part in self.parts
        }

    def install(self, settings: Settings) -> None:
        """Put it where the gateway finds it."""
        install_lesson(check_lesson(self.folder), settings.lessons, APP_ID, TASK_ID)

    def voice(self, number: int) -> "SpokenVoices":
        """Return how the learner of this number speaks."""
        gain = 1 - _SOFTEST * (number % 64) / 64
        return SpokenVoices(
            {
                text: from_floats(gain * floats(sounds[number % len(_RATES)]), SAMPLE_RATE)
                for text, sounds in self._said.items()
            }
        )

    def _parts(self) -> Iterator[Part]:
        for file in sorted(self.folder.glob("*.mp3")):
            text = file.with_suffix(".txt").read_text("utf-8").strip()
            yield Part(name=file.name, text=text, lasts_ms=duration_ms(file))


class SpokenVoices(Voices):
    """What one learner says, as packets of real speech."""

    def __init__(self, said: Mapping[str, Pcm]) -> None:
        """Know these texts; others are hummed."""
        super().__init__()
        self._spoken = {text: encode_clip(sound, FRAME_MS).packets for text, sound in said.items()}

    def say(self, text: str, lasts_ms: int) -> tuple[bytes, ...]:
        """Return the packets of a text; it takes as long as it takes."""
        return self._spoken.get(text) or super().say(text, lasts_ms)


class SpeakingToy(FakeDevice):
    """A stock device and the learner in front of it."""

    def __init__(self, number: int, lesson: SpokenLesson) -> None:
        """Switch it on."""
        super().__init__(
            device_id(number),
            manners=Manners(protocol=1 + number % 3),
            book=ClipBook(lesson.clips),
        )
        self._last = lesson.parts[-1]
        self._names = {part.name for part in lesson.parts}
        self._learner = ActingLearner(self, SCRIPTS["perfect"], lesson.parts, lesson.voice(number))
        self._over = asyncio.Event()
        self.heard: list[str] = []
        """The clips that were over, in order."""
        self.losses = 0
        self._gone = False
        self.watchers.append(self._notice)

    async def come(self, client: httpx2.AsyncClient, ota_url: str) -> None:
        """Ask for a token and connect; again and again, as firmware does."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.connected:
                with contextlib.suppress(
                    NotProvisionedError, DeviceRefusedError, NoHelloError, OSError
                ):
                    told = await device_ota.ask(client, ota_url, self)
                    self.token = told.token
                    if not told.code:
                        await self.connect(told.host, told.port, told.path)
                        return
                await asyncio.sleep(_AGAIN_S)

    async def read(self) -> None:
        """Do the lesson once, to the end of its last window.

        Raises:
            TimeoutError: it does not end.
        """
        self._over.clear()
        async with asyncio.timeout(PATIENCE_S + 10 * self._last.lasts_ms / 1000):
            self.wake(ENTRY)
            await self._over.wait()
        await asyncio.sleep(_AFTER_LAST * self._last.lasts_ms / 1000 + _SETTLED_S)

    def go(self) -> None:
        """Leave for good."""
        self._gone = True
        self.leave()

    def _notice(self, seen: Seen) -> None:
        if seen.what == "clip_over" and seen.detail in self._names:
            self.heard.append(seen.detail)
            if seen.detail == self._last.name:
                self._over.set()
        elif seen.what in {"lost", "closed"} and not self._gone:
            self.losses += 1


def device_id(number: int) -> str:
    """Return the address of a toy."""
    return f"02:00:00:01:{number >> 8:02x}:{number & 255:02x}"


async def practise(
    toys: Sequence[SpeakingToy], ota_url: str, *, rounds: int = 1, ramp_s: float = 0.0
) -> None:
    """Let every toy come within `ramp_s`, and read its lesson so often."""

    async def one(number: int, toy: SpeakingToy) -> None:
        await asyncio.sleep(ramp_s * number / max(1, len(toys)))
        await toy.come(client, ota_url)
        await asyncio.sleep(_SETTLED_S)
        for _ in range(rounds):
            await toy.read()
        toy.go()

    async with (
        httpx2.AsyncClient(trust_env=False, verify=tls_context()) as client,
        asyncio.TaskGroup() as group,
    ):
        for number, toy in enumerate(toys):
            group.create_task(one(number, toy))
