"""An installation that is really spoken to, processes and engines included, and what came of it.

`python -m etude.testing.speaking_room FOLDER TOYS STEPS` sets one up in an empty folder, runs
`etude serve`, lets the toys practise, waits until everything is assessed and a report is there, and
prints what it has found as JSON (`Outcome`). With `--alone` first, it brings up the loopback of a
network namespace in which nothing else is there.
"""

import asyncio
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import msgspec

from etude.assess.spoken_methods import PRONUNCIATION
from etude.cli.init import Wish, set_up
from etude.clock import SystemClock
from etude.files import Files
from etude.net import tls_context
from etude.settings import Settings, load
from etude.testing.playroom import bound
from etude.testing.ports import free_port
from etude.testing.server import ServerProcess
from etude.testing.speaking import SpeakingToy, SpokenLesson, device_id, practise

HOST: Final = "127.0.0.1"
ASSESSED_S: Final = 240.0
"""Only a failing run waits as long."""
ENGINE: Final = "etude.speech.pool_process"
ALONE: Final = "--alone"
_LOOK_S: Final = 0.5
_UP_AND_RUNNING: Final = 0x1 | 0x40
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS of <linux/sockios.h>


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        turns: of all toys, as their instances show them.
        heard: by toy, the clips that were over.
        reports: by session, the report.
        metrics: how often each turn has each method: 1, or it is lost or double.
    """

    turns: list[dict[str, Any]]
    heard: list[list[str]]
    reports: dict[str, Any]
    metrics: list[int]


class SpeakingRoom:
    """See the module. The data folder is made at once; `with` runs `etude serve` on it."""

    def __init__(
        self, folder: Path, *, toys: int, steps: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """Set up an installation in `folder/data`, with a lesson and bound toys."""
        self.settings: Settings = load(data=folder / "data")
        self.lesson = SpokenLesson(folder, steps=steps)
        self.count = toys
        self._ports = {name: free_port() for name in ("GATEWAY_PORT", "GATEWAY_HTTP_PORT")}
        self._operator = asyncio.run(self._furnished())
        self.environment = {
            "ETUDE_WEB_PROCESSES": "1",
            "ETUDE_SPEECH_PROCESSES": "1",
            **{f"ETUDE_{name}": str(port) for name, port in self._ports.items()},
            **(environment or {}),
        }
        self.server = self.process("serve")

    @property
    def ota_url(self) -> str:
        """Where devices ask."""
        return f"http://{HOST}:{self._ports['GATEWAY_HTTP_PORT']}/xiaozhi/ota/"

    def process(self, command: str) -> ServerProcess:
        """Return a process of this installation, not started."""
        return ServerProcess(self.settings.data, command=command, environment=self.environment)

    def toys(self) -> list[SpeakingToy]:
        """Return every toy, switched on anew. In the loop they are to live in."""
        return [SpeakingToy(number, self.lesson) for number in range(self.count)]

    def get(self, path: str) -> httpx2.Response:
        """Ask web as an operator."""
        headers = {"Authorization": f"Bearer {self._operator}"}
        return httpx2.get(
            self.server.url + path,
            headers=headers,
            timeout=60.0,
            trust_env=False,
            verify=tls_context(),
        )

    def instances(self) -> Iterator[dict[str, Any]]:
        """Yield what web shows of every task that was done."""
        for number in range(self.count):
            listed = self.get(f"/task/instances?device={device_id(number)}&limit=200").json()
            for head in listed["data"]["items"]:
                yield self.get(f"/task/instance/{head['id']}").json()["data"]

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait until something is so.

        Raises:
            TimeoutError: it never is; the text is what was waited for, and the log.
        """
        until_s = time.monotonic() + ASSESSED_S
        while not done():
            if time.monotonic() > until_s:
                raise TimeoutError(what + "\n" + self.server.log_text()[-20_000:])
            time.sleep(_LOOK_S)

    def all_assessed(self, turns: int) -> bool:
        """Say whether so many turns are there, over, and have metrics of every method."""
        found = list(self.instances())
        each = [turn for one in found for turn in one["turns"]]
        over = all(one["status"] != "running" for one in found)
        return over and len(each) == turns and all(_is_assessed(turn) for turn in each)

    def outcome(self, heard: list[list[str]]) -> Outcome:
        """Return what is there now; reports are waited for."""
        found = list(self.instances())
        reports = {one["id"]: self._report(one["id"]) for one in found}
        counts: Counter[tuple[str, str]] = Counter()
        for one in found:
            text = self.get(f"/api/v1/sessions/{one['id']}/events").text
            for line in filter(None, text.splitlines()):
                event = msgspec.json.decode(line)
                if event["event_type"] == "audio_observation":
                    counts[event["correlation_id"], event["signal"]] += 1
        return Outcome(
            turns=[turn for one in found for turn in one["turns"]],
            heard=heard,
            reports=reports,
            metrics=sorted(set(counts.values())),
        )

    def engines(self, of: str) -> list[int]:
        """Return the processes of the engines of `worker` or `gateway`."""
        pid = self.child(of)
        return [] if pid is None else [one for one in children(pid) if ENGINE in _command(one)]

    def child(self, name: str) -> int | None:
        """Return the process of `etude serve` that has this name; None = it does not run."""
        for pid in children(self.server.pid):
            if f"\0etude\0{name}\0" in _command(pid):
                return pid
        return None

    def _report(self, session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def there() -> bool:
            answer = self.get(f"/api/v1/sessions/{session_id}/report")
            if answer.status_code == httpx2.codes.OK:
                found.update(answer.json())
            return bool(found)

        self.wait(there, f"no report of {session_id}")
        return found

    async def _furnished(self) -> str:
        wish = Wish(operator="operator", password="not a secret", device="unused")  # noqa: S106 - a test's
        await set_up(self.settings, wish, lambda _: None, Files(), SystemClock())
        self.lesson.install(self.settings)
        return await bound(self.settings, [device_id(number) for number in range(self.count)])

    def __enter__(self) -> Self:
        """Run it, until web and gateway answer."""
        self.server.__enter__()
        try:
            self.server.wait_for("gateway.listening")
        except BaseException:
            self.server.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it, in order: engines end with their parents."""
        for pid in (*self.engines("worker"), *self.engines("gateway")):
            os.kill(pid, signal.SIGCONT)  # one that a test has stopped
        if error is None:
            self.server.stop()
        self.server.__exit__(kind, error, trace)


def run(folder: Path, toys: int, steps: int) -> Outcome:
    """Do all of it once."""
    room = SpeakingRoom(folder, toys=toys, steps=steps)
    with room:
        heard = asyncio.run(play(room))
        room.wait(lambda: room.all_assessed(toys * steps), "not everything is assessed")
        return room.outcome(heard)


async def play(room: SpeakingRoom) -> list[list[str]]:
    """Let every toy read its lesson; return which clips each was played."""
    toys = room.toys()
    await practise(toys, room.ota_url)
    return [toy.heard for toy in toys]


def bring_up_loopback() -> None:
    """Bring up `lo`, which is down in a new network namespace (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(any_socket, _SET_FLAGS, request)


def _is_assessed(turn: Mapping[str, Any]) -> bool:
    return any(one["method"] == PRONUNCIATION for one in turn["metrics"])


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and not outlived."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it ended just now
        return ""


def main() -> None:
    """See the module."""
    arguments = sys.argv[1:]
    if arguments[0] == ALONE:
        bring_up_loopback()
        del arguments[0]
    folder, toys, steps = arguments
    outcome = run(Path(folder), int(toys), int(steps))
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")


if __name__ == "__main__":
    main()
