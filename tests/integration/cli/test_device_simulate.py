"""`etude device simulate`: scenarios by name and file, and a device at a real port."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.cli import exits, logs
from etude.cli.app import run
from etude.clock import SystemClock
from etude.testing.learners_acting import Part
from etude.testing.practice_gateway import PracticeGateway
from etude.testing.scenarios import ENTRY, shipped
from etude.testing.waiting import joined


@pytest.fixture
def gateway_port(tmp_path: Path) -> Iterator[int]:
    """A gateway in a thread with a real clock; its lesson has one clip."""
    logs.configure("error", process="test")
    ready, over = threading.Event(), threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        gateway = PracticeGateway(tmp_path, [Part(name="01.mp3", text="Hello", lasts_ms=300)])
        await gateway.open(SystemClock())
        ports.append(gateway.server.port)
        ready.set()
        await asyncio.to_thread(over.wait)
        await gateway.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        assert ready.wait(60)
        yield ports[0]
    finally:
        over.set()
        joined(thread)


def test_a_scenario_that_holds_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """By name, as JSON: the claim, that it holds, and the timeline."""
    assert run(["device", "simulate", "--scenario", "repeater", "--json"]) == exits.OK
    (result,) = json.loads(capsys.readouterr().out)
    assert result["holds"]
    assert result["problems"] == []
    assert any(seen["what"] == "clip" for seen in result["timeline"])


def test_a_scenario_that_does_not_hold_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a file, with a bound that cannot be met: exit code 1, and the difference in words."""
    file = tmp_path / "mine.yaml"
    text = dict(shipped())["repeater"].replace("within_ms: [1000, 1300]", "within_ms: [0, 1]")
    file.write_text(text, "utf-8")
    assert run(["device", "simulate", "--scenario", str(file)]) == exits.REFUSED
    said = capsys.readouterr().out
    assert said.startswith("FAILED")
    assert "clip_over 01.mp3: after" in said


def test_a_scenario_that_is_not_there_or_broken_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither is a traceback."""
    assert run(["device", "simulate", "--scenario", "nosuch"]) == exits.NOT_FOUND
    file = tmp_path / "broken.yaml"
    file.write_text("claim: [", "utf-8")
    assert run(["device", "simulate", "--scenario", str(file)]) == exits.REFUSED
    assert "Traceback" not in capsys.readouterr().err


def test_nobody_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A gateway that does not answer is no defect."""
    assert run(["device", "simulate", "--socket", "ws://127.0.0.1:9/"]) == exits.UNAVAILABLE
    assert run(["device", "simulate", "--ota", "http://127.0.0.1:9/"]) == exits.UNAVAILABLE
    assert "SIMULATION_FAILED" in capsys.readouterr().err


def test_it_practises_at_a_real_port(
    gateway_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In real time: the device says hello, is sent the lesson, and tells what it hears."""
    lesson = next(tmp_path.glob("lessons/*/*/lessons/*"))
    arguments = [
        *("device", "simulate", "--socket", f"ws://127.0.0.1:{gateway_port}/xiaozhi/v1/"),
        *("--lesson", str(lesson), "--start", f"[voice_entry]{ENTRY}", "--seconds", "5"),
        *("--protocol", "2", "--json"),
    ]
    assert run(arguments) == exits.OK
    timeline = json.loads(capsys.readouterr().out)
    seen = [(one["what"], one["detail"]) for one in timeline]
    assert ("clip", "01.mp3") in seen
    assert seen[-1] == ("left", "")
