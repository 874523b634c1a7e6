"""A course written by a model, as a school uses it: real processes, real HTTP, real kills."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.testing.fake_author import CourseModel
from etude.testing.fake_llm import Hangs
from etude.testing.leases import pass_leases
from etude.testing.nursery import Nursery
from etude.testing.server import DEADLINE_S, ServerProcess
from etude.testing.waiting import ended

TOKEN = "t" * 40
CALLS = 1 + 4 * 7


class School:
    """A school that has a model: its commands and processes."""

    def __init__(self, data: Path, url: str, nursery: Nursery) -> None:
        self.data = data
        self.nursery = nursery
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("ETUDE_")},
            "ETUDE_DATA": str(data),
            "ETUDE_COURSEWARE_PUBLISH_TOKEN": TOKEN,
            "ETUDE_LLM_URL": url,
            "ETUDE_LLM_MODEL": "small",
            "ETUDE_LLM_KEY": "sk-of-the-school",
            "ETUDE_LLM_PRICES": "small=1/2",
            "ETUDE_SPEECH_PROCESSES": "0",
        }

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "etude", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, *words: str, check: int = 0, **more: str) -> str:
        environment = self.environment | more
        done = self.nursery.run(*words, environment=environment, given="a password for tests\n")
        assert done.returncode == check, done.stderr
        assert "sk-of-the-school" not in done.stdout + done.stderr
        return done.stdout if check == 0 else done.stderr


@pytest.fixture
def model() -> CourseModel:
    return CourseModel()


@pytest.fixture
def school(tmp_path: Path, model: CourseModel, nursery: Nursery) -> Iterator[School]:
    with model.serve() as url:
        made = School(tmp_path / "data", url, nursery)
        made.run("init")
        yield made


def killed_while_asking(model: CourseModel, process: subprocess.Popen[bytes]) -> None:
    """Kill a process while the model has its question and has not answered."""
    assert model.hung.acquire(timeout=DEADLINE_S)
    process.send_signal(signal.SIGKILL)
    ended(process)


def until(done: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


def test_killed_twice_a_course_is_made_published_and_paid_once(
    school: School, model: CourseModel, tmp_path: Path
) -> None:
    """From a sentence to a verified bundle over two kill -9: two calls more than without them."""
    about = "The way of water, for children"
    made = json.loads(school.run("course", "create", "--author", "llm", "--about", about, "--json"))
    course = made["course_id"]
    assert (made["status"], made["title"]) == ("framework_ready", "How water travels")
    assert made["silent_sentences"] == ["practice"]

    model.play("scene:quiz", Hangs('{"questions":'))
    killed_while_asking(model, school.begin("course", "start", course, "--without-audio"))
    pass_leases(school.data)
    model.play("scene:pbl", Hangs())
    killed_while_asking(model, school.begin("worker"))
    pass_leases(school.data)
    worker = school.begin("worker")
    try:
        done = until(
            lambda: (
                (now := json.loads(school.run("course", "status", course, "--json")))["status"]
                in {"succeeded", "failed"}
                and now
            )
        )
    finally:
        worker.terminate()
        ended(worker)
    assert done["status"] == "succeeded", done
    assert len(model.asked) == CALLS + 2
    assert {one.headers["authorization"] for one in model.asked} == {"Bearer sk-of-the-school"}

    rows = json.loads(school.run("course", "calls", course, "--json", "--answers"))
    assert Counter(one["state"] for one in rows) == {"answered": CALLS, "asked": 2}
    assert all((one["answer"] is None) == (one["state"] == "asked") for one in rows)
    usage = done["usage"]
    assert (usage["calls"], usage["estimated"]) == (CALLS + 2, True)
    assert usage["cost"] > CALLS * (11 + 2 * 7) / 1e6

    published = json.loads(school.run("course", "publish", course, "--json"))
    with ServerProcess(tmp_path / "data") as server:
        for pin in published["modules"]:
            path = f"/api/coursewares/{pin['coursewareId']}/bundles/{pin['coursewareVersion']}"
            bundle = tmp_path / "module.zip"
            bundle.write_bytes(httpx2.get(f"{server.url}{path}/download").content)
            assert "sha256:" in school.run("bundle", "verify", str(bundle))


def test_a_wrong_key_and_a_spent_budget_are_said(school: School, model: CourseModel) -> None:
    """Exit code 1 and the code that helps; nothing is asked that could cost too much."""
    words = ("course", "create", "--author", "llm", "--about", "Water")
    said = school.run(*words, check=1, ETUDE_COURSE_BUDGET="tokens=500")
    assert "COURSE_BUDGET_SPENT" in said
    assert model.asked == []
    assert "SETTING_NOT_PAIRS" in school.run(*words, check=2, ETUDE_COURSE_BUDGET="much")
    assert "COURSE_OPTION_UNAVAILABLE" in school.run(*words, "--web-search", check=1)
    assert "AUTHOR_UNKNOWN" in school.run(*words, check=1, ETUDE_LLM_URL="")


def test_cancelling_over_http_closes_the_model_s_connection(
    school: School, model: CourseModel, tmp_path: Path
) -> None:
    """While a worker reads an answer, cancel ends the run; the model sees the reader go in 2 s."""
    scope = ("--scope", "operate")
    token = json.loads(school.run("token", "create", "service", "desk", *scope, "--json"))["token"]
    environment = {k: v for k, v in school.environment.items() if k.startswith("ETUDE_")}
    model.play("course-framework", Hangs('{"courseTitle":'))
    with ServerProcess(tmp_path / "data", environment=environment) as server:
        client = httpx2.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        with client:
            wanted = {"author": "llm", "requirement": "The way of water"}
            made = client.post("/api/courses", json=wanted)
            assert made.status_code == 201, made.text
            path = f"/api/courses/{made.json()['courseId']}"
            worker = school.begin("worker")
            try:
                assert model.hung.acquire(timeout=DEADLINE_S)
                began = time.monotonic()
                assert client.post(f"{path}/cancel").json()["status"] == "cancelled"
                assert model.left.acquire(timeout=DEADLINE_S)
                took_s = time.monotonic() - began
            finally:
                worker.terminate()
                ended(worker)
            assert client.get(path).json()["run"]["state"] == "cancelled"
            assert took_s < 2 * _crowded()


def _crowded() -> float:
    """How much longer things may take where other work is on the cores."""
    return max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
