"""The protocol's session, played through the session writer."""

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.edge.reader import JournalFolder
from etude.events.model import Event
from etude.testing.replay import replay, sample_events
from etude.testing.waiting import run_bounded

STARTED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def plain(event: Event) -> dict[str, Any]:
    """Return the event's fields without what only our recorder writes, and how it was spelt."""
    fields = msgspec.structs.asdict(event)
    meta = {key: value for key, value in (event.meta or {}).items() if key != "started_at"}
    spelling = {"seq", "sent_keys", "duplicate_keys"}
    return {name: fields[name] for name in fields if name not in spelling} | {"meta": meta or None}


def played(root: Path) -> list[Event]:
    return list(JournalFolder(root / sample_events()[0].session_id).events())


def test_the_writer_makes_the_protocols_own_events(tmp_path: Path) -> None:
    """Field by field what the protocol prints, plus `seq` and the device's wall-clock time."""
    replay(tmp_path, STARTED_AT)
    events = played(tmp_path)
    assert [plain(event) for event in events] == [plain(event) for event in sample_events()]
    assert [event.seq for event in events] == list(range(1, 14))
    assert (events[0].meta or {})["started_at"] == STARTED_AT.isoformat()


@pytest.mark.parametrize("crash", ["written:1", "appended:5", "written:13", "before_seal:1"])
def test_a_killed_player_goes_on_where_it_was(tmp_path: Path, crash: str) -> None:
    """Killed for real and called again, the journal is the same as without the kill."""
    command = [sys.executable, "-m", "etude.testing.replay", tmp_path, STARTED_AT.isoformat()]
    environment = os.environ | {"ETUDE_CRASH_AT": f"edge.journal.{crash}"}
    killed = run_bounded(command, env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    replay(tmp_path, STARTED_AT)
    assert [plain(event) for event in played(tmp_path)] == [plain(e) for e in sample_events()]
