"""Tells the texts of `listen/detect` apart (`docs/gateway.md §What a device says`).

The order matters: `[skill_event]`, `[app_task]`, `[voice_entry]`, only then a wake word.
A text that begins with one of the marks but cannot be read is nothing at all: it must not reach
recognition or chat, and must not count as somebody's words.
"""

from typing import Final

from etude.gateway.ports import AppTask, Detected, SkillEnd, SkillEvent, VoiceEntry, WakeWord

LONGEST_DURATION_MS: Final = 600_000
LONGEST_TEXT: Final = 2_000
"""Characters of a detected text that are looked at; whoever types more gets the start."""

_SKILL_EVENT: Final = "[skill_event]"
_APP_TASK: Final = "[app_task]"
_VOICE_ENTRY: Final = "[voice_entry]"


def tell_apart(text: str) -> Detected | None:
    """Return what a device's text is; None = nothing that can be read."""
    text = text[:LONGEST_TEXT].strip()
    if text.startswith(_SKILL_EVENT):
        return _skill_event(text.removeprefix(_SKILL_EVENT))
    if text.startswith(_APP_TASK):
        name, *arguments = _fields(text.removeprefix(_APP_TASK))
        return AppTask(name=name, arguments=tuple(arguments)) if name else None
    if text.startswith(_VOICE_ENTRY):
        said = text.removeprefix(_VOICE_ENTRY).strip()
        return VoiceEntry(text=said) if said else None
    return WakeWord(text=text)


def _skill_event(rest: str) -> SkillEvent | None:
    end, app_id, task_id, duration, *_ = (*_fields(rest), "", "", "")
    if end not in set(SkillEnd) or not app_id or not task_id:
        return None
    return SkillEvent(
        end=SkillEnd(end), app_id=app_id, task_id=task_id, duration_ms=_duration_ms(duration)
    )


def _fields(rest: str) -> list[str]:
    return [field.strip() for field in rest.split("|")]


def _duration_ms(field: str) -> int | None:
    """Return a usable duration, or None (`docs/rules.md 15`)."""
    if not (field.isascii() and field.isdigit() and len(field) <= len(str(LONGEST_DURATION_MS))):
        return None
    duration_ms = int(field)
    return duration_ms if 0 < duration_ms <= LONGEST_DURATION_MS else None
