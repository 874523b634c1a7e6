"""A whole installation with toys in it: web and gateway as processes that can be killed.

Every toy is bound and has an app, a lesson and a voice of its own (`Playmate`), so that it can be
told what any of them is sent, says, and is filed with. What came of it is read back over HTTP.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import msgspec

from etude.cli.init import Wish, set_up
from etude.clock import SystemClock, to_us
from etude.files import Files
from etude.i18n import LOCALES
from etude.net import tls_context
from etude.people.bind_codes import MAX_LIFE, note_code
from etude.people.binding_records import PendingBinding
from etude.people.bindings import BindRequest, bind_device
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.practice.lesson_folders import LESSONS
from etude.practice.prompts import Prompts, load_prompts
from etude.practice.records import Prompt
from etude.settings import Settings, load
from etude.speech.clip_cache import ClipCache
from etude.store import Database
from etude.testing.fake_device import FakeDevice
from etude.testing.learner_voice import Voices
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import LOWEST_HZ, write_lesson
from etude.testing.nursery import ForkedProcess, Nursery
from etude.testing.ogg import opus_packets
from etude.testing.playmate import PATIENCE_S, Own, Playmate
from etude.testing.ports import free_port

LESSON_ID: Final = "unit1"
_HOST: Final = "127.0.0.1"
_CLIP_MS: Final = 300
_LOOK_S: Final = 0.4
_TONES_AN_OCTAVE: Final = 120


class Playroom:
    """See the module. The data folder is made at once; `start_web` and `start_gateway` run it."""

    def __init__(
        self, folder: Path, database_url: str, nursery: Nursery, *, toys: int, steps: int
    ) -> None:
        """Set up an installation in `folder/data` on a migrated database.

        Every second toy has a card; the protocols take turns.
        """
        self.settings: Settings = load(data=folder / "data", database_url=database_url)
        self.voices = Voices()
        self.web: ForkedProcess | None = None
        self.gateway: ForkedProcess | None = None
        self._nursery = nursery
        self._ports = {name: free_port() for name in ("PORT", "GATEWAY_PORT", "GATEWAY_HTTP_PORT")}
        self._owns = tuple(self._furnished(toys, steps))
        self._operator = asyncio.run(self._bound())

    @property
    def url(self) -> str:
        """Where web is."""
        return f"http://{_HOST}:{self._ports['PORT']}"

    @property
    def ota_url(self) -> str:
        """Where devices ask."""
        return f"http://{_HOST}:{self._ports['GATEWAY_HTTP_PORT']}/xiaozhi/ota/"

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process of the installation is told."""
        return {
            "ETUDE_DATA": str(self.settings.data),
            "ETUDE_DATABASE_URL": self.settings.database_url,
            "ETUDE_HOST": _HOST,
            "ETUDE_GATEWAY_HOST": _HOST,
            "ETUDE_LOG_FORMAT": "json",
        } | {f"ETUDE_{name}": str(port) for name, port in self._ports.items()}

    def toys(self) -> list[Playmate]:
        """Return every toy, switched on anew. In the loop they are to live in."""
        return [
            Playmate(own, self.voices, has_card=bool(number % 2), protocol=1 + number % 3)
            for number, own in enumerate(self._owns)
        ]

    def start_web(self) -> None:
        """Start web, and return once it answers."""
        self.web = self._nursery.start("etude.cli.app", "web", environment=self.environment)
        self._until_healthy(self.url, self.web)

    def start_gateway(self, crash_at: str = "") -> None:
        """Start the gateway, and return once it answers."""
        environment = {**self.environment, "ETUDE_CRASH_AT": crash_at}
        self.gateway = self._nursery.start("etude.cli.app", "gateway", environment=environment)
        self._until_healthy(self.ota_url.partition("/xiaozhi")[0], self.gateway)

    def gateway_log(self, action: str) -> list[Mapping[str, Any]]:
        """Return the lines of one action that gateways and webs of this room have logged."""
        assert self.gateway is not None, "not started"  # noqa: S101 - a mistake in a test
        lines = (line for line in self.gateway.log_text().splitlines() if line.startswith("{"))
        found = (msgspec.json.decode(line) for line in lines)
        return [line for line in found if line.get("action") == action]

    # What came of it

    def get(self, path: str) -> httpx2.Response:
        """Ask web as an operator."""
        headers = {"Authorization": f"Bearer {self._operator}"}
        return httpx2.get(
            self.url + path, headers=headers, timeout=60.0, trust_env=False, verify=tls_context()
        )

    def instances(self, device_id: str) -> list[dict[str, Any]]:
        """Return the heads of a toy's instances."""
        answer = self.get(f"/task/instances?device={device_id}&limit=200")
        assert answer.status_code == httpx2.codes.OK, answer.text  # noqa: S101 - the test's own claim
        heads: list[dict[str, Any]] = answer.json()["data"]["items"]
        return heads

    def instance(self, instance_id: str) -> dict[str, Any]:
        """Return an instance with its turns."""
        answer = self.get(f"/task/instance/{instance_id}")
        assert answer.status_code == httpx2.codes.OK, answer.text  # noqa: S101 - the test's own claim
        whole: dict[str, Any] = answer.json()["data"]
        return whole

    def events(self, session_id: str) -> list[dict[str, Any]]:
        """Return the events of a session as they are stored."""
        answer = self.get(f"/api/v1/sessions/{session_id}/events")
        assert answer.status_code == httpx2.codes.OK, answer.text  # noqa: S101 - the test's own claim
        return [msgspec.json.decode(line) for line in answer.content.splitlines()]

    def recording(self, session_id: str, sha256: str) -> list[bytes]:
        """Return the packets of an uploaded recording."""
        answer = self.get(f"/api/v1/sessions/{session_id}/media/{sha256}")
        assert answer.status_code == httpx2.codes.OK, answer.text  # noqa: S101 - the test's own claim
        return opus_packets(answer.content)

    @contextlib.asynccontextmanager
    async def practising(self, toys: Sequence[Playmate]) -> AsyncIterator[None]:
        """Let every toy practise, and come back when it is cut off, as long as the block lasts.

        A toy that gives up ends the block with its reason: whoever waits for it there would wait
        for ever.
        """
        async with httpx2.AsyncClient(trust_env=False, verify=tls_context()) as client:
            block, reasons = asyncio.current_task(), list[BaseException]()

            def left(task: asyncio.Task[None]) -> None:
                reason = None if task.cancelled() else task.exception()
                if reason is not None and block is not None:
                    reasons.append(reason)
                    block.cancel()

            staying = [asyncio.create_task(toy.stay(client, self.ota_url)) for toy in toys]
            for task in staying:
                task.add_done_callback(left)
            try:
                yield
            except asyncio.CancelledError:
                if not reasons or block is None:
                    raise
                block.uncancel()
                raise reasons[0] from None
            finally:
                for task in staying:
                    task.remove_done_callback(left)
                    task.cancel()
                await asyncio.gather(*staying, return_exceptions=True)
                for toy in toys:
                    toy.scrap()

    async def until_ended(self, toys: Sequence[Playmate], count: int = 1) -> None:
        """Wait until web has `count` instances of each toy that are over.

        Raises:
            TimeoutError: it has not within `PATIENCE_S`; the text is what the toys saw last.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                for toy in toys:
                    while await asyncio.to_thread(self._ended, toy.device_id) < count:  # noqa: ASYNC110 - web
                        await asyncio.sleep(_LOOK_S)
        except TimeoutError as error:
            lines = [f"{toy.device_id}: {toy.timeline[-10:]}" for toy in toys]
            raise TimeoutError("\n".join(lines)) from error

    def _ended(self, device_id: str) -> int:
        try:
            heads = self.instances(device_id)
        except httpx2.TransportError:
            return 0
        return sum(head["status"] != "running" for head in heads)

    def __enter__(self) -> Self:
        """Nothing runs yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill what runs."""
        for process in (self.gateway, self.web):
            if process is not None:
                process.kill()

    # Furnishing

    def _furnished(self, toys: int, steps: int) -> Iterator[Own]:
        self.settings.apps.mkdir(parents=True)
        cache = ClipCache(self.settings.clips)
        prompts = load_prompts(cache)
        sentences = dict(_sentences(prompts))
        for number in range(toys):
            app_id, entry = f"toy{number:02}", f"read lesson {number:02}"
            parts = tuple(
                Part(name=f"{step + 1:02}.mp3", text=f"toy {number} {step}", lasts_ms=_CLIP_MS)
                for step in range(steps)
            )
            place = Path(app_id) / "reading" / LESSONS / LESSON_ID
            folder = self.settings.lessons / place
            write_lesson(folder, parts, LOWEST_HZ * 2 ** (number / _TONES_AN_OCTAVE))
            (self.settings.apps / f"{app_id}.yaml").write_text(
                f"app_id: {app_id}\ntasks:\n- task_id: reading\n  mode: SHADOWING\n"
                f"  entry_phrases: [{entry}]\n  assessment: {{enabled: true}}\n"
            )
            clips = {part.name: cache.encode(folder / part.name).packets for part in parts}
            yield Own(
                device_id=f"02:00:00:00:00:{number:02x}",
                app_id=app_id,
                task_id="reading",
                entry=entry,
                parts=parts,
                clips=clips | sentences,
                folder=f"/{place}",
            )

    async def _bound(self) -> str:
        """Make keys and people, bind every toy; return an operator's token."""
        wish = Wish(operator="operator", password="not a secret", device="unused")  # noqa: S106 - a test's
        await set_up(self.settings, wish, lambda _: None, Files(), SystemClock())
        return await bound(self.settings, [own.device_id for own in self._owns])

    def _until_healthy(self, url: str, process: ForkedProcess) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                if httpx2.get(
                    f"{url}/health", trust_env=False, timeout=10.0, verify=tls_context()
                ).is_success:
                    return
            except httpx2.TransportError:
                pass
            if time.monotonic() > until_s or not process.running():
                raise TimeoutError(process.log_text())
            time.sleep(0.02)


async def bound(settings: Settings, device_ids: Sequence[str]) -> str:
    """Bind simulated devices, as typing their codes does; return an operator's token."""
    now = SystemClock().now()
    async with (
        await Database.open(settings.database_url, connections=1) as database,
        database.transaction() as work,
    ):
        for number, device_id in enumerate(device_ids):
            pending = PendingBinding(
                code=f"{number:06}",
                device_id=device_id,
                client_id=FakeDevice(device_id).client_id,
                board="",
                version="",
                expires_us=to_us(now + MAX_LIFE),
            )
            await note_code(work, pending, now)
            await bind_device(work, BindRequest(code=pending.code), actor=HOST, now=now)
        request = TokenRequest(kind="service", principal_id="watcher", scopes=(Scope.OPERATE,))
        return (await create_token(work.connection, request, now)).text


def _sentences(prompts: Prompts) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    for prompt in Prompt:
        spoken = (prompts(prompt, locale) for locale in LOCALES)
        yield prompt.value, tuple(packet for one in spoken if one for packet in one.clip.packets)
