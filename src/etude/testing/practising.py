"""Practice sessions for tests of the recorder: what a follow-read says, step by step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.edge import layout
from etude.edge.reader import JournalFolder
from etude.events.model import Event
from etude.practice.recorder import Recorder, Recording
from etude.practice.records import Mode, SessionStart, Turn
from etude.practice.unfinished import find_unfinished

SIGNAL: Final = "read_aloud"


def session_of(device_id: str = "toy-1", **others: Any) -> SessionStart:  # noqa: ANN401 - any field
    """Return what is known when a device starts to follow-read."""
    start = SessionStart(
        device_id=device_id,
        app_id="reading",
        task_id="aloud",
        mode=Mode.SHADOWING,
        lesson_id="l-1",
        clip_count=3,
        backend="stream",
        listen_ratio=1.2,
    )
    return msgspec.structs.replace(start, **others)


def packets_of(device_id: str, step: int, count: int = 3) -> tuple[bytes, ...]:
    """Return packets that no other device and step has; by their form they are Opus of 60 ms."""
    return tuple(b"\x58" + f"{device_id}/{step}/{number}".encode() for number in range(count))


def turn_of(step: int, packets: Sequence[bytes] = (), asr_text: str | None = None) -> Turn:
    """Return the turn of a step."""
    return Turn(
        step_index=step,
        prompt_text=f"/reading/aloud/lessons/l-1/{step + 1:02}.mp3",
        expected_text=f"text {step}",
        asr_text=asr_text,
        heard=bool(packets),
        packets=tuple(packets),
        duration_ms=1000,
        window_ms=1200,
    )


def play_step(recording: Recording, step: int, packets: Sequence[bytes] = ()) -> None:
    """Say all that one step says."""
    turn = turn_of(step, packets)
    recording.asked(step, SIGNAL, turn.prompt_text, turn.expected_text)
    recording.window_closed(step, SIGNAL, turn.window_ms, turn.heard)
    recording.turn(turn, SIGNAL)


def taken_up(recorder: Recorder, root: Path) -> Recorder:
    """Do what `start` does, without its thread: `drained` is called instead."""
    for found in find_unfinished(root):
        recorder._take_up(found)  # noqa: SLF001 - the thread is what a test does not want
    return recorder


def drained(recorder: Recorder) -> None:
    """Write everything that can be written now, in this thread."""
    recorder._queue.drain()  # noqa: SLF001 - see `taken_up`


def events_of(root: Path, session_id: str) -> list[Event]:
    """Return what stands in a session's journal."""
    return list(JournalFolder(root / layout.folder_name(session_id)).events())


def turns_of(events: Sequence[Event]) -> list[int]:
    """Return the step of each turn, as often as it was written."""
    return [one.value["step_index"] for one in events if one.event_type == "signal_observation"]
