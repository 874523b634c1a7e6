"""`xiaozhi-sdk` as it is on PyPI binds, connects and follows a whole lesson, on both backends.

Everything else is what an operator runs: `etude init`, `etude serve`, `etude lesson install`,
`etude device bind`. The client's own MCP tools play the card.
"""

import asyncio
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.nursery import Nursery
from etude.testing.server import ServerProcess

PATIENCE_S = 180.0
APP, TASK, LESSON = "english_learning", "shadowing", "unit01"
CARD = f"/{APP}/{TASK}/lessons/{LESSON}"
PARTS = (
    Part(name="01.mp3", text="good morning", lasts_ms=400),
    Part(name="02.mp3", text="how are you", lasts_ms=500),
    Part(name="03.mp3", text="see you", lasts_ms=400),
)


class Installed:
    """A running installation, as its operator sees it."""

    def __init__(self, data: Path, nursery: Nursery) -> None:
        self.data = data
        self.nursery = nursery
        self.etude("init")
        self.operator = self.etude("token", "create", "service", "ops", "--scope", "operate")[
            "token"
        ]
        pack = data.parent / LESSON
        write_lesson(pack, PARTS)
        self.etude("lesson", "install", str(pack), "--app", APP, "--task", TASK)
        self.server = ServerProcess(data, command="serve")

    def etude(self, *arguments: str) -> Any:
        environment = {"ETUDE_DATA": str(self.data)}
        ended = self.nursery.run(*arguments, "--json", environment=environment)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def provisioning(self) -> str:
        line = self.server.wait_for("gateway.listening")
        self.server.wait_for("link.up")
        return f"http://127.0.0.1:{line['http_port']}/xiaozhi/ota/"

    def bind_what_is_shown(self) -> None:
        (shown,) = self.etude("device", "codes")
        self.etude("device", "bind", shown["code"], "--name", "toy")

    def data_of(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.operator}"}
        answer = httpx2.get(self.server.url + path, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def ended_instance(self) -> Any:
        """The one instance with its turns, once it is over; None before."""
        heads = self.data_of("/task/instances")["items"]
        over = [head["id"] for head in heads if head["status"] != "running"]
        return self.data_of(f"/task/instance/{over[0]}") if over else None


@pytest.fixture
def installed(tmp_path: Path, nursery: Nursery) -> Iterator[Installed]:
    made = Installed(tmp_path / "data", nursery)
    with made.server:
        yield made


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client class; its own old dependencies warn at import, which is not ours to mend."""
    monkeypatch.setenv("NO_PROXY", "*")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xiaozhi_sdk  # noqa: PLC0415 - its dependencies must not warn while tests are gathered

    return xiaozhi_sdk.XiaoZhiWebsocket


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


class Toy:
    """One client; with a card, its tools play it and report as the board's firmware does."""

    def __init__(self, sdk: Any, ota_url: str, device_id: str, *, has_card: bool) -> None:
        self.device_id = device_id
        self.told: list[dict[str, Any]] = []
        self.played: list[str] = []
        self.made: list[dict[str, Any]] = []
        self._has_card = has_card
        self._playing: set[asyncio.Task[None]] = set()
        self.client = sdk(self._hear, ota_url=ota_url, audio_sample_rate=16_000)

    async def connect(self) -> bool:
        if self._has_card:
            tools = {
                "self.mp3.get_list": lambda _: ([f"{CARD}/{part.name}" for part in PARTS], False),
                # Plain functions: the client copies its tools deeply, a method with its object.
                "self.mp3.play": lambda arguments: self._play(arguments),  # noqa: PLW0108 - see above
                "self.mp3.stop": lambda _: (True, False),
                "self.sd.ensure_app": lambda arguments: self._ensure(arguments),  # noqa: PLW0108 - see above
            }
            await self.client.set_mcp_tool(
                [
                    {"name": name, "description": "", "inputSchema": {}, "tool_func": call}
                    for name, call in tools.items()
                ]
            )
        return bool(await self.client.init_connection(self.device_id))

    async def _hear(self, message: dict[str, Any]) -> None:
        self.told.append(message)

    def _ensure(self, arguments: dict[str, Any]) -> tuple[Any, bool]:
        self.made.append(arguments)
        return True, False

    def _play(self, arguments: dict[str, Any]) -> tuple[Any, bool]:
        path = str(arguments["path"])
        self.played.append(path)
        task = asyncio.get_running_loop().create_task(self._finish(path))
        self._playing.add(task)
        task.add_done_callback(self._playing.discard)
        return True, False

    async def _finish(self, path: str) -> None:
        lasts_ms = next(part.lasts_ms for part in PARTS if path.endswith(part.name))
        await asyncio.sleep(lasts_ms / 1000)
        await self.client.send_text(f"[skill_event]audio.completed|{APP}|{TASK}|{lasts_ms}")

    def streamed(self) -> int:
        return sum(
            message.get("type") == "tts" and message.get("state") == "stop" for message in self.told
        )


@pytest.mark.parametrize("has_card", [False, True], ids=["stock", "card"])
def test_a_stranger_follows_a_whole_lesson(
    sdk: Any, installed: Installed, *, has_card: bool
) -> None:
    """Code, bind, connect, three clips in order with their windows; three turns on the server."""

    async def body() -> None:
        ota_url = await asyncio.to_thread(installed.provisioning)
        device_id = "00:11:22:33:44:55"
        await show_a_code(Toy(sdk, ota_url, device_id, has_card=has_card))
        await asyncio.to_thread(installed.bind_what_is_shown)
        toy = Toy(sdk, ota_url, device_id, has_card=has_card)
        await until_connected(toy)
        try:
            if has_card:
                await until(lambda: len(toy.made) > 0)
            await toy.client.send_text("start reading")
            if has_card:
                await until(lambda: len(toy.played) == len(PARTS))
                assert toy.played == [f"{CARD}/{part.name}" for part in PARTS]
            instance = await until_ended(installed)
        finally:
            await toy.client.close()
        assert (instance["status"], instance["end_reason"]) == ("completed", "list_completed")
        assert (instance["device_id"], instance["mode"]) == (device_id, "SHADOWING")
        turns = [
            (turn["step_index"], turn["prompt_text"], turn["expected_text"], turn["asr_text"])
            for turn in instance["turns"]
        ]
        assert turns == [
            (index, f"{CARD}/{part.name}", part.text, None) for index, part in enumerate(PARTS)
        ]
        wire = json.dumps(toy.told).lower()
        for word in ("score", "passed", "grade", "correct", "threshold"):
            assert word not in wire

    asyncio.run(body())


async def show_a_code(toy: Toy) -> None:
    """Ask until the gateway is linked and gives a code; the socket stays closed to the unbound."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                assert not await toy.connect()
            except Exception as answer:  # noqa: BLE001 - the client raises nothing narrower
                assert "GATEWAY_NOT_READY" in str(answer)  # noqa: PT017 - told to come back
                await asyncio.sleep(0.5)
            else:
                return await toy.client.close()


async def until_connected(toy: Toy) -> None:
    """Connect once the binding has come down the link, as firmware does that asks again."""
    async with asyncio.timeout(PATIENCE_S):
        while not await toy.connect():
            await toy.client.close()
            await asyncio.sleep(0.2)


async def until_ended(installed: Installed) -> Any:
    """Wait for what the gateway uploads once the lesson is over."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await asyncio.to_thread(installed.ended_instance)
            if found is not None:
                return found
            await asyncio.sleep(0.3)
