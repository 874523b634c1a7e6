"""The card of a device with the SD firmware: files, a player that takes their time, folders.

The seeds' firmware is not public; what is known of its tools and of `[skill_event]` is in
`docs/gateway.md §Tools` and `docs/practice.md §Card or stream`.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from etude.testing.device_tools import Arguments, DeviceTool, Property, ToolRefusedError

START_S: Final = 0.03  # the player opens the file and fills its buffer


class FakeCard:
    """A card and its player.

    Attributes:
        files: what each file plays, in milliseconds, by its path on the card.
        folders: the layouts made by `self.sd.ensure_app`.
        broken: the card cannot be written to: `ensure_app` is refused.
        mute: playing starts, but no event ever tells that it ended.
    """

    def __init__(
        self, files: Mapping[str, int], *, broken: bool = False, mute: bool = False
    ) -> None:
        """Hold `files`."""
        self.files = dict(files)
        self.folders: set[str] = set()
        self.broken = broken
        self.mute = mute
        self._playing: str | None = None
        self._began_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tell: Callable[[str, str], None] = lambda _event, _path: None

    @property
    def playing(self) -> str | None:
        """The path of what plays now."""
        return self._playing

    def plug_in(self, tell: Callable[[str, str], None]) -> None:
        """Tell what happens and to which path: `begins`, or the `[skill_event]…` of an end."""
        self._tell = tell

    def tools(self) -> tuple[DeviceTool, ...]:
        """Return the tools that this firmware has beside the stock ones."""
        anywhere = Property(type="string", default="")
        return (
            DeviceTool(
                name="self.mp3.get_list",
                description="List the MP3 files on the card.",
                run=self._list,
                properties={"path": anywhere},
            ),
            DeviceTool(
                name="self.mp3.play",
                description="Play an MP3 file from the card.",
                run=self._play,
                properties={
                    "path": Property(type="string"),
                    "repeat": Property(type="integer", default=1, minimum=1, maximum=100),
                },
            ),
            DeviceTool(
                name="self.mp3.stop", description="Stop the MP3 player.", run=lambda _: self._stop()
            ),
            DeviceTool(
                name="self.sd.ensure_app",
                description="Make the folders of an app on the card.",
                run=self._ensure,
                properties={"app_id": Property(type="string"), "task_id": anywhere},
            ),
        )

    def power_off(self) -> None:
        """Stop without a word."""
        if self._timer is not None:
            self._timer.cancel()
        self._playing = self._timer = None

    def _list(self, arguments: Arguments) -> str:
        paths = sorted(path for path in self.files if path.startswith(arguments["path"]))
        return msgspec.json.encode(paths).decode()

    def _play(self, arguments: Arguments) -> str:
        path = arguments["path"]
        if path not in self.files:
            reason = f"File not found: {path}"
            raise ToolRefusedError(reason)
        self._interrupt()
        loop = asyncio.get_running_loop()
        self._playing, self._began_s = path, loop.time()
        lasts_s = START_S + self.files[path] * arguments["repeat"] / 1000
        self._timer = loop.call_later(lasts_s, self._completed)
        self._tell("begins", path)
        return "true"

    def _stop(self) -> str:
        stopped = self._playing is not None
        self._interrupt()
        return "true" if stopped else "false"

    def _ensure(self, arguments: Arguments) -> str:
        if self.broken:
            reason = "SD card not mounted"
            raise ToolRefusedError(reason)
        self.folders.add(f"/{arguments['app_id']}/{arguments['task_id']}".rstrip("/"))
        return "true"

    def _completed(self) -> None:
        path = self._playing
        self._playing = self._timer = None
        if path is not None and not self.mute:
            self._report("audio.completed", path)

    def _interrupt(self) -> None:
        path = self._playing
        self.power_off()
        if path is not None:
            self._report("audio.stopped", path)

    def _report(self, event: str, path: str) -> None:
        app_id, task_id, *_ = [*path.lstrip("/").split("/"), "", ""]
        played_ms = round((asyncio.get_running_loop().time() - self._began_s) * 1000)
        self._tell(f"[skill_event]{event}|{app_id}|{task_id}|{played_ms}", path)
