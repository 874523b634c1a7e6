from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.clock import to_us
from etude.people.bind_codes import note_code
from etude.people.binding_records import PendingBinding
from etude.people.device_credentials import KEY_FILE, DeviceKey, issue
from etude.people.scopes import Scope
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.web import client, service_token, services_for
from etude.web import people, sessions, uploads
from etude.web.services import Services

Run = Callable[[Coroutine[Any, Any, Any]], Any]
MAC = "02:00:00:00:00:01"
KEY = DeviceKey(b"k" * 32)


class Api:
    def __init__(self, services: Services, asking: httpx2.AsyncClient, run: Run) -> None:
        self.services = services
        self.asking = asking
        self.run = run
        self.token = run(service_token(services.database, Scope.OPERATE))

    def __call__(self, method: str, path: str, *, token: str | None = None, **named: Any) -> Any:
        headers = {"Authorization": f"Bearer {token or self.token}"} | named.pop("headers", {})
        return self.run(self.asking.request(method, f"/api/v1{path}", headers=headers, **named))

    def shows(self, code: str = "123456", client_id: str = "client-1") -> None:
        now = self.services.clock.now()
        pending = PendingBinding(
            code=code,
            device_id=MAC,
            client_id=client_id,
            board="toy",
            version="2.2.6",
            expires_us=to_us(now) + 60_000_000,
        )

        async def note() -> None:
            async with self.services.database.transaction() as work:
                await note_code(work, pending, now)

        self.run(note())


@pytest.fixture
def api(database: Database, run: Run, tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / KEY_FILE).write_bytes(KEY.secret)
    services = services_for(database, tmp_path, clock=ManualClock())
    handlers = [*people.route_handlers, *uploads.route_handlers, *sessions.route_handlers]
    asking = client(services, handlers)
    yield Api(services, run(asking.__aenter__()), run)
    run(asking.__aexit__(None, None, None))


def test_a_device_is_bound_shown_and_unbound(api: Api) -> None:
    """The code is listed, binds once, and the list of devices says so until it is taken back."""
    api.shows()
    (shown,) = api("GET", "/bind-codes").json()
    assert (shown["code"], shown["device_id"], shown["board"]) == ("123456", MAC, "toy")
    answer = api("POST", "/devices/bind", json={"code": "123456", "name": "Violin 1"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "device_id": MAC,
        "name": "Violin 1",
        "rebound": False,
        "learner_id": None,
    }
    assert api("GET", "/devices").json()["items"][0]["bound"] is True
    again = api("POST", "/devices/bind", json={"code": "123456"})
    assert (again.status_code, again.json()["code"]) == (409, "BIND_CODE_USED")
    assert api("POST", f"/devices/{MAC}/unbind").status_code == 204
    assert api("GET", f"/devices/{MAC}").json()["bound"] is False
    gone = api("POST", f"/devices/{MAC}/unbind")
    assert (gone.status_code, gone.json()["code"]) == (409, "DEVICE_NOT_BOUND")


def test_codes_are_no_guessing_game(api: Api) -> None:
    """Without `operate` nobody binds; what is no code is told from a wrong one."""
    api.shows()
    learners = api.run(service_token(api.services.database, Scope.LEARNERS_READ, name="school"))
    for method, path in (("POST", "/devices/bind"), ("GET", "/bind-codes")):
        body = {"json": {"code": "123456"}} if method == "POST" else {}
        assert api(method, path, token=learners, **body).status_code == 403
    for body, status in (({"code": "1"}, 400), ({}, 400), ({"code": "999999"}, 404)):
        assert api("POST", "/devices/bind", json=body).status_code == status


def test_a_device_uploads_with_its_credential_until_it_is_revoked(api: Api) -> None:
    """Web takes what the gateway issued; a revocation counts from the next request."""
    api.shows()
    api("POST", "/devices/bind", json={"code": "123456"})
    credential = issue(KEY, MAC, "client-1", api.services.clock.now(), "c-1")
    line = (
        b'{"event_id":"e1","session_id":"s1","ts":1.0,"event_type":"session_start",'
        b'"signal":"session","value":{},"confidence":1.0}\n'
    )

    def upload() -> Any:
        headers = {"Content-Type": "application/x-ndjson"}
        return api("POST", "/sessions/s1/events", token=credential, content=line, headers=headers)

    first = upload()
    assert first.status_code == 200, first.text
    assert (first.json()["events_received"], first.json()["events_rejected"]) == (1, 0)
    forged = credential[:-4] + "AAAA"
    assert api("GET", "/sessions/s1", token=forged).status_code == 401
    revoked = api("POST", f"/devices/{MAC}/revoke-credentials", json={"credential_id": "c-1"})
    assert revoked.status_code == 204
    assert upload().status_code == 401
    assert api("POST", f"/devices/{MAC}/revoke-credentials", json={}).status_code == 204
