"""A real mosquitto of a test's own, and boards that listen to it as the control messages say."""

import asyncio
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiomqtt

from etude.cli.stopping import end
from etude.testing.ports import free_port

DEADLINE_S: Final = 60.0
_PLACES: Final = ("/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto")


class NoMosquitto(Exception):  # noqa: N818 - a state of the machine, no failure of the product
    """The machine has no mosquitto."""


def find_mosquitto() -> str:
    """Return the program; raises `NoMosquitto`."""
    found = shutil.which("mosquitto") or next((one for one in _PLACES if Path(one).exists()), None)
    if found is None:
        raise NoMosquitto
    return found


class Mosquitto:
    """A broker on a port of its own, which stays the same when it is stopped and started."""

    def __init__(self, folder: Path) -> None:
        """Describe it; `start` or `with` starts it. Its configuration goes into `folder`."""
        self.port = free_port()
        self._program = find_mosquitto()
        self._file = folder / "mosquitto.conf"
        self._file.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The value of `ETUDE_MQTT_URL`."""
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return once it listens."""
        self._process = subprocess.Popen(  # noqa: S603 - the system's own program, found above
            [self._program, "-c", str(self._file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until_s = time.monotonic() + DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if time.monotonic() > until_s or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(DEADLINE_S)
            self._process = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()


class Board:
    """A board on a broker: takes actions on its topic and acknowledges them. `async with` it.

    >>> async with Board(broker.port, "toy-1") as board:
    ...     await control.send_action("toy-1", …)
    ...     assert board.done == [{"action": "SET_ALARM", …}]
    """

    def __init__(
        self,
        port: int,
        device_id: str,
        *,
        topic: str = "snlp/{device_id}/ctl",
        ack: Mapping[str, Any] | None = None,
        ack_topic: str = "snlp/{device_id}/ctl/ack",
    ) -> None:
        """Describe it. `ack` is added to each acknowledgement; `silent` boards send none.

        Args:
            port: the broker's, on this machine.
            device_id: which board it is.
            topic: where it listens.
            ack: members of its acknowledgements.
            ack_topic: where it acknowledges.
        """
        self.done: list[dict[str, Any]] = []
        self.heard: list[dict[str, Any]] = []
        self.silent = False
        self._port = port
        self._topic = topic.replace("{device_id}", device_id)
        self._ack_topic = ack_topic.replace("{device_id}", device_id)
        self._ack = {"code": 0, "msg": "ok"} | dict(ack or {})
        self._client: aiomqtt.Client | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Connect and listen."""
        self._client = await aiomqtt.Client("127.0.0.1", self._port).__aenter__()
        await self._client.subscribe(self._topic, qos=1)
        self._task = asyncio.create_task(self._listen(self._client))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave."""
        if self._task is not None and self._client is not None:
            await end(self._task)
            await self._client.__aexit__(None, None, None)

    async def say(self, text: str | bytes) -> None:
        """Publish anything on the board's acknowledgement topic."""
        if self._client is not None:
            await self._client.publish(self._ack_topic, text, qos=1)

    async def _listen(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            heard: dict[str, Any] = json.loads(bytes(message.payload))
            known = [one.get("msg_id") for one in self.done]
            self.heard.append(heard)
            if heard.get("msg_id") not in known:
                self.done.append(heard)
            if not self.silent:
                echoed = {name: heard[name] for name in ("msg_id", "action") if name in heard}
                await self.say(json.dumps(echoed | self._ack))
