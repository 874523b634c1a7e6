"""A gateway with a data folder of its own plays an assigned lesson that only web has installed."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.practice.lesson_folders import lesson_folder
from etude.settings import Settings, load
from etude.speech.clip_cache import ClipCache
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.nursery import ForkedProcess, Nursery
from etude.testing.playmate import PATIENCE_S, Playmate
from etude.testing.playroom import Playroom

APP, TASK, LESSON = "english_learning", "shadowing", "unit9"
NAMES = ("91.mp3", "92.mp3")
PATH = f"/api/v1/gateway/lessons/{APP}/{TASK}/{LESSON}"


class House:
    """Web with a lesson, and elsewhere a gateway with the keys and nothing else."""

    def __init__(
        self, room: Playroom, folder: Path, nursery: Nursery, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.room = room
        self._nursery = nursery
        self._capsys = capsys
        parts = [Part(name=name, text=f"Sentence {name}", lasts_ms=400) for name in NAMES]
        self.lesson = self._folder(room.settings)
        write_lesson(self.lesson, parts)
        cache = ClipCache(room.settings.clips)
        sounds = {name: cache.encode(self.lesson / name).packets for name in NAMES}
        (first,) = room.toys()
        prompts = {name: packets for name, packets in first.own.clips.items() if "." not in name}
        self.own = msgspec.structs.replace(
            first.own, parts=tuple(parts), clips=prompts | sounds, entry="start practice"
        )
        self.elsewhere = load(data=folder)
        shutil.copytree(room.settings.data / "keys", folder / "keys")
        self.gateway: ForkedProcess | None = None

    @staticmethod
    def _folder(settings: Settings) -> Path:
        found = lesson_folder(settings.lessons, APP, TASK, LESSON)
        assert found is not None
        return found

    def etude(self, *arguments: str) -> Any:
        self._capsys.readouterr()
        code = run_command([*arguments, "--json"])
        printed = self._capsys.readouterr()
        assert code == exits.OK, printed.err
        return json.loads(printed.out)

    def start_gateway(self, crash_at: str = "") -> None:
        environment = {
            **self.room.environment,
            "ETUDE_DATA": str(self.elsewhere.data),
            "ETUDE_WEB_URL": self.room.url,
            "ETUDE_CRASH_AT": crash_at,
        }
        self.gateway = self._nursery.start("etude.cli.app", "gateway", environment=environment)

    @property
    def fetched(self) -> Path:
        """Where the gateway has the lesson, once it has it."""
        found = lesson_folder(self.elsewhere.lesson_packs, APP, TASK, LESSON)
        assert found is not None
        return found


@pytest.fixture
def house(
    tmp_path: Path,
    nursery: Nursery,
    sqlite_copy: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[House]:
    data = tmp_path / "data"
    data.mkdir()
    room = Playroom(tmp_path, sqlite_copy(data), nursery, toys=1, steps=1)
    for name, value in room.environment.items():
        monkeypatch.setenv(name, value)
    with room:
        room.start_web()
        made = House(room, tmp_path / "elsewhere", nursery, capsys)
        yield made
        if made.gateway is not None:
            made.gateway.kill()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "point", ["", "practice.lesson_pack.written", "practice.lesson_pack.placed"]
)
def test_an_assigned_pack_is_fetched_whole_and_played(house: House, point: str) -> None:
    """Also when the gateway is killed in the midst; then web may die, and it plays again."""
    house.etude("assign", "lesson", f"{APP}/{TASK}/{LESSON}", "--device", house.own.device_id)
    house.start_gateway(point)

    async def play() -> None:
        if point:
            assert house.gateway is not None
            await asyncio.to_thread(house.gateway.wait)
            await asyncio.to_thread(house.start_gateway)
        await until((house.fetched / "pack.json").exists)
        toy = Playmate(house.own, house.room.voices, has_card=False)
        async with httpx2.AsyncClient(trust_env=False) as client:
            await toy.come(client, house.room.ota_url)
        for times in (1, 2):
            await asyncio.sleep(0.5)
            toy.wake(house.own.entry)
            await practised(toy, times)
            assert house.room.web is not None
            await asyncio.to_thread(house.room.web.kill)
        await asyncio.to_thread(house.room.start_web)
        await house.room.until_ended([toy], 2)
        toy.scrap()

    asyncio.run(play())
    for head in house.room.instances(house.own.device_id):
        turns = house.room.instance(head["id"])["turns"]
        assert [turn["expected_text"] for turn in turns] == [f"Sentence {name}" for name in NAMES]
    for name in NAMES:
        assert (house.fetched / name).read_bytes() == (house.lesson / name).read_bytes()


async def practised(toy: Playmate, times: int) -> None:
    """Wait until the toy has been greeted so often, as at the end of a lesson."""

    def greeted() -> bool:
        seen = sum((one.what, one.detail) == ("clip", "greeting") for one in toy.timeline)
        return seen == times

    await until(greeted)


def test_only_gateways_may_fetch_a_pack(house: House) -> None:
    """Hashes, texts and bytes to the gateway's token; 404 for what is no clip; 401 to others."""
    token = (house.room.settings.data / "keys" / "gateway.token").read_text("ascii").strip()

    def get(path: str, bearer: str = token) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {bearer}"}
        return httpx2.get(house.room.url + path, headers=headers, timeout=60.0, trust_env=False)

    pack = get(PATH).json()
    assert [one["clip"] for one in pack["clips"]] == list(NAMES)
    assert [one["text"] for one in pack["clips"]] == [f"Sentence {name}" for name in NAMES]
    clip = get(f"{PATH}/clips/91.mp3")
    assert clip.content == (house.lesson / "91.mp3").read_bytes()
    for path in (
        f"{PATH}/clips/91.txt",
        f"{PATH}/clips/..%2F91.mp3",
        f"{PATH}/clips/.hidden",
        f"/api/v1/gateway/lessons/{APP}/{TASK}/other",
        f"/api/v1/gateway/lessons/{APP}/%2e%2e/x",
    ):
        assert get(path).status_code in {400, 404}, path
    assert get(PATH, "nobody").status_code == 401
