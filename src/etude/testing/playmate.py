"""A toy that nobody can take for another one: its own lesson, its own voice, all it was sent kept.

It asks for its token, follows its lesson, connects again when the connection is lost, as firmware
and its owner do; `strangers` are the sounds that it was sent and that are not its own.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import httpx2
import msgspec

from etude.testing import device_ota
from etude.testing.device_frames import unpack
from etude.testing.device_ota import NotProvisionedError
from etude.testing.device_socket import DeviceRefusedError
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Manners, NoHelloError
from etude.testing.learner_voice import COMFORT, DTX, Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part

PATIENCE_S: Final = 200.0
"""Only a failing test waits as long."""
SETTLED_S: Final = 0.5
_AGAIN_S: Final = 0.2
_SILENCE: Final = frozenset({DTX, COMFORT})


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """What is a toy's own.

    Attributes:
        device_id: its address.
        app_id, task_id: what it practises.
        entry: the phrase that starts it.
        parts: its lesson.
        clips: the lesson as it is streamed, and the toys' own sentences.
        folder: where the lesson is on a card.
    """

    device_id: str
    app_id: str
    task_id: str
    entry: str
    parts: tuple[Part, ...]
    clips: Mapping[str, tuple[bytes, ...]]
    folder: str


class Playmate(FakeDevice):
    """One toy and its learner. See the module."""

    def __init__(self, own: Own, voices: Voices, *, has_card: bool, protocol: int = 1) -> None:
        """Switch it on."""
        files = {f"{own.folder}/{part.name}": part.lasts_ms for part in own.parts}
        super().__init__(
            own.device_id,
            manners=Manners(protocol=protocol),
            card=FakeCard(files) if has_card else None,
            book=ClipBook(own.clips),
        )
        self.own = own
        self._step_of = {
            packet: number
            for number, part in enumerate(own.parts)
            for packet in voices.say(part.text, part.lasts_ms)
        }
        self.learner = ActingLearner(self, SCRIPTS["perfect"], own.parts, voices)
        self.texts: list[str] = []
        self.sounds: set[bytes] = set()
        self.answers: list[str] = []
        """Why it could not connect, each time."""

    def text_came(self, text: str) -> None:
        """Keep it."""
        self.texts.append(text)
        super().text_came(text)

    def binary_came(self, data: bytes) -> None:
        """Keep the packet, heard or not."""
        packet = unpack(self.manners.protocol, data)
        if packet is not None:
            self.sounds.add(packet)
        super().binary_came(data)

    @property
    def strangers(self) -> AbstractSet[bytes]:
        """The packets that it was sent and that belong to nothing it plays."""
        return self.sounds.difference(*self.own.clips.values())

    @property
    def clips_begun(self) -> Sequence[str]:
        """The lesson's clips that began, in order."""
        names = {part.name for part in self.own.parts}
        return [one.detail for one in self.timeline if one.what == "clip" and one.detail in names]

    def steps_in(self, packets: Sequence[bytes]) -> AbstractSet[int]:
        """Return in which steps this toy's learner says any of these; -1 = it never does."""
        return {self._step_of.get(packet, -1) for packet in packets if packet not in _SILENCE}

    async def come(self, client: httpx2.AsyncClient, ota_url: str) -> None:
        """Ask for a token and connect; again and again, as firmware does.

        Raises:
            TimeoutError: not within `PATIENCE_S`; the text is why not, the last few times.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not self.connected:
                    await self._come(client, ota_url)
        except TimeoutError as error:
            message = f"{self.device_id} could not connect: {self.answers[-3:]}"
            raise TimeoutError(message) from error

    async def _come(self, client: httpx2.AsyncClient, ota_url: str) -> None:
        try:
            told = await device_ota.ask(client, ota_url, self)
            self.token = told.token
            await self.connect(told.host, told.port, told.path)
        except (NotProvisionedError, DeviceRefusedError, NoHelloError, OSError) as error:
            self.answers.append(str(error) or type(error).__name__)
            await asyncio.sleep(_AGAIN_S)

    async def stay(self, client: httpx2.AsyncClient, ota_url: str) -> None:
        """Start the lesson, and come back whenever the connection is lost, until cancelled.

        Whoever is not resumed says the phrase again: the lesson had not begun.
        """
        await self.come(client, ota_url)
        await asyncio.sleep(SETTLED_S)
        self.wake(self.own.entry)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(8.0):
                    while self.connected:  # noqa: ASYNC110 - a device has no event for it
                        await asyncio.sleep(_AGAIN_S)
            if self.connected:
                if not self.clips_begun:
                    self.wake(self.own.entry)
                continue
            await self.come(client, ota_url)
