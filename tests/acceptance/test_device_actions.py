"""Actions from outside: web and gateway are processes, and are killed (`docs/rules.md 44`)."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.linked_process import asked, launch
from etude.testing.nursery import ForkedProcess, Nursery

CARD = "self.sd.ensure_app"
FOLDERS = {
    "action": "ENSURE_APP_DIRS",
    "payload": {"app_id": "english", "tasks": ["a", "b"]},
    "msg_id": "m-1",
}
START = {
    "action": "START_APP_TASK",
    "payload": {"app": "english", "task": "shadowing"},
    "msg_id": "m-1",
}
PATIENCE_S = 120.0


class Scene:
    def __init__(self, folder: Path, nursery: Nursery, web: KillableServer) -> None:
        self.folder = folder
        self.web = web
        self.client = web.client("operator")
        self._nursery = nursery
        self._processes: list[ForkedProcess] = []
        self._token = ""

    def start(self, crash_at: str = "") -> None:
        self.web.start(crash_at)
        self._token = self._token or self._gateway_token()

    def gateway(self, *tools: str, crash_at: str = "") -> ForkedProcess:
        port = int(self.web.url.rpartition(":")[2])
        process = launch(
            self._nursery, self.folder, "g1", port, self._token, *tools, crash_at=crash_at
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        self.client.close()
        for process in self._processes:
            process.kill()
        self.web.kill()

    def act(self, body: dict[str, Any]) -> None:
        assert self.client.post("/api/v1/devices/toy-1/actions", json=body).status_code == 202

    def state(self) -> dict[str, Any]:
        return dict(self.client.get("/api/v1/devices/toy-1/actions/m-1").json())

    def online(self) -> bool:
        return bool(self.client.get("/api/v1/devices/toy-1/presence").json()["online"])

    def wait(self, holds: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until_s
            time.sleep(0.05)

    def _gateway_token(self) -> str:
        wanted = {"kind": "service", "principal_id": "link", "scopes": ["gateway:link"]}
        answer = self.client.post("/api/v1/tokens", json=wanted)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


@pytest.fixture
def scene(tmp_path: Path, nursery: Nursery, sqlite_copy: Callable[[Path], str]) -> Iterator[Scene]:
    """A web process of the test's own, not started, and room for a gateway."""
    data = tmp_path / "data"
    data.mkdir()
    web = KillableServer(nursery, furnish(data, sqlite_copy(data)))
    made = Scene(tmp_path, nursery, web)
    yield made
    made.close()


def test_folders_are_made_though_the_gateway_was_killed_before_it_asked(scene: Scene) -> None:
    """Begun and not answered: the next process of the gateway does it."""
    scene.start()
    killed = scene.gateway(CARD, crash_at="gateway.command.begun")
    scene.act(FOLDERS)
    killed.wait()
    assert asked(scene.folder) == []
    scene.gateway(CARD)
    scene.wait(lambda: scene.state()["state"] == "done")
    assert asked(scene.folder) == [f"{CARD} a", f"{CARD} b"]


def test_what_was_done_is_not_done_again_though_nobody_was_told(scene: Scene) -> None:
    """Killed between doing and answering: asked again, the gateway answers and does nothing."""
    scene.start()
    killed = scene.gateway(crash_at="gateway.command.answered")
    scene.act(START)
    killed.wait()
    assert asked(scene.folder) == ["start english shadowing"]
    scene.gateway()
    scene.wait(lambda: scene.state()["state"] == "done")
    assert asked(scene.folder) == ["start english shadowing"]


def test_a_task_that_may_have_been_started_is_not_started_twice(scene: Scene) -> None:
    """Killed before the answer was noted: the caller is told that nobody knows."""
    scene.start()
    killed = scene.gateway(crash_at="gateway.command.begun")
    scene.act(START)
    killed.wait()
    scene.gateway()
    scene.wait(lambda: scene.state()["state"] == "refused")
    assert scene.state()["code"] == 3
    assert asked(scene.folder) == []


def test_a_web_killed_with_an_action_open_finishes_it_after_its_restart(scene: Scene) -> None:
    """The command is a row, and the gateway links again by itself."""
    scene.start()
    scene.act(FOLDERS)
    scene.web.kill()
    scene.gateway(CARD)
    scene.start()
    scene.wait(lambda: scene.state()["state"] == "done")
    assert scene.online()
    scene.web.kill()
    scene.start()
    scene.wait(scene.online)
    assert asked(scene.folder) == [f"{CARD} a", f"{CARD} b"]


def test_a_killed_gateway_is_offline(scene: Scene) -> None:
    """Its devices are not shown as connected any more."""
    scene.start()
    process = scene.gateway()
    scene.wait(scene.online)
    process.kill()
    scene.wait(lambda: not scene.online())


@pytest.mark.parametrize(
    "point", ["people.command.added", "people.command.claimed", "people.command.settled"]
)
def test_a_web_killed_at_a_write_loses_and_doubles_nothing(scene: Scene, point: str) -> None:
    """Whoever asked repeats it with the same `msg_id`, and it is done once."""
    scene.start(crash_at=point)
    scene.gateway(CARD)
    with suppress(httpx2.TransportError):
        scene.act(FOLDERS)
    scene.web.wait()
    scene.start()
    scene.act(FOLDERS)
    scene.wait(lambda: scene.state()["state"] == "done")
    assert asked(scene.folder) == [f"{CARD} a", f"{CARD} b"]
