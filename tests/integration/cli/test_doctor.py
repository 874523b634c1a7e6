"""`etude doctor` and `etude upgrade` as commands: exit codes, JSON, and nothing else on stdout."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from etude.cli.installation import make_folder, make_keys
from etude.files import Files, replace_file
from etude.people.gateway_token import path_of
from etude.store import newest_revision
from etude.testing.waiting import run_bounded


def etude(data: Path, *arguments: str, code: int = 0) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_")}
    ports = dict.fromkeys(("ETUDE_PORT", "ETUDE_GATEWAY_PORT", "ETUDE_GATEWAY_HTTP_PORT"), "0")
    own = {"ETUDE_DATA": str(data), "LC_ALL": "C.UTF-8"} | ports
    ended = run_bounded(
        [sys.executable, "-m", "etude", *arguments],
        env=environment | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def data(tmp_path: Path, sqlite_url: str) -> Path:
    """A sound installation."""
    folder = tmp_path / "data"
    make_folder(Files(), folder)
    make_keys(Files(), folder)
    replace_file(Files(), path_of(folder), b"a token\n")
    Path(sqlite_url.removeprefix("sqlite:///")).rename(folder / "etude.db")
    return folder


def states(shown: str) -> dict[str, Any]:
    found = json.loads(shown)
    assert found["ok"] == all(check["state"] != "failed" for check in found["checks"])
    return {check["name"]: check["state"] for check in found["checks"]}


def test_a_sound_installation_passes(data: Path) -> None:
    """Every check is ok (room on the disk apart), and the exit code is 0."""
    found = states(etude(data, "doctor", "--json"))
    assert {state for name, state in found.items() if name != "disk"} == {"ok"}
    assert len(found) == 13


def test_what_is_broken_is_named(data: Path) -> None:
    """An open key, no token and no database fail with exit code 1; the rest is still checked."""
    (data / "keys" / "device-token.key").chmod(0o644)
    (data / "etude.db").unlink()
    path_of(data).unlink()
    shown = etude(data, "doctor", "--json", code=1)
    failed = {name for name, state in states(shown).items() if state == "failed"}
    assert failed == {"keys", "gateway_token", "database"}


def test_a_person_reads_what_to_do(data: Path) -> None:
    """Without `--json` there is one line a check and a verdict, in the language asked for."""
    data.chmod(0o755)
    shown = etude(data, "--locale", "zh-CN", "doctor", code=1)
    assert f"chmod 700 {data}" in shown
    assert "需要修复" in shown


def test_upgrade_says_what_it_did(data: Path, tmp_path: Path) -> None:
    """On the newest schema nothing changes; on an empty database everything is made."""
    newest = newest_revision()
    shown = json.loads(etude(data, "upgrade", "--json"))
    assert shown == {"before": newest, "after": newest, "changed": False}
    (data / "etude.db").unlink()
    shown = json.loads(etude(data, "upgrade", "--json"))
    assert shown == {"before": None, "after": newest, "changed": True}
    assert etude(tmp_path / "nowhere", "upgrade", code=4) == ""
