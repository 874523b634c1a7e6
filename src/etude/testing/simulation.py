"""Runs a scenario: the real gateway and a simulated device in one loop whose time jumps.

    problems = run_scenario(load_scenario("stock_perfect"), tmp_path).problems

Everything is real but the clock: sockets, frames, pacing, journal, files.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.clock import SystemClock
from etude.edge.reader import JournalFolder
from etude.files import Files
from etude.gateway.ports import PracticeFactory
from etude.practice.records import Mode
from etude.practice.uploads import Uploads
from etude.testing.bad_disks import FullFiles, SlowFiles
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Manners, Seen
from etude.testing.hearing import with_ears
from etude.testing.learner_voice import Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner
from etude.testing.practice_gateway import PracticeGateway
from etude.testing.scenario_checks import find_problems
from etude.testing.scenarios import APP_ID, LESSON_ID, TASK_ID, Deed, Happening, Kind, Scenario
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop

DEVICE_ID: Final = "02:00:00:00:00:01"
_SETTLED_S: Final = 0.5  # after the hello: the tools have been listed
_LONGEST_S: Final = 900.0  # of virtual time, for everything that is expected
_LOOK_S: Final = 0.1
_DISKS: Final[Mapping[str, type[Files]]] = {"good": Files, "slow": SlowFiles, "full": FullFiles}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a scenario.

    Attributes:
        problems: what was missing, too early, too late or must not have been; empty = it holds.
        timeline: what the device saw and did; times in seconds from the start.
        sessions: the events of each session that was recorded, in order of their beginning.
    """

    problems: tuple[str, ...]
    timeline: tuple[Seen, ...]
    sessions: tuple[tuple[Mapping[str, Any], ...], ...]


