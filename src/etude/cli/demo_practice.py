"""The demo's toys: one is streamed what was assigned, one plays a lesson from its card.

The gateway runs in this process, in a loop whose time jumps, so that a lesson takes seconds (unless
it is to take its time); its sockets, clips, journal and uploads are real, and so are those of the
devices. It is set up as a gateway on a machine of its own is: a data folder with the server's keys,
and where web is.
"""

import asyncio
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from etude.cli import terminal
from etude.cli.demo_course import Assigned
from etude.cli.demo_report import report_when_made
from etude.cli.demo_speech import Turn, Way, turns_when_measured, voices_of
from etude.cli.errors import DemoBrokenError
from etude.cli.gateway import Gateway, open_gateway
from etude.cli.installation import keys_folder
from etude.clock import Clock, SystemClock, to_us
from etude.net import HttpClient
from etude.people.bind_codes import note_code
from etude.people.binding_records import PendingBinding
from etude.people.bindings import BindRequest, bind_device
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.practice.apps import shipped_apps
from etude.practice.course_lessons import LaidScene
from etude.practice.lesson_build import check_lesson
from etude.practice.lesson_install import install_lesson
from etude.practice.windows import window_ms
from etude.settings import Settings, load
from etude.speech.clip_cache import ClipCache
from etude.store import UnitOfWork
from etude.testing import device_ota
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Seen
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part
from etude.testing.scenario_checks import verdicts
from etude.testing.simulation import Watched
from etude.testing.virtual_time import LoopClock, VirtualTimeLoop

FOLDER: Final = "gateway"
_SETTLED_S: Final = 0.5
_LOOK_S: Final = 0.5
_LONGEST_S: Final = 300.0  # of the loop's time; a lesson takes twenty seconds
_PATIENCE_S: Final = 120.0  # of real time, for web to tell who is bound
_PAUSE_S: Final = 0.05
_SAID: Final = "start practice"


class Toy(msgspec.Struct, frozen=True, kw_only=True):
    """A toy of the demo and what it practises."""

    device_id: str
    code: str


PRACTISING: Final = Toy(device_id="02:00:00:00:00:01", code="000001")
"""Has no card, and practises what its learner was assigned."""
WITH_CARD: Final = Toy(device_id="02:00:00:00:00:02", code="000002")
"""Has a lesson on its card."""
TOYS: Final = (PRACTISING, WITH_CARD)
_APP, _TASK, _LESSON = "chinese_reading", "follow_read", "spring_dawn"


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What a toy's learner says to begin, and then reads; the sounds are those of `folder`.

    `language` is that of what is read, `ratio` that of a window to its clip.
    """

    toy: Toy
    entry: str
    place: str
    folder: Path
    language: str
    ratio: float
    parts: tuple[Part, ...]

    @property
    def lasts_s(self) -> float:
        """How long it takes: each clip and the window after it."""
        clips_ms = (part.lasts_ms for part in self.parts)
        return sum(clip_ms + window_ms(clip_ms, self.ratio) for clip_ms in clips_ms) / 1000


class Practised(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, as `summary.json` has it."""

    turns: int
    metrics: int


async def furnish(work: UnitOfWork, learner_id: str, since: datetime) -> str:
    """Bind the toys and give them to a learner; return a token that may read everything."""
    for toy in TOYS:
        pending = PendingBinding(
            code=toy.code,
            device_id=toy.device_id,
            client_id=FakeDevice(toy.device_id).client_id,
            board="",
            version="",
            expires_us=to_us(since) + 60_000_000,
        )
        await note_code(work, pending, since)
        wanted = BindRequest(code=toy.code, learner_id=learner_id)
        await bind_device(work, wanted, actor=HOST, now=since)
    request = TokenRequest(kind="service", principal_id="demo", scopes=(Scope.OPERATE,))
    return (await create_token(work.connection, request, since)).text


