"""The nouns of the practice runtime. Frozen; times in milliseconds unless a name says otherwise."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.speech.clips import EncodedClip

WINDOW_MIN_MS: Final = 800
"""The shortest window, whatever the clip (`docs/rules.md 15`)."""
LISTEN_RATIO_MIN: Final = 1.2
LISTEN_RATIO_MAX: Final = 1.5
LONGEST_CLIP_MS: Final = 600_000


class Mode(StrEnum):
    """How a connection interacts (`docs/practice.md §Declaring an app`)."""

    CHAT = "CHAT"
    PLAY_AUDIO = "PLAY_AUDIO"
    SHADOWING = "SHADOWING"
    TRANSLATE = "TRANSLATE"
    INLINE = "INLINE"


class EndReason(StrEnum):
    """Why a task ended (`docs/rules.md 18`)."""

    PLAY_COMPLETED = "play_completed"
    PLAY_STOPPED = "play_stopped"
    LIST_COMPLETED = "list_completed"
    EXIT_PHRASE = "exit_phrase"
    PREEMPTED = "preempted"
    DISCONNECTED = "disconnected"
    ERROR = "error"

    @property
    def completed(self) -> bool:
        """Whether the instance counts as `completed`; otherwise it is `cancelled`."""
        return self in {EndReason.PLAY_COMPLETED, EndReason.LIST_COMPLETED}


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """One clip of a lesson.

    Attributes:
        name: its file name, `01.mp3`; the order of a lesson is the byte order of names.
        path: where it is on the card: `/{app_id}/{task_id}/lessons/{lesson_id}/01.mp3`.
        expected_text: what is read in it, from the lesson's own texts; None = unknown.
        duration_ms: of the file; None = not measured (only on the card).
        file: the server's own copy, None if it has none.
    """

    name: str
    path: str
    expected_text: str | None = None
    duration_ms: int | None = None
    file: Path | None = None


class Lesson(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A folder of clips, whole and in order."""

    app_id: str
    task_id: str
    lesson_id: str
    clips: tuple[Clip, ...]
    listen_ratio: float | None = None
    """From an assignment, or the lesson's own; None = the task's."""
    title: str | None = None
    """For people; None = its id is all there is."""
    rubric: Mapping[str, str] | None = None
    """`{id, version, digest}` of the rubric that came with it; None = the task's."""
    courseware: Mapping[str, Any] | None = None
    """The published scene that it is, for `session_start`."""


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a task starts; becomes `session_start`."""

    device_id: str
    app_id: str
    task_id: str
    mode: Mode
    lesson_id: str | None = None
    lesson_title: str | None = None
    clip_count: int | None = None
    backend: str | None = None
    """`sd` or `stream`."""
    listen_ratio: float | None = None
    rubric: Mapping[str, str] | None = None
    """`{id, version}`, of an embedded one also `digest`; for `meta.rubric`."""
    assignment_id: str | None = None
    courseware: Mapping[str, Any] | None = None
    assessment: Mapping[str, Any] | None = None
    """`{enabled, methods}` of the task, for `meta.assessment`."""
    resumes: str | None = None
    """The session that this one continues on another gateway (`docs/rules.md 44`)."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One step's window, written when it has closed (`docs/task-instances.md §Reading`).

    Attributes:
        step_index: from 0.
        prompt_text: the clip's path; compared with nothing.
        expected_text: what was to be said, None = unknown.
        asr_text: what was recognised, None = nothing.
        heard: whether voice came in the window.
        packets: the Opus packets of the window and its grace, in order of arrival.
        duration_ms: of the clip, as reported or measured.
        window_ms: how long the window was open.
        detail: of an inline task: question, answer, `exact_match_v1`.
    """

    step_index: int
    prompt_text: str
    expected_text: str | None
    asr_text: str | None
    heard: bool
    packets: tuple[bytes, ...]
    duration_ms: int
    window_ms: int
    detail: Mapping[str, Any] | None = None


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A session without an end, found on the disk or kept after a disconnect."""

    session_id: str
    start: SessionStart
    next_step: int
    """The first step without a turn: where a resume begins."""
    disconnected_at_s: float
    """Wall-clock seconds since 1970 when it was last known alive."""


class Prompt(StrEnum):
    """The short spoken clips of the repository's own making (`docs/rules.md 48`)."""

    GREETING = "greeting"
    FIXED_ANSWER = "fixed_answer"
    NO_LESSON = "no_lesson"
    RIGHT_ANSWER = "right_answer"
    """Inline tasks only."""
    OTHER_ANSWER = "other_answer"
    """Inline tasks only: the answer is another one, and the display shows it."""


class EncodedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt in one language, ready to be sent."""

    prompt: Prompt
    text: str
    clip: EncodedClip
