"""One simulated device at a running gateway, in real time: `etude device simulate`."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx2
import msgspec

from etude.errors import EtudeError
from etude.gateway.ports import ListenMode
from etude.speech.audio import duration_ms
from etude.speech.clip_cache import ClipCache
from etude.testing.device_ota import NotProvisionedError, Provisioned, activated, ask, socket_place
from etude.testing.device_socket import DeviceRefusedError
from etude.testing.device_sound import ClipBook
from etude.testing.fake_card import FakeCard
from etude.testing.fake_device import FakeDevice, Manners, NoHelloError, Seen
from etude.testing.learner_voice import Voices
from etude.testing.learners_acting import SCRIPTS, ActingLearner, Part

CODE_S: Final = 3.0
"""How often an unbound device asks whether its code was typed."""
_SETTLED_S: Final = 0.5
_CLIPS: Final = "*.mp3"


class VisitError(Exception):
    """The device could not connect; the text says why."""


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated: see the options of `etude device simulate`."""

    device_id: str
    ota: str | None
    socket: str | None
    token: str
    protocol: int
    listen: str
    card: Path | None
    lesson: Path | None
    learner: str
    start: str
    seconds: float


async def pay(visit: Visit, tell: Callable[[str], None]) -> list[Seen]:
    """Connect, stay, leave; return the timeline, in seconds from the connection.

    Args:
        visit: what is wanted.
        tell: called with a line for everything that happens, and with the code to bind.

    Raises:
        VisitError: an option cannot be used, or the gateway cannot be reached or refuses.
    """
    device = _device(visit)
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    def line(seen: Seen) -> None:
        tell(f"{seen.at_s - began_s:9.3f}\t{seen.what}\t{seen.detail}")

    device.watchers.append(line)
    place = await _find(visit, device, tell)
    device.token = place.token or visit.token
    device.manners = msgspec.structs.replace(device.manners, protocol=place.protocol)
    try:
        await device.connect(place.host, place.port, place.path)
    except (DeviceRefusedError, NoHelloError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise VisitError(reason) from error
    await asyncio.sleep(_SETTLED_S)
    if visit.start:
        device.wake(visit.start)
    else:
        device.listen()
    await asyncio.sleep(visit.seconds)
    device.leave()
    return [msgspec.structs.replace(seen, at_s=seen.at_s - began_s) for seen in device.timeline]


async def _find(visit: Visit, device: FakeDevice, tell: Callable[[str], None]) -> Provisioned:
    """Ask OTA where to go, waiting for somebody to type the code; or take `--socket`."""
    try:
        if visit.ota is None:
            place = socket_place(visit.socket or "")
            return msgspec.structs.replace(place, protocol=visit.protocol)
        async with httpx2.AsyncClient() as client:
            told = await ask(client, visit.ota, device)
            while told.code:
                tell(f"code\t{told.code}")
                for _ in range(10):
                    await asyncio.sleep(CODE_S)
                    if await activated(client, visit.ota, device):
                        break
                told = await ask(client, visit.ota, device)
            return told
    except (NotProvisionedError, httpx2.HTTPError) as error:
        raise VisitError(str(error)) from error


def _device(visit: Visit) -> FakeDevice:
    if visit.learner not in SCRIPTS or visit.listen not in set(ListenMode):
        reason = f"{visit.learner} / {visit.listen}: {', '.join([*SCRIPTS, *ListenMode])}"
        raise VisitError(reason)
    manners = Manners(protocol=visit.protocol, listen=ListenMode(visit.listen))
    try:
        card = FakeCard(dict(_on_card(visit.card))) if visit.card else None
        parts = tuple(_parts(visit.lesson)) if visit.lesson else ()
        cache = ClipCache(None)
        book = {part.name: cache.encode(_of(visit, part)).packets for part in parts}
    except (EtudeError, OSError) as error:
        raise VisitError(str(error)) from error
    device = FakeDevice(visit.device_id, manners=manners, card=card, book=ClipBook(book))
    if parts:
        ActingLearner(device, SCRIPTS[visit.learner], parts, Voices())
    return device


def _of(visit: Visit, part: Part) -> Path:
    return (visit.lesson or Path()) / part.name


def _on_card(root: Path) -> Iterator[tuple[str, int]]:
    for file in sorted(root.rglob(_CLIPS)):
        yield f"/{file.relative_to(root).as_posix()}", duration_ms(file)


def _parts(folder: Path) -> Iterator[Part]:
    for file in sorted(folder.glob(_CLIPS)):
        text = file.with_suffix(".txt")
        said = text.read_text("utf-8").strip() if text.exists() else file.stem
        yield Part(name=file.name, text=said, lasts_ms=duration_ms(file))
