"""`etude bench speaking`: many stock devices practise by voice, and every turn is assessed.

Real web, worker and gateway with the engines of `etude[speech]`, on a fresh installation; learners
who speak in the voice that ships (nobody's recordings are in the product), so live recognition and
assessment run while everybody practises. A step's error is when the next clip had been sent minus
when its window closed, taken inside the gateway; the bare timer runs beside it in an idle process.
Sustained is what the worker assesses from its first turn to its last. In the end every turn must be
there and have every metric once.
"""

import asyncio
import contextlib
import os
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.assess.metrics import load_methods
from etude.assess.spoken_methods import PRONUNCIATION
from etude.cli.bench.clock import TIMER
from etude.cli.bench.frame import milliseconds, quantile
from etude.cli.bench.gateway_process import Listening, Reading
from etude.cli.bench.processes import Asked, allow_descriptors, run_json
from etude.practice.windows import window_ms
from etude.settings import default_speech_processes
from etude.testing.server import ServerProcess
from etude.testing.speaking import SpeakingToy, practise
from etude.testing.speaking_room import ASSESSED_S, SpeakingRoom, children

GATEWAY: Final = "etude.cli.bench.speaking_gateway"
_RAMP_S: Final = 5.0
_IDLE_S: Final = 3.0
_LOOK_S: Final = 1.0
_STALLED_S: Final = ASSESSED_S
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def speaking(
    *, devices: int = 50, steps: int = 8, rounds: int = 2, processes: int = 0
) -> dict[str, Any]:
    """Let `devices` read a lesson of `steps` clips `rounds` times; wait until all is assessed.

    Args:
        devices: how many, all at once.
        steps: clips of the lesson, 2 to 4 s each.
        rounds: how often each reads it.
        processes: of engines, in the worker; 0 = as many as an installation here has.
    """
    allow_descriptors(2 * devices + 100)
    processes = processes or default_speech_processes()
    alone = sorted(run_json(list[float], TIMER, str(_IDLE_S)))
    with tempfile.TemporaryDirectory(prefix="etude-bench-") as folder:
        environment = {"ETUDE_SPEECH_PROCESSES": str(processes)}
        room = SpeakingRoom(Path(folder), toys=devices, steps=steps, environment=environment)
        ledger = _Ledger(room.settings.data / "etude.db", frozenset(load_methods()))
        run = _run(room, rounds, ledger)
        counted = ledger.counted()
    return _figures(devices, devices * steps * rounds, processes, alone, run, counted)


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured while it ran. `backlog` is the longest, in turns."""

    measured: Reading
    beside: list[float]
    practised_s: float
    drained_after_s: float
    backlog: int
    clips: int
    losses: int
    worker_cpu_s: float
    engines_cpu_s: float
    listening_cpu_s: float


class _Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored in the end."""

    turns: int
    recorded: int
    recognised_live: int
    recognised_later: int
    assessed: int
    doubled: int
    without_number: int
    assessing_s: float


class _Ledger:
    """Counts turns and metrics in the installation's own database, read-only."""

    def __init__(self, file: Path, methods: frozenset[str]) -> None:
        self._methods = methods
        self._address = f"file:{file}?mode=ro"

    def backlog(self) -> tuple[int, int]:
        """Return how many turns have arrived, and how many of them are assessed."""
        with sqlite3.connect(self._address, uri=True, timeout=60.0) as connection:
            row = connection.execute(
                "SELECT count(*) FILTER (WHERE event_type = 'signal_observation'),"
                " count(*) FILTER (WHERE signal = ?) FROM session_event",
                (PRONUNCIATION,),
            ).fetchone()
        connection.close()
        return int(row[0]), int(row[1])

    def counted(self) -> _Counted:
        """Return what is there."""
        said: Counter[tuple[str, str]] = Counter()
        numbers, turns, times = 0, [], []
        for event, received_us in self._events():
            value = event["value"]
            if event["event_type"] == "signal_observation":
                turns.append(value)
                continue
            said[event["correlation_id"], event["signal"]] += 1
            if event["signal"] == PRONUNCIATION:
                numbers += value["value"] is not None
                times.append(received_us)
        whole = Counter(turn for turn, signal in said if signal in self._methods)
        return _Counted(
            turns=len(turns),
            recorded=sum(turn["audio_id"] is not None for turn in turns),
            recognised_live=sum(turn["asr_text"] is not None for turn in turns),
            recognised_later=sum(signal == "recognised_text" for _, signal in said),
            assessed=sum(count == len(self._methods) for count in whole.values()),
            doubled=sum(count > 1 for count in said.values()),
            without_number=len(times) - numbers,
            assessing_s=(max(times) - min(times)) / 1e6 if times else 0.0,
        )

    def _events(self) -> Iterator[tuple[dict[str, Any], int]]:
        connection = sqlite3.connect(self._address, uri=True, timeout=60.0)
        rows = connection.execute(
            "SELECT line, received_us FROM session_event WHERE event_type IN"
            " ('signal_observation', 'audio_observation', 'speech_recognised')"
        )
        for line, received_us in rows:
            yield msgspec.json.decode(line), received_us
        connection.close()


class _Watch:
    """Looks at the backlog every second, in a thread, until it is told to stop."""

    def __init__(self, ledger: _Ledger) -> None:
        self._ledger = ledger
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.longest = 0
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            arrived, assessed = self._ledger.backlog()
            self.longest = max(self.longest, arrived - assessed)


