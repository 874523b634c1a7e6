"""What a gateway records about a lesson, uploaded: both sides agree on the events."""

from pathlib import Path
from typing import Any

import msgspec

from etude.edge.journal import Journal
from etude.edge.session_writer import SessionWriter
from etude.practice import session_events
from etude.practice.records import EndReason, Mode, SessionStart, Turn
from etude.sessions import instances, repository
from etude.sessions.turns import TaskInstance
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.school import School

START = SessionStart(
    device_id="toy-1",
    app_id="reading",
    task_id="follow",
    mode=Mode.SHADOWING,
    lesson_id="01",
    clip_count=2,
    backend="stream",
    listen_ratio=1.2,
)


def said(step: int, text: str | None, detail: dict[str, Any] | None = None) -> Turn:
    return Turn(
        step_index=step,
        prompt_text=f"/reading/follow/lessons/01/{step:02}.mp3",
        expected_text="a red ball",
        asr_text=text,
        heard=text is not None,
        packets=(),
        duration_ms=3000,
        window_ms=3600,
        detail=detail,
    )


def recorded(root: Path, *turns: Turn) -> bytes:
    """The journal of a lesson with these turns, of which the first was interrupted."""
    clock = ManualClock()
    writer = SessionWriter.open(Journal.open(root, "s1"), clock=clock, ids=CountingIds())
    writer.begin(session_events.start_value(START), session_events.start_meta(START))
    writer.transition("operation", source="ai_detected")
    writer.observe(session_events.connection("connection_lost", 0))
    writer.observe(session_events.connection("connection_resumed", 0))
    for turn in turns:
        step, signal = turn.step_index, "read_aloud"
        clock.advance(6)
        asked = (turn.prompt_text, turn.expected_text)
        writer.observe(session_events.asked("s1", step, signal, *asked))
        closed = session_events.window_closed("s1", step, signal, 3600, heard=turn.heard)
        writer.observe(closed)
        kept = session_events.Kept(sha256="ab" * 32, duration_ms=900) if turn.heard else None
        writer.observe(session_events.turn_seen("s1", turn, signal, kept, None))
    writer.transition("cleanup", source="ai_detected")
    writer.end(session_events.end_value(EndReason.LIST_COMPLETED))
    (journal,) = root.glob("*/events.jsonl")
    return journal.read_bytes()


def uploaded(school: School, content: bytes) -> TaskInstance:
    lines = content.splitlines(keepends=True)
    for part in (lines[3:], lines[:5]):  # in parts that overlap, the later one first
        school.upload(school.device("toy-1"), "s1", b"".join(part))

    async def load() -> Any:
        async with school.database.read() as connection:
            record = await repository.find(connection, "s1")
            assert record is not None
            return await instances.load(connection, record)

    folded = school.run(load())
    assert folded is not None
    instance: TaskInstance = folded.instance
    return instance


def test_what_a_gateway_records_is_shown_turn_by_turn(school: School, tmp_path: Path) -> None:
    """Every field of a turn arrives, silence too, however the upload was cut."""
    instance = uploaded(school, recorded(tmp_path, said(0, "a red bowl"), said(1, None)))
    assert (instance.app_id, instance.task_id, instance.mode) == ("reading", "follow", "SHADOWING")
    assert (instance.status, instance.end_reason) == ("completed", "list_completed")
    assert (instance.device_id, instance.learner_id) == ("toy-1", "anna")
    assert instance.disconnected_at is None
    assert instance.ended_at == instance.started_at + 12_000
    first, second = instance.turns
    assert msgspec.structs.asdict(first) == {
        "step_index": 0,
        "prompt_text": "/reading/follow/lessons/01/00.mp3",
        "expected_text": "a red ball",
        "asr_text": "a red bowl",
        "audio_id": "ab" * 32,
        "duration_ms": 3000,
        "window_ms": 3600,
        "metrics": (),
        "assessed_at": None,
    }
    assert (second.step_index, second.asr_text, second.audio_id) == (1, None, None)
    assert [each["type"] for each in instance.events] == [
        "phase_transition",
        "connection_lost",
        "connection_resumed",
        "phase_transition",
    ]


def test_an_inline_task_has_its_one_metric(school: School, tmp_path: Path) -> None:
    """What was right or wrong of an inline answer is `exact_match_v1`, and no verdict."""
    detail = {"question": "12", "answer": "21", "exact_match_v1": 0}
    (turn,) = uploaded(school, recorded(tmp_path, said(0, "12", detail))).turns
    assert [(each.method, each.value) for each in turn.metrics] == [("exact_match_v1", 0)]
