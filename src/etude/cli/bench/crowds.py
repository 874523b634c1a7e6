"""The lesson and the devices of `etude bench clock` and `etude bench gateway`."""

from etude.cli.bench.gateway_process import LESSON, Listening
from etude.testing.crowd import Order
from etude.testing.practice_gateway import HOST
from etude.testing.scenarios import APP_ID, ENTRY, LESSON_ID, TASK_ID


def make_order(
    listening: Listening, devices: int, *, ramp_s: float, practising: bool = True
) -> Order:
    """Return what the crowd is to do with the gateway that listens there."""
    return Order(
        host=HOST,
        port=listening.port,
        devices=devices,
        ramp_s=ramp_s,
        entry=f"[voice_entry]{ENTRY}" if practising else "",
        parts=LESSON if practising else (),
        clips=listening.clips,
        folder=f"/{APP_ID}/{TASK_ID}/lessons/{LESSON_ID}",
    )
