"""`etude serve`, `web` and `worker` refuse to start with one typed line and a documented code."""

import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from etude.cli import exits
from etude.cli.app import run
from etude.i18n import text

COMMANDS = ("serve", "web", "worker")


@pytest.fixture(autouse=True)
def _clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting from outside; the logs of this process are put back afterwards."""
    for name in list(os.environ):
        if name.startswith("ETUDE_") and not name.startswith("ETUDE_TEST_"):
            monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    interrupt = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, interrupt)
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_setting_ends_it(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and the variable is named."""
    monkeypatch.setenv("ETUDE_PORT", "http")
    assert run([command]) == exits.USAGE
    assert "ETUDE_PORT" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_data_folder_it_names_init(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 4; nothing is created by accident."""
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path / "none"))
    assert run([command]) == exits.UNAVAILABLE
    assert "etude init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_an_old_schema_ends_it(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 4 before anything is served, with the store's own message."""
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_PORT", "0")
    assert run([command]) == exits.UNAVAILABLE
    assert "SCHEMA_BEHIND" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "web"])
def test_an_address_in_use_ends_it(
    command: str,
    sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 4 with the system's reason, in the reader's language."""
    monkeypatch.setenv("ETUDE_DATA", str(Path(sqlite_url.removeprefix("sqlite:///")).parent))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["--locale", "zh-CN", command, "--port", str(port)]) == exits.UNAVAILABLE
    shown = capsys.readouterr().err
    assert "ADDRESS_UNUSABLE" in shown
    assert (
        text("error.ADDRESS_UNUSABLE", "zh-CN", host="127.0.0.1", port=port, reason="")[:5] in shown
    )


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_an_address_of_somebody_else_ends_it(
    host: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that means nothing, an address that is not this machine's: the same typed line."""
    monkeypatch.setenv("ETUDE_DATA", str(Path(sqlite_url.removeprefix("sqlite:///")).parent))
    assert run(["web", "--host", host, "--port", "0"]) == exits.UNAVAILABLE
    assert "ADDRESS_UNUSABLE" in capsys.readouterr().err
