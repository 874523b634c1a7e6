"""`etude bench journal`: what an append costs, and what reading a large journal takes of memory.

Append: under the `os` policy, in turns with a bare `os.write` of the same line to a file of its
own. Reading: in a process of its own, which states how much its peak memory grew.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from etude.cli.bench.frame import quantile
from etude.edge.journal import Journal, SyncPolicy
from etude.events.ndjson import encode_event
from etude.testing.builders import session

_WARM_UP: Final = 200
_MIB: Final = 1 << 20
_US: Final = 1e6


def journal(*, events: int = 5000, read_mib: int = 1024, folder: str = "") -> dict[str, Any]:
    """Append `events` events, then read a journal of `read_mib` MiB; in `folder`, else in /tmp."""
    with tempfile.TemporaryDirectory(prefix="etude-bench-", dir=folder or None) as place:
        root = Path(place)
        ours, bare, synced = _appends(root, events)
        figures = {
            "events": events,
            "append_p50_us": _microseconds(ours, 0.5),
            "append_p99_us": _microseconds(ours, 0.99),
            "append_synced_p50_us": _microseconds(synced, 0.5),
            "baseline": "os.write of the same line, in turns",
            "baseline_p50_us": _microseconds(bare, 0.5),
            "ratio": round(quantile(ours, 0.5) / quantile(bare, 0.5), 2),
        }
        return figures | _reading(root, read_mib)


def _appends(root: Path, events: int) -> tuple[list[float], list[float], list[float]]:
    """Return sorted durations, in seconds: appends under `os`, bare writes, appends with sync."""
    made = session(events + _WARM_UP)
    session_id = made[0].session_id
    ours, bare, synced = [], [], []
    descriptor = os.open(root / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with (
        Journal.open(root / "os", session_id, policy=SyncPolicy.OS) as written,
        Journal.open(root / "always", session_id) as durable,
    ):
        for place, event in enumerate(made):
            line = encode_event(event) + b"\n"
            begun = time.perf_counter()
            written.append(event)
            ended = time.perf_counter()
            os.write(descriptor, line)
            bare_ended = time.perf_counter()
            if place >= _WARM_UP:
                ours.append(ended - begun)
                bare.append(bare_ended - ended)
            if place % 20 == 0:  # a sync takes the disk's time, not ours: a sample is enough
                begun = time.perf_counter()
                durable.append(event)
                synced.append(time.perf_counter() - begun)
    os.close(descriptor)
    return sorted(ours), sorted(bare), sorted(synced)


_READER: Final = """
import sys, time
from pathlib import Path
from etude.edge.reader import JournalFolder

def kib(line):  # of this program alone; ru_maxrss would count what the parent had at the fork
    return int(Path("/proc/self/status").read_text().partition(line + ":")[2].split()[0])

folder = JournalFolder(Path(sys.argv[1]))
before = kib("VmRSS")
begun = time.perf_counter()
events = sum(1 for _ in folder.events())
seconds = time.perf_counter() - begun
print(events, seconds, kib("VmHWM") - before)
"""


def _reading(root: Path, read_mib: int) -> dict[str, Any]:
    events = _write_large(root / "large", read_mib * _MIB)
    ran = subprocess.run(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-c", _READER, str(root / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    read, seconds, extra_kib = ran.stdout.split()
    if int(read) != events:
        reason = f"{read} of {events} events were read"
        raise AssertionError(reason)
    return {
        "read_mib": read_mib,
        "read_events": events,
        "read_events_per_s": round(events / float(seconds)),
        "read_extra_mib": round(int(extra_kib) / 1024, 1),
    }


def _write_large(folder: Path, wanted_bytes: int) -> int:
    """Write a journal by repeating the lines of one session; return the number of its events."""
    lines = [encode_event(event) + b"\n" for event in session(1000)]
    block = b"".join(lines)
    folder.mkdir()
    events = 0
    with (folder / "events.jsonl").open("wb") as part:
        while part.tell() < wanted_bytes:
            part.write(block)
            events += len(lines)
    return events


def _microseconds(durations_s: list[float], share: float) -> float:
    return round(quantile(durations_s, share) * _US, 1)
