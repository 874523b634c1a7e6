"""A gateway that is measured: a process of its own, which tells its figures line by line.

`python -m etude.cli.bench.gateway_process KIND FOLDER LOOP` writes one line when it listens
(`Listening`), then answers each line on standard input with one of its own: a `Reading` of what
happened since the line before. It ends with its standard input. KIND is `gateway`, or `bare`: the
same WebSocket library with a fixed hello and nothing of ours, for comparison. LOOP is `asyncio` or
`uvloop`.
"""

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from etude.cli import logs
from etude.cli.bench.bare_timer import INTERVAL_S
from etude.clock import SystemClock
from etude.gateway.collector import collecting_calmly
from etude.gateway.frames import BinaryVersion
from etude.gateway.messages import AudioParams, Downlink
from etude.testing.learners_acting import Part
from etude.testing.practice_gateway import HOST, PracticeGateway

BARE: Final = "bare"
LESSON: Final = tuple(
    Part(name=f"{number:02}.mp3", text=f"sentence number {number}", lasts_ms=lasts_ms)
    for number, lasts_ms in enumerate((900, 1500, 700, 1200, 1000, 800, 1300, 1100), 1)
)
"""Short clips: the more steps a second, the harder."""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The port, and the packets of each clip of the lesson by name."""

    port: int
    clips: Mapping[str, tuple[bytes, ...]] = {}


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway measured since the last reading.

    Attributes:
        step_errors_s: of each step, when the next clip had been sent minus when its window closed.
        timer_errors_s: of a bare timer in the same loop.
        collections_s: how long each run of Python's collector of cycles took: the loop stood still.
        connections: now.
        rss_kib: now.
        descriptors: now.
        sockets: how many of these are sockets; others are journals, open while they may go on.
        cpu_s: of the process, threads included.
        wall_s: since the last reading.
    """

    step_errors_s: list[float]
    timer_errors_s: list[float]
    collections_s: list[float]
    connections: int
    rss_kib: int
    descriptors: int
    sockets: int
    cpu_s: float
    wall_s: float


class Probe:
    """Collects while a gateway runs.

    Instants are `time.monotonic`'s, which both loops count in: uvloop's own `time()` stands still
    within one turn of the loop and would hide what a turn takes.
    """

    def __init__(self) -> None:
        """Measure from now on; in the running loop."""
        self._loop = asyncio.get_running_loop()
        self._steps: list[float] = []
        self._timers: list[float] = []
        self._collections: list[float] = []
        self._collecting_since_s = 0.0
        gc.callbacks.append(self._collected)
        self._since = (time.perf_counter(), time.process_time())
        self._due_s = time.monotonic() + INTERVAL_S
        self._loop.call_at(self._due_s, self._tick)

    def step(self, due_s: float) -> None:
        """One step of a practice has been sent; `due_s` is when its window closed."""
        self._steps.append(time.monotonic() - due_s)

    def read(self, connections: int) -> Reading:
        """Return what came since the last reading."""
        now = (time.perf_counter(), time.process_time())
        wall_s, cpu_s = self._since
        steps, self._steps = self._steps, []
        timers, self._timers = self._timers, []
        collections, self._collections = self._collections, []
        self._since = now
        open_files = list(_open_files())
        return Reading(
            step_errors_s=steps,
            timer_errors_s=timers,
            collections_s=collections,
            connections=connections,
            rss_kib=_memory_kib(),
            descriptors=len(open_files),
            sockets=sum(one.startswith("socket:") for one in open_files),
            cpu_s=now[1] - cpu_s,
            wall_s=now[0] - wall_s,
        )

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since_s = time.perf_counter()
        else:
            self._collections.append(time.perf_counter() - self._collecting_since_s)

    def _tick(self) -> None:
        now_s = time.monotonic()
        self._timers.append(now_s - self._due_s)
        self._due_s = max(self._due_s + INTERVAL_S, now_s)
        self._loop.call_at(self._due_s, self._tick)


def _open_files() -> Iterator[str]:
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own, or one that was closed just now
            yield str(descriptor.readlink())


def _memory_kib() -> int:
    return int(Path("/proc/self/status").read_text("ascii").partition("VmRSS:")[2].split()[0])


class Answering:
    """Standard input and output as questions and answers."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._reader = asyncio.StreamReader()

    async def open(self, listening: Listening) -> None:
        """Say that the port is open."""
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin
        )
        _write(listening)

    async def asked(self) -> bool:
        """Wait for a question; False at the end."""
        return bool(await self._reader.readline())

    def answer(self, reading: Reading) -> None:
        """Answer it."""
        _write(reading)


def _write(line: msgspec.Struct) -> None:
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


async def _serve_bare() -> None:
    connections: set[ServerConnection] = set()

    async def talk(socket: ServerConnection) -> None:
        connections.add(socket)
        hello = Downlink("bare").hello(AudioParams(), BinaryVersion.BARE)
        with contextlib.suppress(ConnectionClosed):
            await socket.recv()
            await socket.send(hello)
            while True:
                await socket.recv()
        connections.discard(socket)

    probe, answering = Probe(), Answering()
    async with serve(talk, HOST, 0, compression=None, ping_interval=25, close_timeout=1) as server:
        await answering.open(Listening(port=next(iter(server.sockets)).getsockname()[1]))
        while await answering.asked():
            answering.answer(probe.read(len(connections)))


async def _serve_gateway(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    gateway = PracticeGateway(folder, LESSON)
    probe, answering = Probe(), Answering()

    def stepped(due_s: float) -> None:
        loop.call_soon(probe.step, due_s)  # a tool's call leaves in the turn after the step's own

    await gateway.open(SystemClock(), stepped=stepped)
    names = [part.name for part in LESSON]
    clips = {name: packets for name, packets in gateway.clips.items() if name in names}
    await answering.open(Listening(port=gateway.server.port, clips=clips))
    with collecting_calmly(gateway.server.connections.in_use):
        while await answering.asked():
            answering.answer(probe.read(len(gateway.server.connections)))
    await gateway.close()


def main() -> None:
    """Serve until standard input ends."""
    kind, folder, loop = sys.argv[1:4]
    logs.configure("warning", process="bench")
    serving = _serve_bare() if kind == BARE else _serve_gateway(Path(folder))
    if loop == "uvloop":
        import uvloop  # noqa: PLC0415 - only where it is wanted

        uvloop.run(serving)
    else:
        asyncio.run(serving)


if __name__ == "__main__":
    main()
