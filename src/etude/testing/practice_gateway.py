"""The gateway's own parts, put together for one lesson: for scenarios and benches.

Real: the devices' port, the runtime, lessons from files, the journal on the disk. Left out: OTA,
admission, the link to web.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from etude.clock import Clock, RandomIds
from etude.files import Files
from etude.gateway.ports import PracticeFactory
from etude.gateway.websocket import DeviceServer
from etude.i18n import LOCALES
from etude.practice.apps import App, Apps
from etude.practice.lesson_folders import LESSONS
from etude.practice.lessons import Lessons
from etude.practice.prompts import Prompts, load_prompts
from etude.practice.recorder import Recorder
from etude.practice.records import Mode, Prompt
from etude.practice.runtime import practice_factory
from etude.practice.tasks import ACTIVITIES, Task
from etude.speech.clip_cache import ClipCache
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.scenarios import APP_ID, ENTRY, EXIT, LESSON_ID, TASK_ID

HOST: Final = "127.0.0.1"
EXPIRY_S: Final = 30.0
"""How often sessions that nobody came back to are looked for."""

Clips = Mapping[str, tuple[bytes, ...]]


class PracticeGateway:
    """See the module. `open` it in the loop it runs in, `close` it there.

    Attributes:
        journals: where sessions are recorded.
        clips: the packets of everything it may play, by name; prompts by theirs.
    """

    def __init__(
        self,
        root: Path,
        parts: Sequence[Part],
        *,
        mode: Mode = Mode.SHADOWING,
        encoded: Path | None = None,
    ) -> None:
        """Keep all files below `root`, an empty folder; offer one lesson, `parts`.

        `encoded` is a folder of encoded clips that several gateways may share.
        """
        self.journals = root / "journals"
        self._root = root
        self._parts = parts
        self._apps = Apps({APP_ID: _app(mode)})
        self._cache = ClipCache(encoded)
        self.clips: Clips = {}
        self._lessons: Lessons | None = None
        self._recorder: Recorder | None = None
        self._server: DeviceServer | None = None
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def server(self) -> DeviceServer:
        """The devices' port."""
        assert self._server is not None, "not open"  # noqa: S101 - a mistake of the caller
        return self._server

    async def open(
        self,
        clock: Clock,
        *,
        files: Files | None = None,
        stepped: Callable[[float], None] = lambda _: None,
        on_ended: Callable[[str], None] = lambda _: None,
        around: Callable[[PracticeFactory], PracticeFactory] = lambda factory: factory,
    ) -> None:
        """Listen on a free port.

        Args:
            clock: of what is recorded.
            files: the disk of what is recorded.
            stepped: see `practice_factory`.
            on_ended: see `Recorder`.
            around: puts something between connection and practice.
        """
        folder = self._root / "lessons" / APP_ID / TASK_ID / LESSONS / LESSON_ID
        write_lesson(folder, self._parts)
        prompts = load_prompts(self._cache)
        self.clips = dict(self._playable(folder, prompts))
        self.journals.mkdir(exist_ok=True)
        self._lessons = Lessons(self._root / "lessons", self._cache)
        self._recorder = Recorder(
            self.journals, clock=clock, ids=RandomIds(), files=files, on_ended=on_ended
        )
        self._recorder.start()
        factory = practice_factory(
            self._apps, self._lessons, self._recorder, prompts, stepped=stepped
        )
        self._server = DeviceServer(
            HOST, 0, admit=lambda _: None, make_practice=around(factory), ids=RandomIds()
        )
        await self._server.start()
        self._expire()

    async def close(self) -> None:
        """Close every connection, and write what was recorded."""
        if self._expiry is not None:
            self._expiry.cancel()
        await self.server.stop()
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.close)
        if self._lessons is not None:
            self._lessons.close()

    def start_task(self, device_id: str) -> None:
        """Start the lesson, as a person at the console does."""
        connection = self.server.connection(device_id)
        if connection is not None:
            connection.start_task(APP_ID, TASK_ID, {})

    def _expire(self) -> None:
        if self._recorder is not None:
            self._recorder.expire()
        self._expiry = asyncio.get_running_loop().call_later(EXPIRY_S, self._expire)

    def _playable(self, folder: Path, prompts: Prompts) -> Iterator[tuple[str, tuple[bytes, ...]]]:
        for part in self._parts:
            yield part.name, self._cache.encode(folder / part.name).packets
        for prompt in Prompt:
            spoken = [prompts(prompt, locale) for locale in LOCALES]
            yield (
                prompt.value,
                tuple(packet for one in spoken if one for packet in one.clip.packets),
            )


def _app(mode: Mode) -> App:
    task = Task(
        app_id=APP_ID,
        task_id=TASK_ID,
        mode=mode,
        activity=ACTIVITIES[mode][0],
        entry_phrases=(ENTRY,),
        exit_phrases=(EXIT,),
    )
    return App(app_id=APP_ID, title="Simulated", tasks={TASK_ID: task})
