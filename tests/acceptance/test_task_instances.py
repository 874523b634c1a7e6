"""Task instances over real HTTP: writers that race, on both databases."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from etude.testing.installation import Served
from etude.testing.waiting import PATIENCE_S

WRITERS = 100
STEPS = 5


def instance(step: int, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "device_id": "toy-1",
        "app_id": "reading",
        "task_id": "follow",
        "mode": "SHADOWING",
        "status": "running",
        "started_at": 1_772_000_000_000,
        "turns": [
            {
                "step_index": step,
                "prompt_text": f"/{step:02}.mp3",
                "asr_text": f"said {step}" if metrics else None,
                "metrics": metrics,
                "assessed_at": 1_772_000_009_000 if metrics else None,
            }
        ],
    }


def shown(client: httpx2.Client, instance_id: str) -> Any:
    answer = client.get(f"/task/instance/{instance_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_a_hundred_writers_lose_no_metric_and_no_turn(served: Served) -> None:
    """Late assessments race with the next turns' empty ones: each turn ends with its metrics."""
    instance_id = str(uuid4())
    together = threading.Barrier(WRITERS)
    path = f"/task/instance/{instance_id}"

    with served.client("gateway") as client:

        def write(number: int) -> int:
            step, is_assessed = number % STEPS, number % 4 == 0
            metrics = [{"method": f"m{number}_v1", "value": number}] if is_assessed else []
            together.wait(PATIENCE_S)
            return client.put(path, json=instance(step, metrics)).status_code

        with ThreadPoolExecutor(WRITERS) as pool:
            assert set(pool.map(write, range(WRITERS))) == {200}
        found = shown(client, instance_id)
        assert [turn["step_index"] for turn in found["turns"]] == list(range(STEPS))
        for turn in found["turns"]:
            (metric,) = turn["metrics"]
            assert metric["value"] % STEPS == turn["step_index"]
            assert metric["value"] % 4 == 0
            assert turn["asr_text"] == f"said {turn['step_index']}"
            assert turn["assessed_at"] == 1_772_000_009_000
        for step in range(STEPS):
            assert client.put(path, json=instance(step, [])).status_code == 200
        assert shown(client, instance_id)["turns"] == found["turns"]


@pytest.mark.parametrize("prefix", ["", "/xiaozhi"])
def test_every_failure_is_an_envelope_with_its_true_status(served: Served, prefix: str) -> None:
    """401 as status and in `code`, as the peer's client expects it; never a problem document."""
    path = f"{prefix}/task/instance/{uuid4()}"
    with served.client() as nobody, served.client("gateway") as gateway:
        for answer, status in (
            (nobody.put(path, json={}), 401),
            (nobody.post(f"{prefix}/agent/chat-history/report", json={}), 401),
            (gateway.put(path, json={}), 400),
            (gateway.put(path, content=b"{}"), 415),
            (gateway.get(path), 404),
            (gateway.get(f"{prefix}/task/instances?lerner=anna"), 400),
            (gateway.patch(path), 405),
        ):
            assert answer.status_code == status, answer.text
            assert answer.headers["content-type"] == "application/json"
            assert answer.json().keys() == {"code", "msg", "data"}
            assert answer.json()["code"] == status