def practise(
    folder: Path,
    server: Settings,
    server_url: str,
    *,
    token: str,
    began_at: datetime,
    assigned: Assigned,
    way: Way,
) -> dict[str, dict[str, Any]]:
    """Let both toys follow their lessons; return the instance that came of it, by toy's id.

    Args:
        folder: of the demo; the gateway's own is made in it.
        server: the server's settings: whose keys are used.
        server_url: where web is.
        token: from `furnish`.
        began_at: when the lessons begin: some minutes ago, for their time jumps ahead. In real time
            they begin now.
        assigned: what the learner was assigned.
        way: how.

    Raises:
        DemoBrokenError: a turn is missing, twice, or not what was read; a toy was told a score.
    """
    settings = load(
        data=folder / FOLDER,
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=server_url,
        # Where the clock jumps, no engine keeps up with it: all is heard by the worker, later.
        speech_processes=int(way.speaks and way.real_time),
    )
    shutil.copytree(keys_folder(server.data), keys_folder(settings.data))
    place = files("etude.practice") / "sample_lessons" / _APP / _TASK / "lessons" / _LESSON
    with as_file(place) as shipped:
        install_lesson(check_lesson(shipped), settings.lessons, _APP, _TASK)
    with asyncio.Runner(loop_factory=None if way.real_time else VirtualTimeLoop) as runner:
        return runner.run(_practise(settings, server_url, token, began_at, assigned, way))


def turns_of(url: str, token: str, sessions: Iterable[str], way: Way) -> list[Turn]:
    """Return what web has of sessions, once they are reported: their metrics are in then.

    Where there is speech, it waits for all of them. Otherwise a starved machine has fewer by then.
    """
    headers = {"Authorization": f"Bearer {token}"}
    wanted = tuple(sessions)
    with (
        HttpClient(url, bearer=token) as reports,
        httpx2.Client(base_url=url, headers=headers, trust_env=False) as client,
    ):

        def read() -> list[Turn]:
            instances = (_get(client, f"/task/instance/{session_id}") for session_id in wanted)
            return [turn for instance in instances for turn in instance["turns"]]

        if way.speaks:
            return turns_when_measured(read)
        for session_id in wanted:
            report_when_made(reports, f"/api/v1/sessions/{session_id}")
        return read()


async def _practise(
    settings: Settings, url: str, token: str, began_at: datetime, assigned: Assigned, way: Way
) -> dict[str, dict[str, Any]]:
    async with open_gateway(settings, _clock(began_at, way)) as gateway:
        await _until_told(gateway, settings.course_lessons / assigned.lesson_id)
        scripts = (_of_course(settings, assigned), _of_card(settings))
        devices = [await asyncio.to_thread(_device, settings, script, way) for script in scripts]
        if way.real_time:
            _tell_clips(scripts, devices)
        try:
            for script, device in zip(scripts, devices, strict=True):
                await _begin(gateway, script, device)
            instances = await _until_uploaded(url, token)
            for script, device in zip(scripts, devices, strict=True):
                texts = [part.text for part in script.parts]
                _check(instances[script.toy.device_id], texts)
                _require(not list(verdicts(device.texts, iter(texts))), "score")
            return instances
        finally:
            for device in devices:
                device.scrap()


def _clock(began_at: datetime, way: Way) -> Clock:
    return SystemClock() if way.real_time else LoopClock(asyncio.get_running_loop(), began_at)


def _tell_clips(scripts: Sequence[Script], devices: Sequence[FakeDevice]) -> None:
    """Say how long it takes, and then what each toy plays, as it plays."""
    terminal.say("demo.practising", seconds=round(max(script.lasts_s for script in scripts)))
    began_s = asyncio.get_running_loop().time()
    for toy, (script, device) in enumerate(zip(scripts, devices, strict=True), 1):
        texts = {part.name: part.text for part in script.parts}
        device.watchers.append(_ClipTeller(toy, texts, began_s).notice)


class _ClipTeller:
    """Tells which clip of a lesson a toy plays."""

    def __init__(self, toy: int, texts: Mapping[str, str], began_s: float) -> None:
        """`texts` by clip, in the lesson's order; `began_s` in the loop's time."""
        self._toy = toy
        self._texts = texts
        self._began_s = began_s

    def notice(self, seen: Seen) -> None:
        """See `FakeDevice.watchers`."""
        if seen.what == "clip" and seen.detail in self._texts:
            terminal.say(
                "demo.clip",
                at_s=round(seen.at_s - self._began_s),
                toy=self._toy,
                number=list(self._texts).index(seen.detail) + 1,
                count=len(self._texts),
                text=self._texts[seen.detail],
            )


