import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.detect import tell_apart
from etude.gateway.ports import AppTask, SkillEnd, SkillEvent, VoiceEntry, WakeWord


def completed(duration_ms: int | None, end: SkillEnd = SkillEnd.COMPLETED) -> SkillEvent:
    return SkillEvent(
        end=end, app_id="english_learning", task_id="shadowing", duration_ms=duration_ms
    )


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("[skill_event]audio.completed|english_learning|shadowing|2350", completed(2350)),
        ("  [skill_event] audio.completed | english_learning | shadowing | 2350 ", completed(2350)),
        ("[skill_event]audio.completed|english_learning|shadowing", completed(None)),
        ("[skill_event]audio.completed|english_learning|shadowing|", completed(None)),
        ("[skill_event]audio.completed|english_learning|shadowing|1|more", completed(1)),
        (
            "[skill_event]audio.stopped|english_learning|shadowing|7",
            completed(7, SkillEnd.STOPPED),
        ),
        ("[skill_event]audio.completed|english_learning|shadowing|600000", completed(600_000)),
    ],
)
def test_a_skill_event_is_read(text: str, event: SkillEvent) -> None:
    """End, app, task and, where usable, the duration."""
    assert tell_apart(text) == event


@pytest.mark.parametrize("field", ["0", "-5", "600001", "2.5", "abc", "9" * 5000, "²", "٣", "1e3"])
def test_an_unusable_duration_is_none(field: str) -> None:
    """Missing, not a number, not in 1 to 600,000: the length is measured instead."""
    assert tell_apart(f"[skill_event]audio.completed|english_learning|shadowing|{field}") == (
        completed(None)
    )


@pytest.mark.parametrize(
    "text",
    [
        "[skill_event]",
        "[skill_event]audio.paused|a|b|1",
        "[skill_event]audio.completed",
        "[skill_event]audio.completed||b|1",
        "[skill_event]audio.completed|a||1",
        "[app_task]",
        "[app_task]|x",
        "[voice_entry]  ",
    ],
)
def test_a_mark_without_sense_is_nothing(text: str) -> None:
    """It never falls through to chat or counts as a wake word."""
    assert tell_apart(text) is None


def test_an_app_task_has_a_name_and_arguments() -> None:
    """Fields are split by bars."""
    assert tell_apart("[app_task]chat") == AppTask(name="chat", arguments=())
    assert tell_apart("[app_task]shadowing| a |b") == AppTask(
        name="shadowing", arguments=("a", "b")
    )


def test_a_voice_entry_is_its_text() -> None:
    """Bars belong to it."""
    assert tell_apart("[voice_entry] 开始|跟读 ") == VoiceEntry(text="开始|跟读")


def test_skill_events_come_first() -> None:
    """The first mark decides, whatever follows."""
    nested = "[skill_event]audio.stopped|[app_task]x|[voice_entry]y"
    assert isinstance(tell_apart(nested), SkillEvent)
    assert isinstance(tell_apart("[app_task][skill_event]audio.stopped|a|b"), AppTask)


@given(st.text())
def test_any_text_is_something_or_nothing(text: str) -> None:
    """No text raises; without a mark it is a wake word."""
    found = tell_apart(text)
    if not text.strip().startswith(("[skill_event]", "[app_task]", "[voice_entry]")):
        assert found == WakeWord(text=text[:2000].strip())
