"""A recorder in a process of its own, which a test can kill: `recorder_process ROOT SEED`.

Devices practise without pause, some leave and come back. Whenever the disk has taken a line, its
event id goes into `ROOT/../acknowledged`: what stands there must be there after a kill.
"""

import os
import random
import sys
from pathlib import Path
from typing import Final

import msgspec

from etude.clock import RandomIds, SystemClock
from etude.files import AppendFile, Files, arm_from_environment
from etude.practice.recorder import Recorder, Recording
from etude.practice.records import EndReason
from etude.testing.practising import packets_of, play_step, session_of

DEVICES: Final = 4
STEPS: Final = 5
PACKETS: Final = 10
"""Less than a second, so that they stand in one page of the file, one behind the other."""
ACKNOWLEDGED: Final = "acknowledged"
_ROUNDS: Final = 400


class _Telling(AppendFile):
    """An append-only file that notes the id of each event once the system has its line."""

    def __init__(self, opened: AppendFile, told: int) -> None:
        super().__init__(opened.path, opened.fileno())
        self._told = told

    def write(self, data: bytes) -> int:
        taken = super().write(data)
        if self.path.name == "events.jsonl" and taken == len(data):
            event_id = msgspec.json.decode(data)["event_id"]
            os.write(self._told, f"{self.path.parent.name} {event_id}\n".encode())
        return taken


class _TellingFiles(Files):
    def __init__(self, told: Path) -> None:
        self._told = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        return _Telling(super().open_append(path, mode), self._told)


class _Toy:
    """A device that practises one step after the other, over and over."""

    def __init__(self, recorder: Recorder, device_id: str, chance: random.Random) -> None:
        self._recorder = recorder
        self._device_id = device_id
        self._chance = chance
        self._recording: Recording | None = None
        self._step = 0

    def go_on(self) -> None:
        if self._recording is None:
            self._recording, self._step = self._connect()
        play_step(self._recording, self._step, packets_of(self._device_id, self._step, PACKETS))
        self._step += 1
        if self._step == STEPS:
            self._recording.end(EndReason.LIST_COMPLETED)
            self._recording = None
        elif self._chance.random() < 0.2:  # noqa: PLR2004 - now and then
            self._recording.disconnected(self._step)
            self._recording = None

    def _connect(self) -> tuple[Recording, int]:
        found = self._recorder.unfinished(self._device_id)
        if found:
            return self._recorder.resume(found), found.next_step
        return self._recorder.begin(session_of(self._device_id)), 0


def finish(recorder: Recorder) -> int:
    """Let every device that was in the middle of a session practise to its end; count them."""
    went_on = 0
    for number in range(DEVICES):
        device_id = f"toy-{number}"
        while found := recorder.unfinished(device_id):
            went_on += 1
            recording = recorder.resume(found)
            for step in range(found.next_step, STEPS):
                play_step(recording, step, packets_of(device_id, step, PACKETS))
            recording.end(EndReason.LIST_COMPLETED)
    return went_on


def main() -> None:
    """Practise; `ETUDE_CRASH_AT` names where to end before the end."""
    arm_from_environment()
    root, seed = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(seed)  # noqa: S311 - seeded, so that a failure repeats
    files = _TellingFiles(root.parent / ACKNOWLEDGED)
    recorder = Recorder(root, clock=SystemClock(), ids=RandomIds(), files=files)
    recorder.start()
    toys = [_Toy(recorder, f"toy-{number}", chance) for number in range(DEVICES)]
    for _ in range(_ROUNDS):
        chance.choice(toys).go_on()
    recorder.close()


if __name__ == "__main__":
    main()
