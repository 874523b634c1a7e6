"""Scenarios: a device, a learner, what goes wrong, what must be seen and when, what must never be.

One YAML file each (`docs/simulator.md`). `claim` says in a sentence what holds if it passes.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import msgspec

from etude import documents
from etude.documents import Document, Mistake
from etude.gateway.ports import ListenMode
from etude.testing.learners_acting import SCRIPTS, Part

SUFFIX: Final = ".yaml"
APP_ID: Final = "simulated"
TASK_ID: Final = "reading"
LESSON_ID: Final = "unit-1"
ENTRY: Final = "start reading"
EXIT: Final = "stop reading"


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What kind of device it is.

    Attributes:
        card: SD firmware: the lesson is on its card, and it plays it.
        protocol: the layout of binary frames.
        listen: how its microphone streams.
        drains: plays out its queue before it listens again (firmware since 2.2).
        microphone_beside_card: streams while its card plays.
        card_broken: the card takes no new folder.
        card_mute: the card plays, but no event tells the end.
    """

    card: bool = False
    protocol: Literal[1, 2, 3] = 1
    listen: ListenMode = ListenMode.AUTO
    drains: bool = True
    microphone_beside_card: bool = False
    card_broken: bool = False
    card_mute: bool = False


class Spoken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One clip of the lesson: what is read in it, and how long it is."""

    text: str
    ms: int


Deed = Literal[
    "say", "abort", "wake", "detect", "leave", "freeze", "return", "send", "start_task", "hush"
]


class Happening(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happens once, a while after the timeline shows `when`.

    Attributes:
        when: `clip 02.mp3`: what and, if it has one, the detail of an entry of the timeline.
        nth: the first time, the second time …
        after_ms: so long after.
        do: what; `return` connects again, `send` sends `text` as it is.
        text: what is said, detected or sent.
        lasts_ms: of speech.
    """

    when: str
    do: Deed
    nth: int = 1
    after_ms: int = 0
    text: str = ""
    lasts_ms: int = 600


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The next entry of the timeline of this kind, and how long after the one before (ms)."""

    see: str
    within_ms: tuple[int, int] = (0, 60_000)


class Gateway(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wrong around the practice.

    Attributes:
        recogniser: `right` hears every learner correctly, `raises` always fails, `none` is there.
        disk: `slow` takes its time for every write, `full` takes none.
        web: `away`: nobody answers where records are uploaded to.
    """

    recogniser: Literal["right", "raises", "none"] = "right"
    disk: Literal["good", "slow", "full"] = "good"
    web: Literal["unused", "away"] = "unused"


class Recorded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the journal of the first session must hold.

    Attributes:
        end: the reason of its end.
        heard: of each turn, whether voice came.
        said: of each turn, the recognised text, null = none.
        sessions: how many there are in all.
    """

    end: str | None = None
    heard: tuple[bool, ...] | None = None
    said: tuple[str | None, ...] | None = None
    sessions: int = 1


Never = Literal[
    "clip_twice",
    "clip_missing",
    "verdict",
    "greeting",
    "greeting_twice",
    "connection_lost",
    "turn_twice",
    "frames_lost",
    "sound_after_end",
]


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario. See the module."""

    claim: str
    lesson: tuple[Spoken, ...]
    device: Kind = Kind()
    learner: str = "perfect"
    mode: Literal["SHADOWING", "PLAY_AUDIO"] = "SHADOWING"
    start: str = f"[voice_entry]{ENTRY}"
    gateway: Gateway = Gateway()
    happenings: tuple[Happening, ...] = ()
    expect: tuple[Expected, ...]
    must_not: tuple[Never, ...] = ("clip_twice", "verdict", "greeting_twice", "turn_twice")
    watch_ms: int = 3_000
    """How long it is looked on after the last expected entry."""
    record: Recorded = Recorded()

    def parts(self) -> tuple[Part, ...]:
        """Return the lesson as a learner knows it."""
        return tuple(
            Part(name=f"{number:02}.mp3", text=one.text, lasts_ms=one.ms)
            for number, one in enumerate(self.lesson, 1)
        )


def read_scenario(text: str, file: str) -> Scenario:
    """Read one scenario.

    Raises:
        DocumentInvalidError: with every mistake and its line.
    """
    return documents.load(text, Scenario, file=file, rules=_rules)


def shipped() -> Iterator[tuple[str, str]]:
    """Yield name and text of every scenario of the package, by name."""
    folder = files(__name__)
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(SUFFIX):
            yield entry.name.removesuffix(SUFFIX), entry.read_text("utf-8")


def load_scenario(name: str) -> Scenario:
    """Read a scenario by its file or, without a suffix, by the name of a shipped one.

    Raises:
        DocumentInvalidError: with every mistake and its line.
        FileNotFoundError: there is no such file or name.
    """
    if name.endswith(SUFFIX):
        return read_scenario(Path(name).read_text("utf-8"), name)
    for known, text in shipped():
        if known == name:
            return read_scenario(text, known + SUFFIX)
    raise FileNotFoundError(name)


def _rules(document: Document, scenario: Scenario) -> Iterator[Mistake]:
    if scenario.learner not in SCRIPTS:
        yield document.mistake(("learner",), "not_one_of", known=", ".join(SCRIPTS))
