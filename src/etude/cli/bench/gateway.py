"""`etude bench gateway`: what a connected device costs a gateway, and what is left of it.

The crowd connects, the gateway's memory and descriptors are read before, while and after, idle
after the last device has dropped TCP. For comparison the same crowd meets the bare WebSocket
library with a fixed hello.
"""

import tempfile
import time
from typing import Any, Final

import msgspec

from etude.cli.bench.clock import CROWD, GATEWAY
from etude.cli.bench.crowds import make_order
from etude.cli.bench.gateway_process import BARE, Listening, Reading
from etude.cli.bench.processes import Asked, allow_descriptors
from etude.testing.crowd import LEAVE, Report

_JOINING_A_SECOND: Final = 100
_PRACTISE_S: Final = 20.0
_IDLE_S: Final = 3.0


def gateway(*, devices: int = 1000, practising: int = 0, after_s: int = 10) -> dict[str, Any]:
    """Connect `devices`, all practising if `practising` is 1; look again `after_s` after they left.

    The full check of flatness looks after 60 s (`--after-s 60`). Of devices that left in the
    middle of a lesson, the journals stay open for ten minutes: they may go on.
    """
    allow_descriptors(2 * devices + 100)
    ours = _visit("gateway", devices, after_s, practising=bool(practising))
    bare = _visit(BARE, devices, 2, practising=False)
    each = _mib_per_device(ours, devices)
    each_bare = _mib_per_device(bare, devices)
    before, full, left, seen = ours
    return {
        "devices": devices,
        "practising": bool(practising),
        "connected": seen.connected,
        "refused": seen.refused,
        "lost": seen.lost,
        "mib_per_device": each,
        "descriptors_per_device": round((full.descriptors - before.descriptors) / devices, 2),
        "gateway_cpu": round(full.cpu_s / full.wall_s, 3),
        "left_after_s": after_s,
        "left_connections": left.connections,
        "left_sockets": left.sockets - before.sockets,
        "left_descriptors": left.descriptors - before.descriptors,
        "left_memory_ratio": round(left.rss_kib / full.rss_kib, 3),
        "rss_mib": [round(one.rss_kib / 1024, 1) for one in (before, full, left)],
        "baseline": "the WebSocket library with a fixed hello, idle",
        "baseline_mib_per_device": each_bare,
        "ratio": round(each / each_bare, 2),
    }


_Visit = tuple[Reading, Reading, Reading, Report]


def _mib_per_device(visit: _Visit, devices: int) -> float:
    before, full, _, _ = visit
    return round((full.rss_kib - before.rss_kib) / 1024 / devices, 4)


def _visit(kind: str, devices: int, after_s: int, *, practising: bool) -> _Visit:
    """Return readings before, with all devices, and after they have left, and what they saw."""
    with (
        tempfile.TemporaryDirectory(prefix="etude-bench-") as folder,
        Asked(GATEWAY, kind, folder, "asyncio") as process,
    ):
        listening = process.hear(Listening)
        before = process.ask(Reading)
        with Asked(CROWD) as crowd:
            ramp_s = max(2.0, devices / _JOINING_A_SECOND)
            order = make_order(listening, devices, ramp_s=ramp_s, practising=practising)
            crowd.say(msgspec.json.encode(order))
            crowd.hear(Report)
            process.ask(Reading)
            time.sleep(_PRACTISE_S if practising else _IDLE_S)
            full = process.ask(Reading)
            seen = crowd.ask(Report)
            crowd.ask(Report, LEAVE.encode())
            time.sleep(after_s)
            left = process.ask(Reading)
    return before, full, left, seen
