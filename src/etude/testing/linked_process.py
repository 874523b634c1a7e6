"""A gateway's part of the link as a process of its own, for tests that kill it.

`python -m etude.testing.linked_process FOLDER NAME PORT TOKEN DEVICE TOOL…`: links to web on PORT
with one toy, which notes in `FOLDER/asked.txt` what is asked of it. `ETUDE_CRASH_AT` ends it.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from etude.files import arm_from_environment
from etude.gateway.ports import ToolResult
from etude.testing.linked import Station, Toy
from etude.testing.nursery import ForkedProcess, Nursery

ASKED: Final = "asked.txt"


class _NotingToy(Toy):
    """Notes on disk what is asked of it, so that it outlives the process."""

    def __init__(self, device_id: str, file: Path, *tools: str) -> None:
        super().__init__(device_id, f"c-{os.getpid()}", *tools)
        self._file = file

    def call_tool(
        self, name: str, arguments: Mapping[str, Any], _timeout_s: float = 15.0
    ) -> "asyncio.Task[ToolResult]":
        self._note(f"{name} {arguments['task_id']}")
        return super().call_tool(name, arguments)

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> bool:
        self._note(f"start {app_id} {task_id}")
        return super().start_task(app_id, task_id, arguments)

    def _note(self, line: str) -> None:
        with self._file.open("a") as file:
            file.write(line + "\n")


def launch(
    nursery: Nursery,
    folder: Path,
    name: str,
    port: int,
    token: str,
    *tools: str,
    crash_at: str = "",
) -> ForkedProcess:
    """Start the process with the toy `toy-1` and its `tools`; it ends at `crash_at`."""
    return nursery.start(
        "etude.testing.linked_process",
        str(folder),
        name,
        str(port),
        token,
        "toy-1",
        *tools,
        environment={"ETUDE_CRASH_AT": crash_at},
    )


def asked(folder: Path) -> list[str]:
    """Return what was asked of the toy, by any process."""
    file = folder / ASKED
    return file.read_text().splitlines() if file.exists() else []


def main() -> None:
    """Run it until it is killed."""
    arm_from_environment()
    folder, name, port, token, device_id, *tools = sys.argv[1:]
    asyncio.run(_run(Path(folder), name, int(port), token, device_id, tools))


async def _run(
    folder: Path, name: str, port: int, token: str, device_id: str, tools: list[str]
) -> None:
    async with Station(name, port, token, folder) as station:
        station.meet(_NotingToy(device_id, folder / ASKED, *tools))
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
