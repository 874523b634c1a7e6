"""What an app declares: its tasks, frozen. Read from files by `app_files`."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from etude.practice.records import LISTEN_RATIO_MIN, Mode

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_-]{1,31}")
"""What an app, task or lesson may be called (`docs/practice.md §Declaring an app`)."""

CARD_TOOLS: Final = ("self.mp3.get_list", "self.mp3.play", "self.mp3.stop")
"""What playing from the card needs; the allow-list of a task that names none."""


class Timing(StrEnum):
    """When an answer is assessed."""

    DEFERRED = "deferred"
    INLINE = "inline"


class Activity(StrEnum):
    """What the learner does in a task."""

    LISTEN = "listen"
    """Hears a file (`PLAY_AUDIO`)."""
    TALK = "talk"
    """Chats, or has something translated."""
    FOLLOW_READ = "follow_read"
    RETELL = "retell"
    """Hears one long clip and tells it again in one window (`docs/rules.md 20`)."""
    CHECK_IN = "check_in"
    """Records in one fixed window, without a clip (`docs/rules.md 20`)."""
    REVERSE_DIGITS = "reverse_digits"
    MENTAL_ARITHMETIC = "mental_arithmetic"
    IDIOM_CHAIN = "idiom_chain"

    @property
    def signal(self) -> str:
        """The `signal` of the events that its turns leave."""
        if self in {Activity.RETELL, Activity.CHECK_IN}:
            return self.value
        return "read_aloud" if self is Activity.FOLLOW_READ else "answer"


ACTIVITIES: Final[Mapping[Mode, tuple[Activity, ...]]] = {
    Mode.CHAT: (Activity.TALK,),
    Mode.TRANSLATE: (Activity.TALK,),
    Mode.PLAY_AUDIO: (Activity.LISTEN,),
    Mode.SHADOWING: (Activity.FOLLOW_READ, Activity.RETELL, Activity.CHECK_IN),
    Mode.INLINE: (Activity.REVERSE_DIGITS, Activity.MENTAL_ARITHMETIC, Activity.IDIOM_CHAIN),
}
"""What each mode can do; the first is meant when a task does not say."""


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Whether, how and when turns are measured. Never what counts as good."""

    enabled: bool = False
    methods: tuple[str, ...] = ()
    timing: Timing = Timing.DEFERRED

    def told(self) -> dict[str, Any]:
        """Return what `session_start` tells those who measure; the rest is for the runtime."""
        return {"enabled": self.enabled, "methods": list(self.methods)}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One activity of an app.

    Attributes:
        language: of phrases, prompts and material, `en` or `zh-CN`.
        enter_prompt: shown when the task starts.
        entry_phrases: what a learner says to start it.
        exit_phrases: what a learner says to leave it.
        tools: the device's tools that may be called while it runs, as the device names them.
        rubric: `{id, version}`, what its sessions are examined by; None = by the task's id
            (`docs/rules.md 3`).
        transcripts: what is read, by the clip's file name or its stem.
        sentences: what is read, by the clips' order.
        repeat: how often a file is played (`PLAY_AUDIO`).
        window_ms: a fixed window; None = `listen_ratio` times the clip.
        rounds: how many questions are asked (`INLINE`).
    """

    app_id: str
    task_id: str
    mode: Mode
    activity: Activity
    title: str = ""
    language: str = "en"
    enter_prompt: str = ""
    entry_phrases: tuple[str, ...] = ()
    exit_phrases: tuple[str, ...] = ()
    tools: tuple[str, ...] = CARD_TOOLS
    listen_ratio: float = LISTEN_RATIO_MIN
    assessment: Assessment = Assessment()
    rubric: Mapping[str, str] | None = None
    transcripts: Mapping[str, str] = {}
    sentences: tuple[str, ...] = ()
    repeat: int = 1
    window_ms: int | None = None
    rounds: int = 5

    @property
    def address(self) -> tuple[str, str]:
        """Its app's id and its own."""
        return self.app_id, self.task_id

    @property
    def needs_card(self) -> bool:
        """Whether it has a folder of lessons on a card."""
        return self.activity in {Activity.LISTEN, Activity.FOLLOW_READ, Activity.RETELL}

    @property
    def repeats_files(self) -> bool:
        """Whether it plays single files, of lessons or not (the repeater)."""
        return self.activity is Activity.LISTEN

    def allows(self, tool: str) -> bool:
        """Whether a tool may be called while the task runs; `_` may stand for `.`."""
        return tool.replace(".", "_") in {name.replace(".", "_") for name in self.tools}


class App(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of tasks with its own tree of lessons.

    `assignment_phrases` are what a learner says to start whatever was assigned, of any app.
    """

    app_id: str
    title: str
    tasks: Mapping[str, Task]
    assignment_phrases: tuple[str, ...] = ()
