"""What runs on a connection: chat, or one task. Fulfils `gateway.ports.Practice`.

Every method is called in the loop's thread and returns at once. Whatever takes time before a task
(tools, card, clips) happens in `preparation`; once the clock of a task runs, nothing waits.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import structlog

from etude.gateway.ports import (
    AppTask,
    CloseReason,
    Detected,
    Device,
    ListenMode,
    PracticeFactory,
    SkillEvent,
    VoiceEntry,
    WakeWord,
)
from etude.practice.apps import Apps
from etude.practice.assigned import Assigned
from etude.practice.card_layout import ensure_layout
from etude.practice.chat import Talk
from etude.practice.conversation import AskFor
from etude.practice.ear import Ear
from etude.practice.errors import TaskUnknownError
from etude.practice.lessons import Lessons
from etude.practice.live_speech import LiveSpeech
from etude.practice.phrases import Phrases, is_echo
from etude.practice.players import CardPlayer, StreamPlayer
from etude.practice.preparation import Preparation, Prepared, Wish
from etude.practice.recorder import Recorder
from etude.practice.records import EndReason, Mode, Prompt, SessionStart, Unfinished
from etude.practice.speaking import Prompts, Speaker
from etude.practice.supplies import Supplies
from etude.practice.task_making import Request, Room, Running, TaskMaker, steps_of
from etude.practice.tasks import Task

WAKE_S: Final = 2.0
"""How long after an abort by wake word the wake word itself may come; it is no speech."""

ECHO_S: Final = 2.4
"""How long after the toy's own words a device may still send their echo (its queue)."""

_log = structlog.get_logger(__name__)


def practice_factory(  # noqa: PLR0913 - the composition root names each part
    apps: Apps,
    lessons: Lessons,
    recorder: Recorder,
    prompts: Prompts,
    *,
    locale: str = "en",
    learner_of: Callable[[str], int | None] = lambda _: None,
    assignment_of: Callable[[str], Assigned | None] = lambda _: None,
    chance: random.Random | None = None,
    stepped: Callable[[float], None] = lambda _: None,
    speech: LiveSpeech | None = None,
    ask: AskFor | None = None,
    supplies: Supplies | None = None,
) -> PracticeFactory:
    """Return what makes the practice of each connection. Call it once a process.

    Args:
        apps: `load_apps` or `shipped_apps`.
        lessons: the server's own lessons.
        recorder: started; keeps what is practised.
        prompts: finds the toy's own sentences, in memory.
        locale: of what is said outside tasks: `en` or `zh-CN`.
        learner_of: the key of whoever holds a device, by its id; from memory.
        assignment_of: what is to be practised on a device now, by its id; from memory.
        chance: for the questions of inline tasks.
        stepped: told when a follow-read's next clip has been sent, with the time it was due at on
            the loop's clock: what `etude bench clock` measures.
        speech: hears and speaks, beside every clock; None = recognition is not configured.
        ask: the model that answers in chat and translation; None = a short fixed answer.
        supplies: what comes from web; None = nothing does.
    """
    room = Room(
        apps=apps,
        lessons=lessons,
        recorder=recorder,
        prompts=prompts,
        locale=locale,
        learner_of=learner_of,
        assignment_of=assignment_of,
        chance=chance or random.Random(),  # noqa: S311 - questions, no secrets
        stepped=stepped,
        speech=speech,
        ask=ask,
        supplies=supplies,
    )
    return lambda device: DevicePractice(device, room)


