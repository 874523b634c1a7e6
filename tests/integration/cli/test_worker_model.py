"""The worker with a model: started as a person starts it, on a real installation."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from etude.cli.exits import USAGE
from etude.testing.waiting import PATIENCE_S, put_down, run_bounded

ETUDE = [sys.executable, "-m", "etude"]
WORKER = [*ETUDE, "worker"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    made = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "ETUDE_DATA": str(tmp_path / "data"),
        "ETUDE_LLM_URL": "http://127.0.0.1:9/v1",
        "ETUDE_LLM_KEY": "sk-secret",
    }
    run_bounded([*ETUDE, "init"], env=made, capture_output=True, check=True)
    return made


def test_the_worker_works_with_a_model_that_is_away(environment: dict[str, str]) -> None:
    """It starts without asking anything, ends in order, and its log has no key."""
    asking = environment | {"ETUDE_LLM_MODEL": "small", "ETUDE_LOG_FORMAT": "json"}
    asking["PYTHONFAULTHANDLER"] = "1"
    worker = subprocess.Popen(  # noqa: S603 - our own command
        WORKER, env=asking, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    overdue = Timer(PATIENCE_S, put_down, (worker,))  # its stacks come, then the end
    overdue.start()
    try:
        assert worker.stdout is not None
        lines = []
        while not any("worker.started" in line for line in lines):
            line = worker.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
        worker.send_signal(signal.SIGTERM)
        rest, _ = worker.communicate(timeout=60)
    finally:
        overdue.cancel()
        worker.kill()
    assert worker.returncode == 0, rest
    assert "sk-secret" not in "".join(lines) + rest


def test_half_a_configuration_is_said_at_the_start(environment: dict[str, str]) -> None:
    """An address without a model's name: exit code 2, and the variable is named."""
    done = run_bounded(
        WORKER,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == USAGE
    assert "ETUDE_LLM_MODEL" in done.stderr
    assert "sk-secret" not in done.stdout + done.stderr
