"""Task instances over HTTP, in the test's own process, on both databases."""

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.examiner.learner_data import all_learner_data
from etude.files import armed
from etude.people.erasure import erase_learner
from etude.people.records import HOST
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.testing.school import School, body, event
from etude.testing.web import client, service_token, services_for
from etude.web.services import Services

ID = "0b1f6f0e-6a52-4a52-9d0a-2d6a3f0a7c11"
VERDICTS = {"passed", "grade", "good", "bad", "retry_count", "score", "level", "verdict"}


def turn(step: int, **fields: Any) -> dict[str, Any]:
    return {
        "step_index": step,
        "prompt_text": f"/reading/follow/lessons/01/{step:02}.mp3",
        "expected_text": "a red ball",
        "asr_text": "a red bowl",
        "audio_id": "ab" * 32,
        "duration_ms": 3000,
        "window_ms": 3600.5,
        "metrics": [{"method": "text_similarity_v0", "value": 0.9, "unit": "ratio"}],
        "assessed_at": 1_788_000_000_000,
    } | fields


def instance(**fields: Any) -> dict[str, Any]:
    return {
        "device_id": "toy-1",
        "app_id": "reading",
        "task_id": "follow",
        "mode": "SHADOWING",
        "status": "completed",
        "end_reason": "list_completed",
        "started_at": 1_772_000_000_123,
        "ended_at": 1_772_000_090_456,
        "disconnected_at": None,
        "events": [{"type": "audio.completed", "at": 5, "n": [1, {"x": None}]}],
        "turns": [turn(0), turn(1, asr_text=None, metrics=[], assessed_at=None)],
    } | fields


