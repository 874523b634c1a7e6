"""What `etude doctor` sees and says."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from etude.cli import checks
from etude.cli.installation import KEYS, make_folder, make_keys
from etude.files import Files, replace_file
from etude.i18n import LOCALES, catalogue
from etude.people.gateway_token import path_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    make_folder(Files(), folder)
    make_keys(Files(), folder)
    return folder


def outcome(check: checks.Check) -> tuple[str, str]:
    assert all(check.message(locale) for locale in LOCALES)
    return check.state, check.finding


def test_old_versions_are_found() -> None:
    """Python before 3.11 and SQLite before 3.35 fail, newer ones pass."""
    assert outcome(checks.check_python((3, 10, 14))) == ("failed", "failed")
    assert outcome(checks.check_python((3, 11, 0))) == ("ok", "ok")
    assert outcome(checks.check_sqlite((3, 34, 1))) == ("failed", "failed")
    assert outcome(checks.check_sqlite((3, 35, 0))) == ("ok", "ok")


def test_a_missing_extra_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the settings need is missed."""
    monkeypatch.setattr(checks, "EXTRAS", {"server": "litestar", "postgres": "no_such_module"})
    assert outcome(checks.check_extras("sqlite:///x")) == ("ok", "ok")
    missing = checks.check_extras("postgresql://x")
    assert outcome(missing) == ("failed", "failed")
    assert "pip install 'etude[postgres]'" in missing.message("en")


def test_the_data_folder_is_there_and_closed(data: Path) -> None:
    """A missing folder, a file in its place and an open folder fail."""
    assert outcome(checks.check_data_folder(data)) == ("ok", "ok")
    assert outcome(checks.check_data_folder(data / "none")) == ("failed", "away")
    assert outcome(checks.check_data_folder(data / "keys" / KEYS[0])) == ("failed", "away")
    data.chmod(0o750)
    assert outcome(checks.check_data_folder(data)) == ("failed", "open")


def test_the_keys_are_there_whole_and_closed(data: Path) -> None:
    """A missing, an open and a cut key fail."""
    assert outcome(checks.check_keys(data)) == ("ok", "ok")
    key = data / "keys" / KEYS[0]
    key.chmod(0o640)
    assert outcome(checks.check_keys(data)) == ("failed", "open")
    key.chmod(0o600)
    os.truncate(key, 5)
    assert outcome(checks.check_keys(data)) == ("failed", "broken")
    key.unlink()
    assert outcome(checks.check_keys(data)) == ("failed", "away")


@pytest.mark.parametrize(("free_mib", "state"), [(5000, "ok"), (500, "warning"), (50, "failed")])
def test_room_on_the_disk(
    data: Path, monkeypatch: pytest.MonkeyPatch, free_mib: int, state: str
) -> None:
    """Little room is a warning, next to none a failure; the folder need not exist yet."""
    usage = type("Usage", (), {"free": free_mib * 2**20})
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _path: usage)
    assert checks.check_disk(data / "not" / "yet").state == state


def test_a_database_that_is_not_there_is_no_new_one(tmp_path: Path) -> None:
    """Looking does not create the file."""
    path = tmp_path / "etude.db"
    assert outcome(checks.check_database(f"sqlite:///{path}")) == ("failed", "away")
    assert not path.exists()


def test_a_taken_port_is_found() -> None:
    """A port that somebody else listens on fails; a free one passes."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        assert outcome(checks.check_port("127.0.0.1", port)) == ("failed", "taken")
    assert outcome(checks.check_port("127.0.0.1", port)) == ("ok", "ok")


def test_the_gateways_token_is_there_and_closed(data: Path) -> None:
    """A missing, an empty and an open file fail; what is in it is never shown."""
    assert outcome(checks.check_gateway_token(data)) == ("failed", "away")
    path_of(data).write_bytes(b"\n")
    assert outcome(checks.check_gateway_token(data)) == ("failed", "away")
    replace_file(Files(), path_of(data), b"secret\n")
    assert outcome(checks.check_gateway_token(data)) == ("ok", "ok")
    path_of(data).chmod(0o644)
    opened = checks.check_gateway_token(data)
    assert outcome(opened) == ("failed", "open")
    assert "secret" not in opened.message("en")


@pytest.mark.parametrize("name", ["gateway", "provisioning"])
def test_the_gateways_ports_are_looked_at(name: str) -> None:
    """A free one says that the gateway does not run, one of somebody else fails."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        assert outcome(checks.check_port("127.0.0.1", port, name)) == ("failed", "taken")
    assert outcome(checks.check_port("127.0.0.1", port, name)) == ("ok", "ok")


def test_a_clock_before_the_installation_is_wrong() -> None:
    """A device that woke up in 1970 is told so."""
    installed = NOW - timedelta(days=1)
    assert outcome(checks.check_clock(NOW, installed)) == ("ok", "ok")
    assert outcome(checks.check_clock(datetime(1970, 1, 1, tzinfo=UTC), installed)) == (
        "failed",
        "failed",
    )


def test_the_catalogues_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language that lacks a message fails."""
    assert outcome(checks.check_catalogues()) == ("ok", "ok")
    monkeypatch.setattr(checks, "catalogue", lambda locale: {locale: ""})
    assert outcome(checks.check_catalogues()) == ("failed", "failed")


def test_every_finding_has_its_message() -> None:
    """No message below `cli.doctor` belongs to a finding that no check makes, by name."""
    source = Path(checks.__file__).read_text("utf-8")
    for key in catalogue("en"):
        if key.startswith("cli.doctor.") and key.count(".") == 3:
            name = key.split(".")[2]
            assert f'"{name}"' in source, key
