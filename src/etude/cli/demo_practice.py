"""The demo's second part: two toys follow a lesson, one streamed to, one from its card.

The gateway runs in this process, in a loop whose time jumps, so that a lesson takes seconds; its
sockets, clips, journal and uploads are real, and so are those of the devices. It is set up as a
gateway on a machine of its own is: a data folder with the server's keys, and where web is.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from etude.cli.errors import DemoBrokenError
from etude.cli.gateway import Gateway, open_gateway
from etude.cli.installation import keys_folder
from etude.clock import to_us
from etude.people.bind_codes import note_code
from etude.people.binding_records import PendingBinding
from etude.people.bindings import BindRequest, bind_device
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.practice.apps import shipped_apps
from etude.practice.lesson_build import check_lesson
from etude.practice.lesson_install import install_lesson
from etude.settings import Settings, load
from etude.speech.clip_cache import ClipCache
from etude.store import UnitOfWork
from etude.testing import device_ota
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice
from etude.testing.learner_voice import Voices
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


class Toy(msgspec.Struct, frozen=True, kw_only=True):
    """A toy of the demo and what it practises."""

    device_id: str
    code: str
    app_id: str
    task_id: str
    lesson_id: str
    has_card: bool


TOYS: Final = (
    Toy(
        device_id="02:00:00:00:00:01",
        code="000001",
        app_id="english_learning",
        task_id="shadowing",
        lesson_id="greetings",
        has_card=False,
    ),
    Toy(
        device_id="02:00:00:00:00:02",
        code="000002",
        app_id="chinese_reading",
        task_id="follow_read",
        lesson_id="spring_dawn",
        has_card=True,
    ),
)


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
    learner_id: str,
    began_at: datetime,
) -> Practised:
    """Let both toys follow their lessons, and read back what web has of it.

    Args:
        folder: of the demo; the gateway's own is made in it.
        server: the server's settings: whose keys are used.
        server_url: where web is.
        token: from `furnish`.
        learner_id: as given to `furnish`.
        began_at: when the lessons begin: some minutes ago, for their time jumps ahead.

    Raises:
        DemoBrokenError: a turn is missing, twice, or not what was read; a toy was told a score.
    """
    settings = load(
        data=folder / FOLDER,
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=server_url,
        speech_processes=0,  # its toys' voices are packets without a sound
    )
    shutil.copytree(keys_folder(server.data), keys_folder(settings.data))
    with ExitStack() as stack:
        shipped = stack.enter_context(as_file(files("etude.practice") / "sample_lessons"))
        for toy in TOYS:
            lesson = shipped / toy.app_id / toy.task_id / "lessons" / toy.lesson_id
            install_lesson(check_lesson(lesson), settings.lessons, toy.app_id, toy.task_id)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        instances = runner.run(_practise(settings, server_url, token, began_at))
    for instance in instances:
        _check(instance, learner_id)
    return Practised(
        turns=sum(len(one["turns"]) for one in instances),
        metrics=sum(len(turn["metrics"]) for one in instances for turn in one["turns"]),
    )


async def _practise(
    settings: Settings, url: str, token: str, began_at: datetime
) -> list[dict[str, Any]]:
    clock = LoopClock(asyncio.get_running_loop(), began_at)
    async with open_gateway(settings, clock) as gateway:
        await _until_told(gateway)
        devices = [_device(settings, toy) for toy in TOYS]
        try:
            for toy, device in zip(TOYS, devices, strict=True):
                await _begin(gateway, toy, device)
            instances = await _until_uploaded(url, token)
            for toy, device in zip(TOYS, devices, strict=True):
                _require(not list(verdicts(device.texts, _texts(toy.app_id))), "score")
            return instances
        finally:
            for device in devices:
                device.scrap()


async def _until_told(gateway: Gateway) -> None:
    """Wait until web has told who is bound. Web is real: the loop's time stands still meanwhile."""
    until_s = time.monotonic() + _PATIENCE_S
    while not all(gateway.known.is_known(toy.device_id) for toy in TOYS):
        _require(time.monotonic() < until_s, "link")
        await asyncio.to_thread(time.sleep, _PAUSE_S)
        await asyncio.sleep(_PAUSE_S)


def _device(settings: Settings, toy: Toy) -> Watched:
    place = f"{toy.app_id}/{toy.task_id}/lessons/{toy.lesson_id}"
    manifest = check_lesson(settings.lessons / place).manifest
    parts = [
        Part(name=clip.clip, text=clip.text or "", lasts_ms=clip.duration_ms)
        for clip in manifest.clips
    ]
    cache = ClipCache(settings.clips)
    book = {p.name: cache.encode(settings.lessons / place / p.name).packets for p in parts}
    on_card = {f"/{place}/{part.name}": part.lasts_ms for part in parts}
    card = FakeCard(on_card) if toy.has_card else None
    device = Watched(toy.device_id, card=card, book=ClipBook(book))
    ActingLearner(device, SCRIPTS["perfect"], parts, Voices())
    return device


async def _begin(gateway: Gateway, toy: Toy, device: FakeDevice) -> None:
    """Ask for a token, connect, say the phrase: as a toy and its child do."""
    ota_url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
    async with httpx2.AsyncClient(trust_env=False) as client:
        told = await device_ota.ask(client, ota_url, device)
    device.token = told.token
    await device.connect(told.host, told.port, told.path)
    await asyncio.sleep(_SETTLED_S)
    device.wake(shipped_apps().task(toy.app_id, toy.task_id).entry_phrases[0])


async def _until_uploaded(url: str, token: str) -> list[dict[str, Any]]:
    """Return both instances with their turns, once web has their ends."""
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
        return [
            await asyncio.to_thread(_get, client, f"/task/instance/{head['id']}")
            for head in heads["items"]
        ]


def _check(instance: Mapping[str, Any], learner_id: str) -> None:
    texts = list(_texts(instance["app_id"]))
    turns = instance["turns"]
    _require([turn["step_index"] for turn in turns] == list(range(len(texts))), "turns")
    _require([turn["expected_text"] for turn in turns] == texts, "texts")
    _require(all(turn["audio_id"] for turn in turns), "recordings")
    _require(instance["learner_id"] == learner_id, "learner")


def _texts(app_id: str) -> Iterator[str]:
    (toy,) = (toy for toy in TOYS if toy.app_id == app_id)
    place = files("etude.practice") / "sample_lessons" / app_id / toy.task_id / "lessons"
    with as_file(place / toy.lesson_id) as folder:
        yield from (clip.text or "" for clip in check_lesson(folder).manifest.clips)


def _get(client: httpx2.Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(path).raise_for_status().json()["data"]
    return found


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
