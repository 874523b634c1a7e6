"""Makes the running task of a connection from what was found for it."""

import random
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from etude.gateway.ports import Device
from etude.practice.apps import Apps
from etude.practice.assigned import Assigned
from etude.practice.chat import Talk
from etude.practice.conversation import AskFor
from etude.practice.ear import Ear
from etude.practice.evidence import Evidence
from etude.practice.follow_read import FollowRead, Plan, Step, resolve_listen_ratio
from etude.practice.inline import Inline
from etude.practice.lessons import Lessons
from etude.practice.live_speech import LiveSpeech
from etude.practice.players import CardPlayer, Player, StreamPlayer
from etude.practice.preparation import Prepared, Wish, clip_named
from etude.practice.recorder import Recorder, Recording
from etude.practice.records import Clip, EndReason, Mode, SessionStart, Unfinished
from etude.practice.repeater import Repeater
from etude.practice.speaking import Prompts, Speaker
from etude.practice.supplies import Supplies
from etude.practice.tasks import Activity, Task

_log = structlog.get_logger(__name__)

Finished = Callable[[EndReason], None]


class Running(Protocol):
    """A task that runs on a connection."""

    def begin(self) -> None:
        """Begin."""

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """A packet of the microphone has arrived."""

    def recognised(self, text: str, at_s: float) -> None:
        """Something was said at `at_s` that is no exit phrase."""

    def listen_stopped(self) -> None:
        """The device has stopped its microphone."""

    def aborted(self) -> None:
        """The learner asked for silence."""

    def leave(self, reason: EndReason) -> None:
        """End at once."""

    def disconnect(self) -> None:
        """The connection is gone."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What every connection of a gateway shares; lives as long as the process.

    Attributes:
        locale: of what is said outside tasks.
        speech: hears and speaks; None = the device's own texts only, and clips.
        ask: the model that answers in chat and translation; None = the short fixed answer.
        supplies: what comes from web; None = nothing does.
        learner_of: the key of whoever holds a device, None = unknown.
        assignment_of: what is to be practised on a device now, None = nothing was assigned.
        chance: for the questions of inline tasks.
        stepped: told when a follow-read's next clip has been sent, with the time it was due at.
        last_played: what the repeater played last, by device.
    """

    apps: Apps
    lessons: Lessons
    recorder: Recorder
    prompts: Prompts
    locale: str
    learner_of: Callable[[str], int | None]
    assignment_of: Callable[[str], Assigned | None]
    chance: random.Random
    stepped: Callable[[float], None] = lambda _: None
    speech: LiveSpeech | None = None
    ask: AskFor | None = None
    supplies: Supplies | None = None
    last_played: dict[str, Clip] = msgspec.field(default_factory=dict)


class Request(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A task that is to run: what was wished, what was found, and what it goes on with."""

    task: Task
    wish: Wish
    prepared: Prepared | None
    unfinished: Unfinished | None

    @property
    def first(self) -> int:
        """The step it begins with."""
        return self.unfinished.next_step if self.unfinished else 0


class TaskMaker:
    """Makes tasks for one connection."""

    def __init__(
        self,
        device: Device,
        room: Room,
        speaker: Speaker,
        ear: Ear,
        *,
        card: CardPlayer,
        stream: StreamPlayer,
    ) -> None:
        """They use the connection's own voice, ear and players."""
        self._device = device
        self._room = room
        self._speaker = speaker
        self._ear = ear
        self._card = card
        self._stream = stream

    def make(self, request: Request, finished: Finished) -> Running:
        """Return the task, not yet begun. What it leaves is recorded, if its kind is."""
        task = request.task
        if task.mode is Mode.SHADOWING:
            return self._follow_read(request, finished)
        if task.mode is Mode.INLINE:
            return self._inline(request, finished)
        if request.prepared is not None:
            return self._repeater(task, request.wish, request.prepared, finished)
        return self.talk(task.language, finished)

    def talk(self, locale: str, finished: Finished | None = None) -> Talk:
        """Return chat, or with `finished` the task that translates."""
        ask = self._room.ask(self._device.device_id) if self._room.ask else None
        has_ear = self._ear.works
        return Talk(self._speaker, locale, finished, ask=ask, has_ear=has_ear)

    def _follow_read(self, request: Request, finished: Finished) -> FollowRead:
        task, lesson = request.task, request.prepared.lesson if request.prepared else None
        steps = steps_of(task, lesson.clips) if lesson else (Step(clip=None, expected_text=None),)
        ratio = lesson.listen_ratio if lesson else None
        if ratio is None:
            learner_key = self._room.learner_of(self._device.device_id)
            ratio = resolve_listen_ratio(learner_key, task)
        player = self._player(request.prepared)
        start = self._start(request)
        if lesson is not None:
            start = msgspec.structs.replace(
                start,
                lesson_id=lesson.lesson_id,
                lesson_title=lesson.title,
                rubric=lesson.rubric or start.rubric,
                courseware=lesson.courseware,
                clip_count=len(steps),
                backend=player.backend,
                listen_ratio=ratio,
            )
        elif self._device.listening is None:
            self._device.reopen_microphone()
        plan = Plan(task=task, steps=steps, ratio=ratio, first=request.first)
        evidence = self._evidence(request, start)
        return FollowRead(
            plan, player, evidence, finished, self._room.stepped, bounded=self._ear.cut
        )

    def _inline(self, request: Request, finished: Finished) -> Inline:
        return Inline(
            request.task,
            self._device,
            self._speaker,
            self._evidence(request, self._start(request)),
            self._room.chance,
            finished,
            first=request.first,
            bounded=self._ear.cut,
        )

    def _repeater(self, task: Task, wish: Wish, prepared: Prepared, finished: Finished) -> Repeater:
        clips = prepared.lesson.clips
        clip = clip_named(clips, wish.lesson_id) or clips[0]
        self._room.last_played[self._device.device_id] = clip
        repeat = wish.repeat or task.repeat
        return Repeater(task, clip, repeat, self._player(prepared), finished)

    def _player(self, prepared: Prepared | None) -> Player:
        return self._card if prepared and prepared.on_card else self._stream

    def _start(self, request: Request) -> SessionStart:
        return SessionStart(
            device_id=self._device.device_id,
            app_id=request.task.app_id,
            task_id=request.task.task_id,
            mode=request.task.mode,
            rubric=request.task.rubric,
            assignment_id=request.wish.assignment_id,
            assessment=request.task.assessment.told(),
        )

    def _evidence(self, request: Request, start: SessionStart) -> Evidence:
        recording: Recording | None = None
        try:
            recorder, unfinished = self._room.recorder, request.unfinished
            recording = recorder.resume(unfinished) if unfinished else recorder.begin(start)
        except Exception:  # noqa: BLE001 - a broken record never keeps a learner from practising
            _log.exception("nothing is recorded", action="record.failed")
        return Evidence(recording, request.task.activity.signal)


def steps_of(task: Task, clips: tuple[Clip, ...]) -> tuple[Step, ...]:
    """Return a step a clip; a retelling has one (`docs/rules.md 20`)."""
    played = clips[:1] if task.activity is Activity.RETELL else clips
    return tuple(Step(clip=clip, expected_text=clip.expected_text) for clip in played)