class DevicePractice:
    """Practice on one connection."""

    def __init__(self, device: Device, room: Room) -> None:
        """Make it in the loop; nothing happens before `opened`."""
        self._device = device
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._listed = asyncio.Event()
        speech = room.speech
        self._speaker = Speaker(device, room.prompts, speech.say if speech else None)
        self._ear = Ear(speech.hear if speech else None, self._spoken, self._heard, self._missed)
        self._card = CardPlayer(device, self._loop)
        stream = StreamPlayer(device, self._loop, room.lessons.encoded)
        self._maker = TaskMaker(
            device, room, self._speaker, self._ear, card=self._card, stream=stream
        )
        self._chat = self._maker.talk(room.locale)
        self._task: Task | None = None
        self._running: Running | None = None
        self._held: Prepared | None = None
        self._starting: asyncio.Task[None] | None = None
        self._resuming: Unfinished | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._woken_until_s = -1.0

    @property
    def mode(self) -> Mode:
        """How the connection interacts now."""
        return self._task.mode if self._task and self._running else Mode.CHAT

    @property
    def busy(self) -> bool:
        """Whether a task runs or is about to."""
        return self._task is not None

    def opened(self) -> None:
        """Go on with what a lost connection left, within ten minutes (`docs/rules.md 18`)."""
        unfinished = self._unfinished()
        if unfinished is None:
            return
        start = unfinished.start
        try:
            task = self._room.apps.task(start.app_id, start.task_id)
        except TaskUnknownError:
            return
        self._start(task, Wish.resumed(start), unfinished)

    def tools_listed(self) -> None:
        """Let waiting tasks go on, and have the card's folders made in the background."""
        self._listed.set()
        self._spawn(ensure_layout(self._device, self._room.apps))

    def listen_started(self, mode: ListenMode) -> None:
        """Nothing: a clip's end opens a window, never the microphone (`docs/rules.md 16`)."""

    def listen_stopped(self) -> None:
        """The learner has let go of the button."""
        self._ear.cut()
        if self._listener is not None:
            self._listener.listen_stopped()

    def detected(self, detected: Detected) -> None:
        """A text of the device: what its card did, what its buttons want, or what was said."""
        match detected:
            case SkillEvent():
                self._card.skill_event(detected)
            case AppTask(name=name, arguments=arguments):
                self._app_task(name, arguments)
            case VoiceEntry(text=text):
                self._voice_entry(text)
            case WakeWord(text=text) if self._loop.time() > self._woken_until_s:
                self.recognised(text, self._loop.time())
            case _:
                self._woken_until_s = -1.0

    def audio(self, packet: bytes, arrived_s: float) -> None:
        """A packet of the microphone."""
        if self._listener is not None:
            self._listener.audio(packet, arrived_s)
        if self._task is None and self._speaker.speaking:
            self._ear.forget()  # in chat the toy hears itself, or is spoken to too early
        else:
            self._ear.audio(packet, arrived_s)

    def recognised(self, text: str, at_s: float) -> None:
        """Something was said; where recognition hands over its texts.

        Args:
            text: what was understood.
            at_s: when it was said, on the loop's clock.
        """
        if self._task is not None:
            if text in Phrases(self._task.exit_phrases):
                self._leave(EndReason.EXIT_PHRASE)
            elif self._running is not None:
                self._running.recognised(text, at_s)
            return
        if not self._entered(text):
            self._chat.recognised(text, at_s)

    def aborted(self, reason: str) -> None:
        """The learner asked for silence; a wake word that did it may follow as text."""
        if reason == "wake_word_detected":
            self._woken_until_s = self._loop.time() + WAKE_S
        self._ear.forget()
        if self._running is not None:
            self._running.aborted()
        elif self._task is not None:
            self._leave(EndReason.PLAY_STOPPED)
        else:
            self._chat.aborted()

    def start_task(self, app_id: str, task_id: str, arguments: Mapping[str, Any]) -> None:
        """Start a task that somebody asked for; one that is not declared changes nothing."""
        try:
            task = self._room.apps.task(app_id, task_id)
        except TaskUnknownError:
            _log.warning("unknown task", action="task.unknown", app_id=app_id, task_id=task_id)
            return
        self._start(task, Wish.of(arguments))

    def failed(self) -> None:
        """Something here has raised: the task ends, the connection stays."""
        self._leave(EndReason.ERROR)

    def closed(self, reason: CloseReason) -> None:
        """The connection is gone; a task that ran can be resumed."""
        _log.info("practice closed", action="practice.closed", reason=reason.value)
        self._cancel_start()
        self._ear.close()
        self._chat.disconnect()
        for background in self._background:
            background.cancel()
        running, self._running, self._task = self._running, None, None
        if running is not None:
            running.disconnect()
        self._held = None

    @property
    def _listener(self) -> Running | None:
        """Who the microphone is for; nobody while a task is being prepared."""
        return self._chat if self._task is None else self._running

    def _spoken(self) -> str:
        """Return the language in which something was said."""
        return self._task.language if self._task else self._room.locale

    def _heard(self, text: str, at_s: float) -> None:
        """The ear has understood something. The toy's own words are nobody's."""
        own = at_s <= self._speaker.quiet_s + ECHO_S and is_echo(text, self._speaker.said)
        if own:
            return
        try:
            self.recognised(text, at_s)
        except Exception:  # noqa: BLE001 - as the connection does with what it hands over itself
            _log.exception("what was said has ended the task", action="task.failed")
            self.failed()

    def _missed(self) -> None:
        """Somebody spoke, and nobody could tell what."""
        listener, speech = self._listener, self._room.speech
        if isinstance(listener, Talk):
            listener.missed(for_good=speech is not None and not speech.knows(self._spoken()))

    def _app_task(self, name: str, arguments: tuple[str, ...]) -> None:
        if name == "chat":
            self._leave(EndReason.PREEMPTED)
            return
        found = self._room.apps.named(name, arguments)
        if found is None:
            _log.warning("unknown task", action="task.unknown", task_id=name[:32])
            return
        task, left = found
        self._start(task, Wish(lesson_id=next((one for one in left if one), None)))

    def _voice_entry(self, text: str) -> None:
        """A button or an offline phrase: it starts its task even while another one runs."""
        leaving = self._task is not None and text in Phrases(self._task.exit_phrases)
        if leaving or not self._entered(text):
            self.recognised(text, self._loop.time())

    def _entered(self, said: str) -> bool:
        """Start what `said` starts: a task, or whatever was assigned. Return whether it is such."""
        task = self._room.apps.entered(said)
        if task is not None:
            self._start(task, Wish())
        elif self._room.apps.asks_for_assigned(said):
            self._start_assigned()
        else:
            return False
        return True

    def _start_assigned(self) -> None:
        found = self._room.assignment_of(self._device.device_id)
        if found is not None:
            with contextlib.suppress(TaskUnknownError):
                task = self._room.apps.task(found.lesson.app_id, found.lesson.task_id)
                self._start(task, Wish.assigned(found))
                return
        _log.info("nothing is assigned", action="assignment.none", known=found is not None)
        if not self.busy:
            self._speaker.say(Prompt.NO_LESSON, self._room.locale)

    def _with_assignment(self, task: Task, wish: Wish) -> Wish:
        """Return the wish, for the assigned lesson if it is of this task and no other is named."""
        if wish.assignment_id is not None:
            return wish
        found = self._room.assignment_of(self._device.device_id)
        if found is None or (found.lesson.app_id, found.lesson.task_id) != task.address:
            return wish
        named = wish.lesson_id in {None, found.lesson.lesson_id}
        return Wish.assigned(found) if named else wish

    def _start(self, task: Task, wish: Wish, unfinished: Unfinished | None = None) -> None:
        self._leave(EndReason.PREEMPTED)
        if task.mode is Mode.CHAT:
            return
        self._chat.hush()
        self._ear.forget()
        if unfinished is None:
            wish = self._with_assignment(task, wish)
        self._task, self._resuming = task, unfinished
        self._starting = self._spawn(self._prepare(task, wish, unfinished))

    async def _prepare(self, task: Task, wish: Wish, unfinished: Unfinished | None) -> None:
        """Find what the task needs, then begin. Cancelled when something else is wanted."""
        try:
            prepared = await self._find(task, wish)
            if prepared is None and task.needs_card:
                self._stay(task, Prompt.NO_LESSON)
            elif unfinished is not None and not _same_lesson(unfinished.start, task, prepared):
                _log.warning("the lesson has changed", action="resume.refused")
                self._stay(task, None)
            else:
                self._begin(task, wish, prepared, unfinished)
        except Exception:  # noqa: BLE001 - a task that cannot start leaves the connection in chat
            _log.exception("a task did not start", action="task.failed", task_id=task.task_id)
            self._leave(EndReason.ERROR)

    async def _find(self, task: Task, wish: Wish) -> Prepared | None:
        if not task.needs_card:
            return None
        room = self._room
        preparation = Preparation(self._device, room.lessons, self._listed, room.supplies)
        last = self._room.last_played.get(self._device.device_id)
        return await preparation.find(task, wish, last)

    def _stay(self, task: Task, prompt: Prompt | None) -> None:
        """Stay in chat: the task has nothing to do."""
        self._task = self._starting = self._resuming = None
        if prompt is not None:
            _log.warning("nothing to play", action="lesson.missing", task_id=task.task_id)
            self._speaker.say(prompt, task.language)

    def _begin(
        self, task: Task, wish: Wish, prepared: Prepared | None, unfinished: Unfinished | None
    ) -> None:
        self._starting = self._resuming = None
        self._held = prepared
        if unfinished is None and task.enter_prompt:
            self._device.show(task.enter_prompt)
        request = Request(task=task, wish=wish, prepared=prepared, unfinished=unfinished)
        self._running = self._maker.make(request, self._finished)
        _log.info("task begins", action="task.begin", app_id=task.app_id, task_id=task.task_id)
        self._running.begin()

    def _unfinished(self) -> Unfinished | None:
        try:
            return self._room.recorder.unfinished(self._device.device_id)
        except Exception:  # noqa: BLE001 - a broken record never keeps a learner from practising
            _log.exception("nothing is resumed", action="record.failed")
            return None

    def _finished(self, reason: EndReason) -> None:
        """A task has ended by itself or was left: back to chat, with one greeting if complete."""
        task, self._task, self._running, self._held = self._task, None, None, None
        _log.info("task ends", action="task.end", reason=reason.value)
        if reason.completed:
            self._speaker.say(Prompt.GREETING, task.language if task else self._room.locale)

    def _leave(self, reason: EndReason) -> None:
        """End what runs or is about to, without a greeting."""
        self._cancel_start()
        if self._running is None:
            self._task = None
            self._end_unresumed(reason)
            return
        running = self._running
        try:
            running.leave(reason)
        finally:
            if self._running is running:
                self._task = self._running = self._held = None

    def _end_unresumed(self, reason: EndReason) -> None:
        """End the session that was about to go on: it would come back at every reconnect."""
        unfinished, self._resuming = self._resuming, None
        if unfinished is None:
            return
        try:
            self._room.recorder.resume(unfinished).end(reason)
        except Exception:  # noqa: BLE001 - a broken record never keeps a learner from practising
            _log.exception("a session stays open", action="record.failed")

    def _cancel_start(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None and starting is not asyncio.current_task():
            starting.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        spawned = self._loop.create_task(work)
        self._background.add(spawned)
        spawned.add_done_callback(self._background.discard)
        return spawned


def _same_lesson(start: SessionStart, task: Task, prepared: Prepared | None) -> bool:
    """Whether a lesson is still the one that was begun, as far as its number of steps tells."""
    if start.clip_count is None or prepared is None:
        return True
    return start.clip_count == len(steps_of(task, prepared.lesson.clips))
