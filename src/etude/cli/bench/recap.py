"""`etude bench recap`: from the lines of a journal to the recap, as the device does it.

The baseline is the plain JSON decoding of the same lines, which no implementation can save.
"""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from etude.cli.bench.frame import milliseconds, quantile
from etude.events.ndjson import decode_line
from etude.rubric.recap import recap as make_recap
from etude.testing.builders import lines, session

_WARM_UP_RUNS: Final = 20


def recap(*, events: int = 200, runs: int = 500) -> dict[str, Any]:
    """Measure decoding and recap of `events` lines, `runs` times, alternating with the baseline."""
    journal = lines(session(events))
    ours, plain = _Times(), _Times()
    for run in range(_WARM_UP_RUNS + runs):
        ours.add(lambda: _recap(journal), counts=run >= _WARM_UP_RUNS)
        plain.add(lambda: _plain(journal), counts=run >= _WARM_UP_RUNS)
    return {
        "events": events,
        "runs": runs,
        **ours.figures(""),
        "baseline": "json.loads of the same lines",
        **plain.figures("baseline_"),
        "ratio": round(quantile(sorted(ours.cpu_s), 0.5) / quantile(sorted(plain.cpu_s), 0.5), 2),
    }


class _Times:
    """Durations of the runs of one piece of work: by the clock, and of this process's CPU.

    On a machine that does other work too only the CPU's say something about the code.
    """

    def __init__(self) -> None:
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []

    def add(self, work: Callable[[], object], *, counts: bool) -> None:
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        work()
        if counts:
            self.cpu_s.append(time.process_time() - cpu_s)
            self.wall_s.append(time.perf_counter() - wall_s)

    def figures(self, prefix: str) -> dict[str, float]:
        return {
            f"{prefix}{kind}p{share}_ms": milliseconds(quantile(sorted(times), share / 100))
            for kind, times in (("", self.wall_s), ("cpu_", self.cpu_s))
            for share in (50, 99)
        }


def _recap(journal: list[bytes]) -> object:
    return make_recap(map(decode_line, journal))


def _plain(journal: list[bytes]) -> object:
    return [json.loads(line) for line in journal]
