"""A toy from its box to its socket, with `etude serve` and its three kinds of process."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from etude.testing.installation import Installation, furnish
from etude.testing.server import ServerProcess
from etude.testing.waiting import run_bounded

TOY = {"Device-Id": "02:00:00:00:00:01", "Client-Id": "5c9d3f0e-2f4e-4ad6-8c55-1f2a7f6f0a01"}
OTA = "/xiaozhi/ota/"
PATIENCE_S = 120.0


class Scene:
    """An installation that serves, and a toy that asks it."""

    def __init__(self, server: ServerProcess, installation: Installation) -> None:
        self.server = server
        self.operator = installation.client(server.url, "operator")
        line = server.wait_for("gateway.listening")
        self.http = f"http://127.0.0.1:{line['http_port']}"
        self.data = installation.data

    def ask(self, path: str = OTA, **headers: str) -> httpx2.Response:
        return httpx2.post(self.http + path, json={}, headers=TOY | headers, trust_env=False)

    def code(self) -> str:
        """The code that the toy shows, once web and gateway know each other."""
        answer = self.until(lambda: self.ask().status_code == 200 and self.ask().json())
        code: str = answer["activation"]["code"]
        self.until(
            lambda: (
                code in {each["code"] for each in self.operator.get("/api/v1/bind-codes").json()}
            )
        )
        return code

    def knock(self, answer: dict[str, Any], **headers: str) -> int:
        """Return 101 if the toy is let in, else the status of the refusal."""
        token = {"Authorization": f"Bearer {answer['websocket']['token']}"}
        try:
            with connect(
                answer["websocket"]["url"], additional_headers=TOY | token | headers, proxy=None
            ):
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    def until(self, holds: Callable[[], Any]) -> Any:
        end_s = time.monotonic() + PATIENCE_S
        while True:
            found = holds()
            if found:
                return found
            assert time.monotonic() < end_s
            time.sleep(0.1)


@pytest.fixture
def scene(tmp_path: Path, sqlite_copy: Callable[[Path], str]) -> Iterator[Scene]:
    installation = furnish(tmp_path, sqlite_copy(tmp_path))
    upgrade = [sys.executable, "-m", "etude", "upgrade", "--data", str(tmp_path)]
    run_bounded(upgrade, check=True, capture_output=True)
    with ServerProcess(
        tmp_path, command="serve", environment={"ETUDE_WEB_PROCESSES": "1"}
    ) as server:
        scene = Scene(server, installation)
        with scene.operator:
            yield scene


def test_from_the_box_to_the_socket_and_out_again(scene: Scene) -> None:
    """Unknown it shows a code; bound it connects; unbound it is refused and shows a code again."""
    code = scene.code()
    assert scene.ask(f"{OTA}activate").status_code == 202
    assert scene.knock(scene.ask().json()) == 401
    bound = scene.operator.post(
        "/api/v1/devices/bind", json={"code": code, "name": "Violin 1", "learner_id": "anna"}
    )
    assert bound.status_code == 200, bound.text
    scene.until(lambda: scene.ask(f"{OTA}activate").status_code == 200)
    answer = scene.ask().json()
    assert "activation" not in answer
    assert scene.knock(answer) == 101
    assert scene.knock(answer, **{"Device-Id": "02:00:00:00:00:02"}) == 403
    stranger = scene.ask(**{"Client-Id": "somebody-else"}).json()
    assert stranger["websocket"]["token"] == ""
    assert (scene.data / "gateway" / "known-devices.json").stat().st_mode & 0o077 == 0
    assert scene.operator.post(f"/api/v1/devices/{TOY['Device-Id']}/unbind").status_code == 204
    scene.until(lambda: scene.knock(answer) == 403)
    assert "activation" in scene.ask().json()
    for secret in (answer["websocket"]["token"], code):
        assert secret not in scene.server.log_text()
