"""The folders of all apps on a device's card (`docs/practice.md §Card or stream`)."""

from collections.abc import Iterable
from typing import Final

import structlog

from etude.gateway.ports import Device
from etude.practice.tasks import Task

ENSURE: Final = "self.sd.ensure_app"

_log = structlog.get_logger(__name__)


async def ensure_layout(device: Device, tasks: Iterable[Task]) -> None:
    """Have the folder of each task made, one after the other.

    No card and a failed call are logged and change nothing else. Never await it where a device's
    answers are received: its answers come there.
    """
    if ENSURE not in (device.tools or {}):
        return
    for task in tasks:
        if not task.needs_card:
            continue
        arguments = {"app_id": task.app_id, "task_id": task.task_id}
        result = await device.call_tool(ENSURE, arguments)
        if result.failure is not None:
            _log.warning(
                "a folder was not made on the card",
                action="card.layout_failed",
                app_id=task.app_id,
                task_id=task.task_id,
                failure=result.failure.value,
            )
