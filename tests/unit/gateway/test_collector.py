import asyncio
import gc

from etude.gateway.collector import LATEST_S, LOOK_S, collecting_calmly
from etude.testing.virtual_time import VirtualTimeLoop


def count_full_collections(*, busy: bool, lasts_s: float) -> int:
    full = 0

    def noted(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "stop" and info["generation"] == 2

    async def run() -> None:
        with collecting_calmly(lambda: busy):
            gc.callbacks.append(noted)
            kept = [[number] for number in range(200_000)]
            await asyncio.sleep(lasts_s)
            gc.callbacks.remove(noted)
            del kept

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())
    return full


def test_nothing_is_collected_in_full_while_somebody_practises() -> None:
    """However much is made, no full collection runs in a busy gateway's first ten minutes."""
    assert count_full_collections(busy=True, lasts_s=LATEST_S - LOOK_S) == 0


def test_an_idle_gateway_collects() -> None:
    """Without anybody practising a full collection runs at every look."""
    assert count_full_collections(busy=False, lasts_s=3 * LOOK_S + 1) == 3


def test_a_busy_gateway_collects_once_in_ten_minutes() -> None:
    """Garbage of closed connections cannot gather without bound."""
    assert count_full_collections(busy=True, lasts_s=2 * LATEST_S + 2 * LOOK_S) == 2


def test_the_collector_is_given_back() -> None:
    """Afterwards the thresholds are what they were, and nothing is frozen."""
    before = gc.get_threshold()
    count_full_collections(busy=True, lasts_s=1)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