class Tasks:
    """The routes of task instances, asked as a service unless told otherwise."""

    def __init__(self, school: School, services: Services, asking: httpx2.AsyncClient) -> None:
        self.school = school
        self.services = services
        self.asking = asking
        wanted = (Scope.UPLOAD_ON_BEHALF, Scope.SESSIONS_READ)
        self.token = school.run(service_token(school.database, *wanted))

    def __call__(
        self, method: str, path: str, *, token: str | None = None, **named: Any
    ) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        headers |= named.pop("headers", {})
        answer: httpx2.Response = self.school.run(
            self.asking.request(method, path, headers=headers, **named)
        )
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert told.keys() == {"code", "msg", "data"}
        assert (told["code"] == 0) == (answer.status_code == 200)
        return answer

    def put(self, sent: Any, instance_id: str = ID) -> dict[str, Any]:
        answer = self("PUT", f"/task/instance/{instance_id}", json=sent)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()["data"]
        return told

    def get(self, instance_id: str = ID) -> dict[str, Any]:
        answer = self("GET", f"/task/instance/{instance_id}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()["data"]
        return told

    def metrics(self, step: int = 0) -> list[tuple[str, Any]]:
        (found,) = [each for each in self.get()["turns"] if each["step_index"] == step]
        return [(each["method"], each["value"]) for each in found["metrics"]]

    def token_of(self, kind: Any, name: str) -> str:
        async def make() -> str:
            wanted = TokenRequest(
                kind=kind, principal_id=name, scopes=(Scope.SESSIONS_WRITE, Scope.SESSIONS_READ)
            )
            async with self.school.database.transaction() as work:
                made = await create_token(work.connection, wanted, self.school.clock.now())
                return made.text

        made: str = self.school.run(make())
        return made


@pytest.fixture
def tasks(school: School, tmp_path: Path) -> Iterator[Tasks]:
    services = services_for(school.database, tmp_path, clock=school.clock)
    asking = client(services)
    yield Tasks(school, services, school.run(asking.__aenter__()))
    school.run(asking.__aexit__(None, None, None))


def measured(value: float | None, method: str = "cer_v1") -> list[dict[str, Any]]:
    return [{"method": method, "value": value}]


def test_what_was_put_comes_back(tasks: Tasks) -> None:
    """`GET` gives exactly what was put, and the id and learner that the server knows."""
    sent = instance()
    tasks.put(sent)
    assert tasks.get() == sent | {"id": ID, "learner_id": "anna"}


def test_the_same_put_twice_is_stored_once(tasks: Tasks) -> None:
    """Every event of the second one is a duplicate, also below `/xiaozhi`."""
    first = tasks.put(instance())
    again = tasks("PUT", f"/xiaozhi/task/instance/{ID}", json=instance()).json()["data"]
    assert first["duplicates"] == 0
    assert (again["events_stored"], again["duplicates"]) == (0, first["events_stored"])
    assert tasks("GET", f"/xiaozhi/task/instance/{ID}").json()["data"] == tasks.get()


def test_empty_metrics_erase_nothing_and_others_replace(tasks: Tasks) -> None:
    """Missing, null and empty metrics keep what is there; others take its place."""
    tasks.put(instance())
    for nothing in ([], None):
        tasks.put(instance(turns=[turn(0, metrics=nothing, assessed_at=None)]))
        assert tasks.metrics() == [("text_similarity_v0", 0.9)]
    late = turn(0)
    del late["metrics"]
    tasks.put(instance(turns=[late]))
    assert tasks.metrics() == [("text_similarity_v0", 0.9)]
    both = [*measured(0.25), {"method": "pause_ratio_v1", "value": None, "detail": {"reason": "x"}}]
    tasks.put(instance(turns=[turn(0, metrics=both)]))
    assert tasks.get()["turns"][0]["metrics"] == both
    tasks.put(instance(turns=[turn(0, metrics=measured(0.5))]))
    assert tasks.metrics() == [("cer_v1", 0.5)]


def test_a_value_that_comes_back_counts_again(tasks: Tasks) -> None:
    """0.5, 0.8, 0.5 ends at 0.5, for metrics, texts, mode and end alike."""
    for value in (0.5, 0.8, 0.5, 0.8, 0.5):
        sent = instance(
            mode=f"M{value}",
            end_reason=f"r{value}",
            turns=[turn(0, asr_text=f"{value}", metrics=measured(value))],
        )
        tasks.put(sent)
        assert tasks.get() == sent | {"id": ID, "learner_id": "anna"}


def test_null_erases_no_text_and_absent_turns_stay(tasks: Tasks) -> None:
    """The late `PUT` of an old client takes away nothing."""
    tasks.put(instance())
    empty = {name: None for name in turn(0) if name != "step_index"}
    tasks.put(instance(turns=[{"step_index": 0, **empty}, turn(2)]))
    found = tasks.get()
    assert [each["step_index"] for each in found["turns"]] == [0, 1, 2]
    assert found["turns"][0] == turn(0)


def test_an_end_is_not_undone_by_a_late_put(tasks: Tasks) -> None:
    """`running` that comes after `completed` is old news."""
    tasks.put(instance(status="running", end_reason=None, ended_at=None))
    assert tasks.get()["status"] == "running"
    tasks.put(instance())
    tasks.put(instance(status="running", end_reason=None, ended_at=None))
    assert (tasks.get()["status"], tasks.get()["end_reason"]) == ("completed", "list_completed")


def test_a_connection_that_is_back_is_not_lost(tasks: Tasks) -> None:
    """`disconnected_at` stays where it is not named, and goes where it is null."""
    running = {"status": "running", "end_reason": None, "ended_at": None}
    for told in (1_772_000_050_000, None, 1_772_000_050_000):
        tasks.put(instance(**running, disconnected_at=told))
        assert tasks.get()["disconnected_at"] == told
    sent = instance(**running)
    del sent["disconnected_at"]
    tasks.put(sent)
    assert tasks.get()["disconnected_at"] == 1_772_000_050_000


def test_verdicts_are_dropped_wherever_they_stand(tasks: Tasks) -> None:
    """No verdict is stored, shown or exported; the rest of what was put is."""
    judged = dict.fromkeys(VERDICTS, 1)
    detail = {"reason": "off_task", "deep": [judged | {"kept": 2}], **judged}
    tasks.put(
        instance(
            events=[{"type": "x", **judged, "inner": judged}],
            turns=[turn(0, **judged, metrics=[{"method": "m_v1", "value": 1, "detail": detail}])],
            **judged,
        )
    )
    found = tasks.get()
    assert found["events"] == [{"type": "x", "inner": {}}]
    (metric,) = found["turns"][0]["metrics"]
    assert metric["detail"] == {"reason": "off_task", "deep": [{"kept": 2}]}
    lines = b"".join(tasks.school.stored(ID)).decode()
    assert not [word for word in VERDICTS if f'"{word}"' in lines + json.dumps(found)]


def test_unknown_members_are_passed_over_and_other_names_understood(tasks: Tasks) -> None:
    """A peer of another version is served: `steps`, `interaction_mode` and `mac` are its names."""
    sent = instance(future={"a": 1})
    sent["steps"] = [turn(0, future=1)]
    sent["interaction_mode"], sent["mac"] = sent.pop("mode"), sent.pop("device_id")
    del sent["turns"]
    tasks.put(sent)
    found = tasks.get()
    assert (found["mode"], found["device_id"], found["turns"]) == ("SHADOWING", "toy-1", [turn(0)])


def test_equal_events_are_kept_apart_and_lost_ones_stay(tasks: Tasks) -> None:
    """Two events that say the same are two; an event that a later `PUT` leaves out stays."""
    tick = {"type": "tick"}
    tasks.put(instance(events=[tick, tick]))
    tasks.put(instance(events=[tick, tick, {"type": "tock"}]))
    tasks.put(instance(events=[tick]))
    assert tasks.get()["events"] == [tick, tick, {"type": "tock"}]


def practice(session_id: str = "s-1", **start: Any) -> bytes:
    """What a toy writes about a lesson of one clip, shuffled."""
    value = {"app_id": "reading", "task_id": "follow", "mode": "SHADOWING"} | start
    said = {
        "step_index": 0,
        "prompt_text": "/01.mp3",
        "expected_text": "a ball",
        "asr_text": "a bowl",
        "duration_ms": 900,
        "window_ms": 1080,
        "heard": True,
        "audio_id": None,
    }
    ended = {"end_reason": "list_completed", "status": "completed"}
    triple = {"confidence": 1.0, "signal": "read_aloud"}
    events = [
        event(session_id, 5, event_type="session_end", ts=9.0, value=ended),
        event(session_id, 4, event_type="streak", ts=4.0, value={"streak_length": 3}),
        event(session_id, 3, event_type="signal_observation", ts=3.0, value=said, **triple),
        event(
            session_id,
            2,
            event_type="signal_check_requested",
            value={"step_index": 0, "prompt_text": "/01.mp3", "expected_text": "a ball"},
            **triple,
        ),
        event(session_id, 1, event_type="session_start", ts=0.0, value=value),
    ]
    return body(*events)


def test_a_toys_session_is_an_instance_as_soon_as_it_is_stored(tasks: Tasks) -> None:
    """What a toy, phone or browser uploads is shown and listed like what was put."""
    school = tasks.school
    tasks.school.run(
        tasks.asking.post(
            "/api/v1/sessions/s-1/events",
            content=practice(),
            headers={
                "Authorization": f"Bearer {tasks.token_of('device', 'toy-1')}",
                "Content-Type": "application/x-ndjson",
            },
        )
    )
    found = tasks.get("s-1")
    assert (found["status"], found["end_reason"]) == ("completed", "list_completed")
    assert found["ended_at"] - found["started_at"] == 9000
    assert [each["type"] for each in found["events"]] == ["streak"]
    (said,) = found["turns"]
    assert (said["asr_text"], said["window_ms"], said["metrics"]) == ("a bowl", 1080, [])
    listed = tasks("GET", "/task/instances").json()["data"]["items"]
    assert listed == [{k: v for k, v in found.items() if k not in {"events", "turns"}}]
    school.upload(school.device("toy-2"), "music", body(event("music", 1)))
    assert tasks("GET", "/task/instance/music").status_code == 404
    assert len(tasks("GET", "/task/instances").json()["data"]["items"]) == 1


def test_a_list_has_parts_and_is_narrowed(tasks: Tasks) -> None:
    """By learner, device and begin; page by page; own ones only for a device."""
    for number in range(5):
        toy = "toy-1" if number % 2 == 0 else "toy-2"
        begun = 1_772_000_000_000 + number * 1000
        sent = instance(device_id=toy, started_at=begun)
        tasks.put(sent, f"i{number}")

    def ids(token: str | None = None, **query: str) -> list[str]:
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            answer = tasks(
                "GET", "/task/instances", token=token, params={**query, "limit": "2"} | cursor
            )
            told = answer.json()["data"]
            found += [each["id"] for each in told["items"]]
            if told["next_cursor"] is None:
                return found
            cursor = {"cursor": told["next_cursor"]}

    assert ids() == ["i0", "i1", "i2", "i3", "i4"]
    assert ids(learner="anna") == ids(device="toy-1") == ["i0", "i2", "i4"]
    assert ids(since="1772000003000") == ids(since="1772000003") == ["i3", "i4"]
    assert ids(device="toy-2", since="2026-02-25T06:13:20.500Z") == ["i1", "i3"]
    assert ids(token=tasks.token_of("device", "toy-2")) == ["i1", "i3"]
    assert tasks("GET", "/task/instances", params={"since": "soon"}).status_code == 422
    assert tasks("GET", "/task/instances", params={"learner": "zoe"}).status_code == 404


def test_who_may_put_and_see(tasks: Tasks) -> None:
    """A true status and the same number in `code`: 401, 403, 404, and 10041 without a device."""
    path = f"/task/instance/{ID}"
    asked = {
        401: tasks("PUT", path, json=instance(), token="etd_wrong"),
        403: tasks("PUT", path, json=instance(), token=tasks.token_of("device", "toy-1")),
        404: tasks("GET", path),
    }
    for status, answer in asked.items():
        assert (answer.status_code, answer.json()["code"]) == (status, status)
    assert "www-authenticate" in asked[401].headers
    unknown = tasks("PUT", path, json=instance(device_id="toy-9"))
    assert (unknown.status_code, unknown.json()["code"]) == (404, 10041)
    nobody = instance()
    del nobody["device_id"]
    assert tasks("PUT", path, json=nobody).status_code == 403
    tasks.put(instance())
    tasks.put(nobody)  # it is known by now
    assert tasks("PUT", path, json=instance(device_id="toy-2")).status_code == 403
    assert tasks("GET", path, token=tasks.token_of("learner", "ben")).status_code == 404
    assert tasks("GET", path, token=tasks.token_of("learner", "anna")).status_code == 200
    assert tasks("DELETE", path).json()["code"] == 405
    assert tasks("GET", "/task/nothing").json()["code"] == 404


def test_what_was_erased_is_gone_and_refused(tasks: Tasks) -> None:
    """410 for reading, putting and reporting; nothing of it is in any table or list."""
    tasks.put(instance())
    school, services = tasks.school, tasks.services

    async def erase() -> int:
        registry = all_learner_data(school.clock, services.blobs)
        async with school.database.transaction() as work:
            await erase_learner(work, registry, "anna", actor=HOST, now=school.clock.now())
        async with school.database.read() as connection:
            left = await connection.exec_driver_sql("SELECT count(*) FROM task_instance")
            return int(left.scalar_one())

    assert school.run(erase()) == 0
    for method in ("GET", "PUT"):
        answer = tasks(method, f"/task/instance/{ID}", json=instance())
        assert (answer.status_code, answer.json()["code"]) == (410, 410)
    assert tasks("PUT", "/task/instance/new", json=instance()).status_code == 410
    assert tasks("POST", REPORT, json=report(sessionId=ID)).status_code == 410
    assert tasks("GET", "/task/instances").json()["data"]["items"] == []


def test_an_export_has_the_instance_as_it_is_shown(tasks: Tasks) -> None:
    """A learner gets the task beside the lines that it is made of."""
    tasks.put(instance())

    async def files() -> dict[str, bytes]:
        school = tasks.school
        registry = all_learner_data(school.clock, tasks.services.blobs)
        found = {}
        async for file in registry.export_learner(school.database, school.learners["anna"]):
            found[file.path] = b"".join([chunk async for chunk in file.chunks])
        return found

    found = tasks.school.run(files())
    assert json.loads(found[f"sessions/{ID}/instance.json"]) == tasks.get()
    assert found[f"sessions/{ID}/events.jsonl"]


REPORT = "/agent/chat-history/report"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(28)


def report(**fields: Any) -> dict[str, Any]:
    return {
        "macAddress": "toy-1",
        "sessionId": "s-chat",
        "chatType": 1,
        "content": "我想听故事",
        "audioBase64": base64.b64encode(WAV).decode(),
        "reportTime": 1_772_000_000_123,
    } | fields


def test_a_report_is_an_event_with_its_recording(tasks: Tasks) -> None:
    """The answer names the recording, which a turn may then use; twice is once."""
    for path in (REPORT, "/xiaozhi" + REPORT):
        told = tasks("POST", path, json=report()).json()["data"]
    assert told["ok"] is True
    (line,) = tasks.school.stored("s-chat")
    said = json.loads(line)
    assert (said["event_type"], said["signal"]) == ("chat_message", "user")
    assert said["value"]["reported_at"] == 1_772_000_000_123
    assert said["meta"]["media"] == [{"sha256": told["audio_id"]}]
    assert tasks.school.run(tasks.services.blobs.read(told["audio_id"])) == WAV
    tasks.put(instance(turns=[turn(0, audio_id=told["audio_id"])]), "s-chat")
    assert tasks.get("s-chat")["turns"][0]["audio_id"] == told["audio_id"]


def test_a_report_that_was_cut_short_is_whole_when_it_is_sent_again(tasks: Tasks) -> None:
    """Ended between event and recording, it was not answered; the second one doubles nothing."""

    def crash(reached: str) -> None:
        if reached == "sessions.media.stored":
            message = "the end of the process"
            raise OSError(message)

    with armed(crash):
        assert tasks("POST", REPORT, json=report()).status_code == 500
    told = tasks("POST", REPORT, json=report()).json()["data"]
    assert len(tasks.school.stored("s-chat")) == 1
    assert tasks.school.run(tasks.services.blobs.read(told["audio_id"])) == WAV


def test_the_time_of_a_report_is_seconds_or_milliseconds(tasks: Tasks) -> None:
    """By magnitude; without one, equal words at two times are two events."""
    plain = report(audioBase64=None)
    tasks("POST", REPORT, json=plain | {"reportTime": 1_772_000_000})
    tasks("POST", REPORT, json=plain | {"reportTime": 1_772_000_000_000})
    assert [json.loads(line)["value"]["reported_at"] for line in tasks.school.stored("s-chat")] == [
        1_772_000_000_000
    ]
    del plain["reportTime"]
    for _ in range(2):
        answer = tasks("POST", REPORT, json=plain)
        assert answer.json()["data"] == {"ok": True, "audio_id": None}
        tasks.school.clock.advance(1)
    assert len(tasks.school.stored("s-chat")) == 3


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"macAddress": "toy-9"}, 404, 10041),
        ({"chatType": 4}, 400, 400),
        ({"content": " \n"}, 400, 400),
        ({"audioBase64": "!"}, 422, 422),
        ({"audioBase64": base64.b64encode(b"ID3 and so on").decode()}, 422, 422),
        ({"sessionId": "a/b"}, 400, 400),
        ({"reportTime": -1}, 400, 400),
    ],
)
def test_a_report_that_cannot_be_kept_is_refused(
    tasks: Tasks, fields: dict[str, Any], status: int, code: int
) -> None:
    """Nothing is stored; an unknown device is `data: false`, as with the peer's own server."""
    answer = tasks("POST", REPORT, json=report(**fields))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["data"] is (False if code == 10041 else None)
    with pytest.raises(KeyError):
        tasks.school.row("s-chat")


