"""`etude bench clock`: how exactly follow-read steps while many devices practise.

Three kinds of processes: one gateway, with everything that a lesson needs (step clock, journal on
the disk, paced Opus); one crowd that plays all devices, half stock and half with a card, nine in
ten speaking; and a bare timer. A step's error is when the next clip had been sent minus when its
window closed, taken inside the gateway. The timer runs three times: alone before, beside the load
in an idle process (`timer_p99_ms`), and in the gateway's own loop. What counts is the steady state:
after everybody has joined and the first lessons have begun.
"""

import tempfile
import time
from typing import Any, Final

import msgspec

from etude.cli.bench.crowds import make_order
from etude.cli.bench.frame import milliseconds, quantile
from etude.cli.bench.gateway_process import LESSON, Listening, Reading
from etude.cli.bench.processes import Asked, allow_descriptors, run_json
from etude.testing.crowd import Report

GATEWAY: Final = "etude.cli.bench.gateway_process"
CROWD: Final = "etude.testing.crowd"
TIMER: Final = "etude.cli.bench.bare_timer"
_JOINING_A_SECOND: Final = 40
_SETTLE_S: Final = 5.0
_IDLE_S: Final = 3.0
_FULL_CPU: Final = 0.8  # of one core: what a gateway may use before its clock suffers


def clock(*, devices: int = 500, seconds: int = 30, loop: str = "asyncio") -> dict[str, Any]:
    """Let `devices` practise and measure for `seconds`; `loop` is `asyncio` or `uvloop`."""
    allow_descriptors(2 * devices + 100)
    alone = sorted(run_json(list[float], TIMER, str(_IDLE_S)))
    with (
        tempfile.TemporaryDirectory(prefix="etude-bench-") as folder,
        Asked(GATEWAY, "gateway", folder, loop) as gateway,
    ):
        listening = gateway.hear(Listening)
        empty = gateway.ask(Reading)
        with Asked(CROWD) as crowd:
            order = make_order(listening, devices, ramp_s=max(5.0, devices / _JOINING_A_SECOND))
            crowd.say(msgspec.json.encode(order))
            crowd.hear(Report)
            time.sleep(_SETTLE_S)
            gateway.ask(Reading)
            crowd.ask(Report)
            beside = sorted(run_json(list[float], TIMER, str(seconds)))
            measured = gateway.ask(Reading)
            seen = crowd.ask(Report)
    return _figures(devices, loop, alone, beside, empty, measured, seen)


def _figures(
    devices: int,
    loop: str,
    alone: list[float],
    beside: list[float],
    empty: Reading,
    measured: Reading,
    seen: Report,
) -> dict[str, Any]:
    steps = sorted(measured.step_errors_s)
    own = sorted(measured.timer_errors_s)
    cpu = measured.cpu_s / measured.wall_s
    return {
        "devices": devices,
        "loop": loop,
        "clips": [part.lasts_ms for part in LESSON],
        "steps": len(steps),
        "step_error_p50_ms": milliseconds(quantile(steps, 0.5)),
        "step_error_p99_ms": milliseconds(quantile(steps, 0.99)),
        "step_error_max_ms": milliseconds(steps[-1]),
        "timer_p99_ms": milliseconds(quantile(beside, 0.99)),
        "timer_max_ms": milliseconds(beside[-1]),
        "timer_alone_p99_ms": milliseconds(quantile(alone, 0.99)),
        "timer_in_gateway_p99_ms": milliseconds(quantile(own, 0.99)),
        "collection_max_ms": milliseconds(max(measured.collections_s, default=0.0)),
        "collections": len(measured.collections_s),
        "baseline": "a bare timer in an idle process beside the load",
        "ratio": round(quantile(steps, 0.99) / max(quantile(beside, 0.99), 1e-6), 2),
        "connected": seen.connected,
        "refused": seen.refused,
        "lost": seen.lost,
        "clips_played": seen.clips,
        "frames_played": seen.frames.played,
        "frames_late": seen.frames.late,
        "frames_overflowed": seen.frames.overflowed,
        "frame_late_max_ms": milliseconds(seen.frames.worst_late_s),
        "gateway_cpu": round(cpu, 3),
        "crowd_cpu": round(seen.cpu_s / seen.wall_s, 3),
        "devices_fit_by_cpu": int(devices * _FULL_CPU / cpu),
        "mib_per_device": round((measured.rss_kib - empty.rss_kib) / 1024 / devices, 3),
    }
