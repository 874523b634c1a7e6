"""The gateway's memory of commands outlives the process, torn lines included."""

import asyncio
from pathlib import Path

import pytest

from etude.gateway.command_ledger import KEPT_S, CommandLedger
from etude.gateway.link_messages import Answer

DONE = Answer(msg_id="m", outcome="done")
NOW_S = 1_800_000_000.0


def _ledger(path: Path, now_s: float = NOW_S) -> CommandLedger:
    ledger = CommandLedger(path)
    ledger.open(now_s)
    return ledger


def test_what_was_noted_is_found_by_the_next_process(tmp_path: Path) -> None:
    """Begun, answered and given up are told apart."""
    path = tmp_path / "deep" / "commands.jsonl"
    ledger = _ledger(path)

    async def note() -> None:
        for msg_id in ("begun", "done", "lost"):
            await ledger.begin(msg_id, NOW_S)
        await ledger.answer("done", DONE, NOW_S)
        await ledger.answer("lost", Answer(msg_id="lost", outcome="timeout"), NOW_S)

    asyncio.run(note())
    ledger.close()
    again = _ledger(path)
    found = {name: again.find(name) for name in ("begun", "done", "lost", "never")}
    again.close()
    assert [entry and entry.step for entry in found.values()] == ["begun", "answered", "open", None]
    assert found["done"] is not None
    assert found["done"].answer == DONE


@pytest.mark.parametrize("tail", [b'{"msg_id":"x","at', b"\xff\xfe\n", b"null\n", b"\n\n"])
def test_a_torn_tail_costs_only_itself(tmp_path: Path, tail: bytes) -> None:
    """A process killed while it wrote leaves half a line; what came before is whole."""
    path = tmp_path / "commands.jsonl"
    ledger = _ledger(path)
    asyncio.run(ledger.begin("first", NOW_S))
    ledger.close()
    with path.open("ab") as file:
        file.write(tail)
    ledger = _ledger(path)
    asyncio.run(ledger.begin("second", NOW_S))
    ledger.close()
    again = _ledger(path)
    assert again.find("first") is not None
    assert again.find("second") is not None
    again.close()


def test_what_no_command_can_ask_for_any_more_is_forgotten(tmp_path: Path) -> None:
    """An hour behind the longest time of a command."""
    path = tmp_path / "commands.jsonl"
    ledger = _ledger(path)
    asyncio.run(ledger.begin("old", NOW_S))
    ledger.close()
    again = _ledger(path, NOW_S + KEPT_S + 1)
    assert again.find("old") is None
    again.close()
    assert path.read_bytes() == b""