async def _until_told(gateway: Gateway, lesson: Path) -> None:
    """Wait until web has told who is bound, and the assigned lesson is there, whole.

    Web is real: the loop's time stands still meanwhile.
    """
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        known = all(gateway.known.is_known(toy.device_id) for toy in TOYS)
        if known and await asyncio.to_thread(lesson.exists):
            return
        _require(time.monotonic() < until_s, "link")
        await asyncio.to_thread(time.sleep, _PAUSE_S)
        await asyncio.sleep(_PAUSE_S)


def _of_course(settings: Settings, assigned: Assigned) -> Script:
    folder = settings.course_lessons / assigned.lesson_id
    scene = msgspec.json.decode((folder / "lesson.json").read_bytes(), type=LaidScene)
    parts = tuple(
        Part(name=clip.clip, text=clip.text, lasts_ms=clip.duration_ms) for clip in scene.clips
    )
    place = f"{assigned.app_id}/{assigned.task_id}/lessons/{assigned.lesson_id}"
    return Script(
        toy=PRACTISING,
        entry=_SAID,
        place=place,
        folder=folder,
        language="en",
        ratio=scene.listen_ratio,
        parts=parts,
    )


def _of_card(settings: Settings) -> Script:
    place = f"{_APP}/{_TASK}/lessons/{_LESSON}"
    folder = settings.lessons / place
    parts = tuple(
        Part(name=clip.clip, text=clip.text or "", lasts_ms=clip.duration_ms)
        for clip in check_lesson(folder).manifest.clips
    )
    task = shipped_apps().task(_APP, _TASK)
    return Script(
        toy=WITH_CARD,
        entry=task.entry_phrases[0],
        place=place,
        folder=folder,
        language="zh",
        ratio=task.listen_ratio,
        parts=parts,
    )


def _device(settings: Settings, script: Script, way: Way) -> Watched:
    cache = ClipCache(settings.clips)
    book = {p.name: cache.encode(script.folder / p.name).packets for p in script.parts}
    on_card = {f"/{script.place}/{part.name}": part.lasts_ms for part in script.parts}
    card = FakeCard(on_card) if script.toy == WITH_CARD else None
    device = Watched(script.toy.device_id, card=card, book=ClipBook(book))
    ActingLearner(
        device, SCRIPTS["perfect"], script.parts, voices_of(script.parts, script.language, way)
    )
    return device


async def _begin(gateway: Gateway, script: Script, device: FakeDevice) -> None:
    """Ask for a token, connect, say the phrase: as a toy and its child do."""
    ota_url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
    async with httpx2.AsyncClient(trust_env=False) as client:
        told = await device_ota.ask(client, ota_url, device)
    device.token = told.token
    await device.connect(told.host, told.port, told.path)
    await asyncio.sleep(_SETTLED_S)
    device.wake(script.entry)


async def _until_uploaded(url: str, token: str) -> dict[str, dict[str, Any]]:
    """Return the instances with their turns by device, once web has their ends."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + _LONGEST_S
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, headers=headers, trust_env=False) as client:
        while True:
            heads = await asyncio.to_thread(_get, client, "/task/instances")
            if sum(head["status"] == "completed" for head in heads["items"]) == len(TOYS):
                break
            _require(loop.time() < until_s, "lesson")
            await asyncio.sleep(_LOOK_S)
        return {
            head["device_id"]: await asyncio.to_thread(_get, client, f"/task/instance/{head['id']}")
            for head in heads["items"]
        }


def _check(instance: Mapping[str, Any], texts: list[str]) -> None:
    turns = instance["turns"]
    _require([turn["step_index"] for turn in turns] == list(range(len(texts))), "turns")
    _require([turn["expected_text"] for turn in turns] == texts, "texts")
    _require(all(turn["audio_id"] for turn in turns), "recordings")


def _get(client: httpx2.Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(path).raise_for_status().json()["data"]
    return found


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