class Watched(FakeDevice):
    """A device that also keeps every text message it is sent."""

    def __init__(self, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - the base's own
        """See `FakeDevice`."""
        super().__init__(*arguments, **more)
        self.texts: list[str] = []

    def text_came(self, text: str) -> None:
        """Keep it."""
        self.texts.append(text)
        super().text_came(text)


def run_scenario(scenario: Scenario, folder: Path, encoded: Path | None = None) -> Outcome:
    """Run it in virtual time, with all files below `folder`, an empty one.

    `encoded` is a folder of encoded clips that runs may share, which saves half of their time.
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(Simulation(scenario, folder, encoded).run())


class Simulation:
    """One run of one scenario."""

    def __init__(self, scenario: Scenario, folder: Path, encoded: Path | None) -> None:
        """Prepare nothing yet."""
        self._scenario = scenario
        self._folder = folder
        self._encoded = encoded
        self._voices = Voices()
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> Outcome:
        """Run it."""
        loop = asyncio.get_running_loop()
        gateway = PracticeGateway(
            self._folder,
            self._scenario.parts(),
            mode=Mode(self._scenario.mode),
            encoded=self._encoded,
        )
        uploads = self._uploads(gateway)
        await gateway.open(
            LoopClock(loop),
            files=_DISKS[self._scenario.gateway.disk](),
            on_ended=uploads.ended if uploads else lambda _: None,
            around=self._with_ears,
        )
        self._port = gateway.server.port
        device = _device(self._scenario.device, self._card(), ClipBook(gateway.clips))
        parts = self._scenario.parts()
        learner = ActingLearner(device, SCRIPTS[self._scenario.learner], parts, self._voices)
        for happening in self._scenario.happenings:
            device.watchers.append(_Awaiting(happening, self, device, learner, gateway).notice)
        try:
            await device.connect("127.0.0.1", self._port)
            await asyncio.sleep(_SETTLED_S)
            start_s = loop.time()
            if self._scenario.start:
                device.wake(self._scenario.start)
            await self._watch(device, start_s)
            device.leave()
            await asyncio.sleep(_LOOK_S)
        finally:
            learner.stop()
            device.scrap()
            await gateway.close()
            if uploads:
                await asyncio.to_thread(uploads.stop)
        sessions = read_sessions(gateway.journals)
        return Outcome(
            problems=tuple(find_problems(self._scenario, device, device.texts, sessions, start_s)),
            timeline=tuple(
                msgspec.structs.replace(seen, at_s=round(seen.at_s - start_s, 3))
                for seen in device.timeline
            ),
            sessions=sessions,
        )

    def come_back(self, device: FakeDevice) -> None:
        """Connect again, in a task of its own."""
        coming = asyncio.get_running_loop().create_task(device.connect("127.0.0.1", self._port))
        self._tasks.add(coming)
        coming.add_done_callback(self._tasks.discard)

    async def _watch(self, device: FakeDevice, start_s: float) -> None:
        """Wait until the last expected entry was seen or cannot come any more, then look on."""
        loop = asyncio.get_running_loop()
        wanted = [expected.see for expected in self._scenario.expect]
        while loop.time() - start_s < _LONGEST_S:
            await asyncio.sleep(_LOOK_S)
            seen = iter(name_of(one) for one in device.timeline if one.at_s >= start_s)
            if all(one in seen for one in wanted):
                break
        await asyncio.sleep(self._scenario.watch_ms / 1000)

    def _with_ears(self, factory: PracticeFactory) -> PracticeFactory:
        return with_ears(factory, self._voices, self._scenario.gateway.recogniser)

    def _uploads(self, gateway: PracticeGateway) -> Uploads | None:
        if self._scenario.gateway.web == "unused":
            return None
        with socket.socket() as nobody:  # a port that was free a moment ago: nobody listens there
            nobody.bind(("127.0.0.1", 0))
            server = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        gateway.journals.mkdir()
        uploads = Uploads(gateway.journals, server, "token", clock=SystemClock())
        uploads.start()
        return uploads

    def _card(self) -> FakeCard | None:
        kind = self._scenario.device
        if not kind.card:
            return None
        folder = f"/{APP_ID}/{TASK_ID}/lessons/{LESSON_ID}"
        files = {f"{folder}/{part.name}": part.lasts_ms for part in self._scenario.parts()}
        return FakeCard(files, broken=kind.card_broken, mute=kind.card_mute)


class _Awaiting:
    """A happening that waits for its moment."""

    def __init__(
        self,
        happening: Happening,
        simulation: Simulation,
        device: FakeDevice,
        learner: ActingLearner,
        gateway: PracticeGateway,
    ) -> None:
        self._happening = happening
        self._simulation = simulation
        self._device = device
        self._learner = learner
        self._gateway = gateway
        self._left = happening.nth

    def notice(self, seen: Seen) -> None:
        if name_of(seen) != self._happening.when or self._left <= 0:
            return
        self._left -= 1
        if self._left == 0:
            loop = asyncio.get_running_loop()
            loop.call_later(self._happening.after_ms / 1000, self._do)

    def _do(self) -> None:
        one, device = self._happening, self._device
        deeds: Mapping[Deed, Callable[[], None]] = {
            "say": lambda: self._learner.say(one.text, one.lasts_ms),
            "hush": self._learner.stop,
            "abort": lambda: device.abort(one.text),
            "wake": lambda: device.wake(one.text),
            "detect": lambda: device.detect(one.text),
            "leave": device.leave,
            "freeze": device.freeze,
            "send": lambda: device.send_raw(one.text),
            "start_task": lambda: self._gateway.start_task(device.device_id),
            "return": lambda: self._simulation.come_back(device),
        }
        deeds[one.do]()


def name_of(seen: Seen) -> str:
    """Return how a scenario names an entry: `clip 01.mp3`, `greeting`, `tool self.mp3.stop`."""
    return f"{seen.what} {seen.detail}".rstrip()


def read_sessions(root: Path) -> tuple[tuple[Mapping[str, Any], ...], ...]:
    """Return the events of each session below `root`, oldest session first."""
    found = [tuple(_events(folder)) for folder in root.iterdir() if folder.is_dir()]
    return tuple(sorted((one for one in found if one), key=lambda events: events[0]["ts"]))


def _events(folder: Path) -> Iterator[Mapping[str, Any]]:
    for event in JournalFolder(folder).events():
        yield msgspec.to_builtins(event)


def _device(kind: Kind, card: FakeCard | None, book: ClipBook) -> Watched:
    manners = Manners(
        protocol=kind.protocol,
        listen=kind.listen,
        drains=kind.drains,
        microphone_beside_card=kind.microphone_beside_card,
    )
    return Watched(DEVICE_ID, manners=manners, card=card, book=book)
