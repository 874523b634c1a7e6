"""Durations of one piece of work that a bench runs again and again."""

import time
from collections.abc import Callable, Sequence

from etude.cli.bench.frame import milliseconds, quantile


class Times:
    """Durations of the runs of one piece of work: by the clock, and of this process's CPU.

    On a machine that does other work too only the CPU's say something about the code.
    """

    def __init__(self) -> None:
        """Begin without a run."""
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []

    def add(self, work: Callable[[], object], *, counts: bool) -> None:
        """Run `work`; its duration is kept if it `counts`."""
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        work()
        if counts:
            self.cpu_s.append(time.process_time() - cpu_s)
            self.wall_s.append(time.perf_counter() - wall_s)

    def figures(self, prefix: str, shares: Sequence[int] = (50, 99)) -> dict[str, float]:
        """Return the percentiles in ms: `p50_ms`, `cpu_p50_ms`, …, each behind `prefix`."""
        return {
            f"{prefix}{kind}p{share}_ms": milliseconds(quantile(sorted(times), share / 100))
            for kind, times in (("", self.wall_s), ("cpu_", self.cpu_s))
            for share in shares
        }