def _run(room: SpeakingRoom, rounds: int, ledger: _Ledger) -> _Run:
    web, worker = room.process("web"), room.process("worker")
    with web, _working(worker) as worker_pid:
        environment = {**os.environ, **room.environment, "ETUDE_WEB_URL": web.url}
        environment |= {"ETUDE_DATA": str(room.settings.data), "ETUDE_GATEWAY_HOST": "127.0.0.1"}
        with (
            Asked(GATEWAY, environment=environment) as gateway,
            ThreadPoolExecutor(max_workers=1) as threads,
        ):
            gateway.hear(Listening)
            watch = _Watch(ledger)
            gateway.ask(Reading)
            lasts_s = _RAMP_S + rounds * _lesson_s(room)
            timer = threads.submit(run_json, list[float], TIMER, f"{lasts_s:.1f}")
            began_s = time.monotonic()
            toys = asyncio.run(_practise(room, rounds))
            measured = gateway.ask(Reading)
            practised_s = time.monotonic() - began_s
            drained_after_s = _drained(ledger, len(toys) * rounds * len(room.lesson.parts))
            watch.stop()
            engines = children(worker_pid)
            return _Run(
                measured=measured,
                beside=sorted(timer.result()),
                practised_s=practised_s,
                drained_after_s=drained_after_s,
                backlog=watch.longest,
                clips=sum(len(toy.heard) for toy in toys),
                losses=sum(toy.losses for toy in toys),
                worker_cpu_s=_cpu_s(worker_pid),
                engines_cpu_s=sum(map(_cpu_s, engines)),
                listening_cpu_s=sum(map(_cpu_s, children(gateway.pid))),
            )


@contextlib.contextmanager
def _working(worker: ServerProcess) -> Iterator[int]:
    """Run a worker, which listens on nothing that could be waited for; yield its process id."""
    worker.start(wait=False)
    try:
        yield worker.pid
    finally:
        worker.stop()


async def _practise(room: SpeakingRoom, rounds: int) -> list[SpeakingToy]:
    toys = room.toys()
    await practise(toys, room.ota_url, rounds=rounds, ramp_s=_RAMP_S)
    return toys


def _lesson_s(room: SpeakingRoom) -> float:
    return sum(part.lasts_ms + window_ms(part.lasts_ms, 1.2) for part in room.lesson.parts) / 1000


def _drained(ledger: _Ledger, turns: int) -> float:
    """Wait until all turns are assessed, or nothing moves any more; return how long."""
    began_s = moved_s = time.monotonic()
    before = -1
    while True:
        arrived, assessed = ledger.backlog()
        now_s = time.monotonic()
        if assessed != before:
            before, moved_s = assessed, now_s
        if (assessed >= turns and arrived >= turns) or now_s - moved_s > _STALLED_S:
            return now_s - began_s
        time.sleep(_LOOK_S)


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process that runs, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # utime, stime, cutime, cstime of proc(5)


def _figures(
    devices: int,
    turns: int,
    processes: int,
    alone: list[float],
    run: _Run,
    counted: _Counted,
) -> dict[str, Any]:
    steps, own = sorted(run.measured.step_errors_s), sorted(run.measured.timer_errors_s)
    cpu_s = run.worker_cpu_s + run.engines_cpu_s
    return {
        "devices": devices,
        "speech_processes": processes,
        "turns": counted.turns,
        "turns_lost": turns - counted.turns,
        "turns_recorded": counted.recorded,
        "turns_assessed": counted.assessed,
        "turns_unassessed": turns - counted.assessed,
        "metrics_doubled": counted.doubled,
        "turns_without_number": counted.without_number,
        "connections_lost": run.losses,
        "recognised_live": counted.recognised_live,
        "recognised_later": counted.recognised_later,
        "turns_per_s_per_core": round(counted.assessed / cpu_s, 2),
        "turns_per_s": round(counted.assessed / max(counted.assessing_s, 1e-6), 2),
        "practised_s": round(run.practised_s, 1),
        "backlog_max": run.backlog,
        "drained_after_s": round(run.drained_after_s, 1),
        "steps": len(steps),
        "step_error_p50_ms": milliseconds(quantile(steps, 0.5)),
        "step_error_p99_ms": milliseconds(quantile(steps, 0.99)),
        "step_error_max_ms": milliseconds(steps[-1]),
        "timer_p99_ms": milliseconds(quantile(run.beside, 0.99)),
        "timer_max_ms": milliseconds(run.beside[-1]),
        "timer_alone_p99_ms": milliseconds(quantile(alone, 0.99)),
        "timer_in_gateway_p99_ms": milliseconds(quantile(own, 0.99)),
        "timer_in_gateway_max_ms": milliseconds(own[-1]),
        "collection_max_ms": milliseconds(max(run.measured.collections_s, default=0.0)),
        "baseline": "a bare timer in an idle process beside the load",
        "ratio": round(quantile(steps, 0.99) / max(quantile(run.beside, 0.99), 1e-6), 2),
        "gateway_cpu": round(run.measured.cpu_s / run.measured.wall_s, 3),
        "worker_cpu_s": round(run.worker_cpu_s, 1),
        "engines_cpu_s": round(run.engines_cpu_s, 1),
        "listening_cpu_s": round(run.listening_cpu_s, 1),
    }
