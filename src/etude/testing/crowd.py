"""Many devices in one process: the load of `etude bench clock` and `etude bench gateway`.

Reads one line from standard input, an `Order`; connects its devices, spread over the ramp; then
answers every further line with one of its own, a `Report` of what happened since the line before.
The line `leave` makes every device drop TCP first. It ends with its standard input.
"""

import asyncio
import random
import sys
import time
from collections.abc import Mapping
from typing import Final

import msgspec

from etude.testing.device_socket import DeviceRefusedError
from etude.testing.device_sound import ClipBook, FramesHeard
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Manners, NoHelloError, Seen
from etude.testing.learner_voice import Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part

LEAVE: Final = "leave"
_KEPT: Final = 64  # entries of a timeline: a crowd is counted, not read
_AGAIN_S: Final = (2.5, 4.0)  # beyond the last window: the lesson is over, say the phrase again
_LONGEST_RATIO: Final = 1.5
_LINE_BYTES: Final = 1 << 26


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a crowd does.

    Attributes:
        host: of the gateway.
        port: of the gateway.
        devices: how many; every second one has a card.
        ramp_s: the time over which they connect.
        entry: what starts a lesson, as a detected text; empty = they stay idle.
        parts: the lesson, as learners know it.
        clips: the lesson, as stock devices are sent it.
        folder: of the lesson on the card.
        seed: of the learners' moments.
    """

    host: str
    port: int
    devices: int
    ramp_s: float
    entry: str = ""
    parts: tuple[Part, ...] = ()
    clips: Mapping[str, tuple[bytes, ...]] = {}
    folder: str = ""
    seed: int = 1


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a crowd saw since the last report; `connected` is now.

    Attributes:
        connected: devices whose channel is open.
        refused: handshakes or hellos that failed.
        clips: that were over.
        lost: connections that the other side ended.
        frames: what became of the stock devices' audio.
        cpu_s: of this process.
        wall_s: since the last report.
    """

    connected: int
    refused: int
    clips: int
    lost: int
    frames: FramesHeard
    cpu_s: float
    wall_s: float


class _Member:
    """A device and its learner, who starts the lesson again whenever nothing more comes."""

    def __init__(self, number: int, crowd: "_Crowd") -> None:
        self._crowd = crowd
        order = crowd.order
        files = {f"{order.folder}/{part.name}": part.lasts_ms for part in order.parts}
        self.device = FakeDevice(
            f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}",
            manners=Manners(protocol=1 + number % 3),
            card=FakeCard(files) if number % 2 else None,
            book=crowd.book,
        )
        if order.parts:
            script = SCRIPTS["silent" if number % 10 == 0 else "perfect"]
            self._learner = ActingLearner(self.device, script, order.parts, crowd.voices)
        longest_ms = max((part.lasts_ms for part in order.parts), default=0)
        self._window_s = max(0.8, _LONGEST_RATIO * longest_ms / 1000)
        self._timer: asyncio.TimerHandle | None = None
        self.device.watchers.append(self._notice)

    async def join(self, after_s: float) -> None:
        """Connect and start the lesson."""
        await asyncio.sleep(after_s)
        order = self._crowd.order
        try:
            await self.device.connect(order.host, order.port)
        except (DeviceRefusedError, NoHelloError, OSError):
            self._crowd.refused += 1
            return
        self._start()

    def _start(self) -> None:
        if self.device.connected and self._crowd.order.entry:
            self.device.wake(self._crowd.order.entry)
            self._start_later()

    def _start_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        pause_s = self._window_s + self._crowd.chance.uniform(*_AGAIN_S)
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._start)

    def _notice(self, seen: Seen) -> None:
        if len(self.device.timeline) > _KEPT:
            del self.device.timeline[:-1]
        if seen.what == "clip" and self._timer is not None:
            self._timer.cancel()
        elif seen.what == "clip_over":
            self._crowd.clips += 1
            self._start_later()
        elif seen.what in {"lost", "closed"}:
            self._crowd.lost += 1


class _Crowd:
    """The devices of one order, and what is counted."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.book = ClipBook(order.clips)
        self.voices = Voices()
        self.chance = random.Random(order.seed)  # noqa: S311 - so that a run repeats
        self.refused = self.clips = self.lost = 0
        self.members = [_Member(number, self) for number in range(order.devices)]
        self._before = (time.perf_counter(), time.process_time(), 0, 0, self._frames())

    async def join(self) -> None:
        """Connect all, each at its moment of the ramp."""
        moments = sorted(self.chance.uniform(0, self.order.ramp_s) for _ in self.members)
        async with asyncio.TaskGroup() as group:
            for member, after_s in zip(self.members, moments, strict=True):
                group.create_task(member.join(after_s))

    def leave(self) -> None:
        """Let every device drop TCP."""
        for member in self.members:
            member.device.leave()

    def report(self) -> Report:
        """Return what happened since the last report."""
        now = (time.perf_counter(), time.process_time(), self.clips, self.lost, self._frames())
        wall_s, cpu_s, clips, lost, frames = self._before
        self._before = now
        for member in self.members:
            member.device.frames.worst_late_s = 0.0
        return Report(
            connected=sum(member.device.connected for member in self.members),
            refused=self.refused,
            clips=now[2] - clips,
            lost=now[3] - lost,
            frames=FramesHeard(
                played=now[4].played - frames.played,
                late=now[4].late - frames.late,
                overflowed=now[4].overflowed - frames.overflowed,
                unheard=now[4].unheard - frames.unheard,
                worst_late_s=now[4].worst_late_s,
            ),
            cpu_s=now[1] - cpu_s,
            wall_s=now[0] - wall_s,
        )

    def _frames(self) -> FramesHeard:
        heard = [member.device.frames for member in self.members]
        return FramesHeard(
            played=sum(one.played for one in heard),
            late=sum(one.late for one in heard),
            overflowed=sum(one.overflowed for one in heard),
            unheard=sum(one.unheard for one in heard),
            worst_late_s=max((one.worst_late_s for one in heard), default=0.0),
        )


async def _run() -> None:
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    crowd = _Crowd(msgspec.json.decode(await reader.readline(), type=Order))
    for part in crowd.order.parts:
        crowd.voices.say(part.text, part.lasts_ms)  # encoded before anybody is there
    await crowd.join()
    while True:
        sys.stdout.write(msgspec.json.encode(crowd.report()).decode() + "\n")
        sys.stdout.flush()
        line = await reader.readline()
        if not line:
            return
        if line.decode().strip() == LEAVE:
            crowd.leave()


def main() -> None:
    """Play a crowd until standard input ends."""
    if sys.platform != "win32":
        import uvloop  # noqa: PLC0415 - the load generator may be as fast as it can

        uvloop.run(_run())
    else:
        asyncio.run(_run())


if __name__ == "__main__":
    main()
