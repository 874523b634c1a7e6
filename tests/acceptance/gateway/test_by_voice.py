"""The whole gateway with ears, a voice and a model, each behind a server on the loopback.

In real time, because engines are processes; every wait is for what must come, however late.
"""

import asyncio
import io
import json
import math
import threading
import wave
from array import array
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from pathlib import Path

import httpx2
import msgspec
import pytest

from etude.cli.gateway import Gateway, open_gateway
from etude.cli.installation import make_folder, make_keys
from etude.clock import SystemClock
from etude.files import Files, replace_file
from etude.gateway.known_devices import FILE, KnownDevices
from etude.people.binding_records import Binding
from etude.people.gateway_token import path_of
from etude.practice.lesson_build import check_lesson
from etude.practice.lesson_install import install_lesson
from etude.settings import Settings, load
from etude.testing import device_ota
from etude.testing.fake_device import FakeDevice
from etude.testing.fake_llm import FakeModel, Says
from etude.testing.learner_voice import Voices
from etude.testing.ports import free_port
from etude.testing.simulation import read_sessions
from etude.testing.waiting import joined

DEVICE = "02:00:00:00:02:01"
LESSON = ("english_learning", "shadowing", "greetings")
PATIENCE_S = 120.0
AGAIN_S = 12.0


class SpeechServer:
    """Hears what it is told was said; hums whatever it is to say."""

    def __init__(self) -> None:
        self.hears = ""
        self.said: list[str] = []

    def hum(self) -> bytes:
        samples = array("h", (round(6000 * math.sin(n / 9)) for n in range(8_000)))
        written = io.BytesIO()
        with wave.open(written, "wb") as file:
            file.setparams((1, 2, 16_000, len(samples), "NONE", ""))
            file.writeframes(samples.tobytes())
        return written.getvalue()


@pytest.fixture
def speech() -> Iterator[tuple[SpeechServer, str]]:
    server = SpeechServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/transcriptions"):
                content = json.dumps({"text": server.hears}).encode()
            else:
                server.said.append(json.loads(body)["input"])
                content = server.hum()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    yield server, f"http://127.0.0.1:{listening.server_address[1]}/v1"
    listening.shutdown()
    listening.server_close()
    joined(thread)


def settings_of(tmp_path: Path, speech_url: str, model_url: str) -> Settings:
    made = load(
        data=tmp_path / "data",
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=f"http://127.0.0.1:{free_port()}",
        speech_processes=1,
        speech_recogniser="any",
        speech_recogniser_url=speech_url,
        speech_voice="any/any",
        speech_voice_url=speech_url,
        llm_url=model_url,
        llm_model="any",
    )
    make_folder(Files(), made.data)
    make_keys(Files(), made.data)
    replace_file(Files(), path_of(made.data), b"nobody-asks-for-it\n")
    with as_file(files("etude.practice") / "sample_lessons") as shipped:
        app_id, task_id, lesson_id = LESSON
        folder = shipped / app_id / task_id / "lessons" / lesson_id
        install_lesson(check_lesson(folder), made.lessons, app_id, task_id)
    return made


async def bind(settings: Settings) -> None:
    make_folder(Files(), settings.gateway)
    known = KnownDevices(settings.gateway / FILE, SystemClock())
    client_id = FakeDevice(DEVICE).client_id
    binding = Binding(device_id=DEVICE, device_key=1, client_id=client_id)
    await known.replace_bindings([msgspec.Raw(msgspec.json.encode(binding))])


async def come(gateway: Gateway, device: FakeDevice) -> None:
    url = f"http://127.0.0.1:{gateway.http_port}/xiaozhi/ota/"
    async with httpx2.AsyncClient(trust_env=False) as client:
        told = await device_ota.ask(client, url, device)
    device.token = told.token
    await device.connect(told.host, told.port, told.path)
    device.listen()


async def speak_until(device: FakeDevice, true: Callable[[], bool]) -> None:
    """Say something again and again until it has been understood; engines may still be starting."""
    packets = Voices().say("whatever", 600)
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            device.speak(packets)
            for _ in range(round(AGAIN_S / 0.05)):
                if true():
                    break
                await asyncio.sleep(0.05)


def seen(device: FakeDevice, what: str) -> list[str]:
    return [one.detail for one in device.timeline if one.what == what]


def begun(settings: Settings) -> int:
    """How many sessions the gateway has begun to record."""
    return len(read_sessions(settings.gateway / "journals"))


def test_a_toy_is_talked_with_and_starts_a_lesson_when_asked(
    tmp_path: Path, speech: tuple[SpeechServer, str]
) -> None:
    """What is said reaches the model, whose sentences are spoken; a phrase starts its task."""
    server, speech_url = speech
    model = FakeModel(usual=Says("I like cats. Do you?"))

    async def play(settings: Settings) -> None:
        await bind(settings)
        async with open_gateway(settings) as gateway:
            device = FakeDevice(DEVICE)
            await come(gateway, device)
            server.hears = "Tell me something."
            await speak_until(device, lambda: len(seen(device, "sentence")) >= 2)
            assert seen(device, "stt")[0] == "Tell me something."
            assert seen(device, "sentence")[:2] == server.said[:2] == ["I like cats.", "Do you?"]
            assert model.asked[0].body["messages"][-1]["content"] == "Tell me something."
            server.hears = "Start reading!"
            await speak_until(device, lambda: begun(settings) == 1)
            device.scrap()

    with model.serve() as model_url:
        asyncio.run(play(settings_of(tmp_path, speech_url, model_url)))