def nested(depth: int) -> bytes:
    inner = '{"a":' * depth + "1" + "}" * depth
    return json.dumps(instance(events=["DEEP"])).replace('"DEEP"', inner).encode()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"\xff", 400),
        (b'{"app_id":"a","task_id":"\\ud800"}', 400),
        (json.dumps(instance(status="graded")).encode(), 400),
        (json.dumps(instance(started_at=2**70)).encode(), 400),
        (json.dumps(instance(started_at=-5)).encode(), 400),
        (json.dumps(instance(turns=[turn(-1)])).encode(), 400),
        (json.dumps(instance(turns=[turn(10**9)])).encode(), 400),
        (json.dumps(instance(turns=[turn(0, metrics="no")])).encode(), 400),
        (json.dumps(instance(turns=[turn(0, metrics=[{"method": "a b"}])])).encode(), 400),
        *((nested(depth), 422) for depth in (100, 330, 480)),
        (json.dumps(instance(events=[{"n": 2**63}])).encode(), 422),
        (json.dumps(instance(events=[{"n": 2**53 + 1}])).encode(), 422),
        (json.dumps(instance(turns=[turn(0, asr_text="x" * 70_000)])).encode(), 422),
        (json.dumps(instance(events=[{}] * 20_001)).encode(), 413),
        (json.dumps(instance(pad="x" * (8 * 1024 * 1024))).encode(), 413),
    ],
)
def test_hostile_bodies_are_refused_in_the_envelope(
    tasks: Tasks, content: bytes, status: int
) -> None:
    """A 4xx with code and words, never a 5xx, and nothing is stored."""
    headers = {"Content-Type": "application/json"}
    answer = tasks("PUT", f"/task/instance/{ID}", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, status), answer.text
    assert answer.json()["msg"]
    with pytest.raises(KeyError):
        tasks.school.row(ID)


def test_texts_that_only_one_database_takes_are_stored_on_both(tasks: Tasks) -> None:
    """Control characters in texts come back as they were put."""
    sent = instance(app_id="a\u0000b", turns=[turn(0, asr_text="nul \u0000 and 😀")])
    instance_id = str(uuid.uuid4())
    tasks.put(sent, instance_id)
    assert tasks.get(instance_id) == sent | {"id": instance_id, "learner_id": "anna"}
