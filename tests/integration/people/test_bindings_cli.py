import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.clock import SystemClock, to_us
from etude.people.bind_codes import note_code
from etude.people.binding_records import PendingBinding
from etude.people.gateway_token import path_of, read_gateway_token
from etude.people.serial_keys import FILE
from etude.store import Database

MAC = "02:00:00:00:00:01"
Shell = Callable[..., tuple[int, Any]]


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
) -> Shell:
    """Runs a command with `--json`; returns its exit code and what it printed."""
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_DATABASE_URL", database_url)

    def run(*arguments: str) -> tuple[int, Any]:
        code = run_command([*arguments, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out.strip() else None

    return run


def show_code(url: str, code: str) -> None:
    now = SystemClock().now()
    pending = PendingBinding(
        code=code,
        device_id=MAC,
        client_id="client-1",
        board="toy",
        version="2.2.6",
        expires_us=to_us(now + timedelta(hours=1)),
    )

    async def main() -> None:
        async with await Database.open(url) as database, database.transaction() as work:
            await note_code(work, pending, now)

    asyncio.run(main())


def test_a_device_is_bound_listed_revoked_and_unbound(shell: Shell, database_url: str) -> None:
    """Each command prints what it did; a code that is used is exit code 1."""
    show_code(database_url, "123456")
    assert shell("device", "codes")[1][0]["code"] == "123456"
    code, bound = shell("device", "bind", "123456", "--name", "Violin 1")
    assert (code, bound["device_id"], bound["rebound"]) == (exits.OK, MAC, False)
    (listed,) = shell("device", "list")[1]
    assert (listed["bound"], listed["online"]) == (True, False)
    assert shell("device", "bind", "123456")[0] == 1
    assert shell("device", "revoke", MAC)[0] == exits.OK
    assert shell("device", "revoke", MAC, "--credential", "c-1")[0] == exits.OK
    assert shell("device", "unbind", MAC)[0] == exits.OK
    assert shell("device", "unbind", MAC)[0] == 1
    assert shell("device", "list")[1][0]["bound"] is False


def test_keys_of_serials_are_imported(shell: Shell, tmp_path: Path) -> None:
    """What is no CSV of serials and keys changes nothing."""
    (tmp_path / "keys").mkdir()
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("serial,key\nSN-1," + "0" * 64 + "\n", "utf-8")
    bad.write_text("SN-2\n", "utf-8")
    assert shell("device", "keys", str(good)) == (exits.OK, {"imported": 1, "kept": 1})
    before = (tmp_path / "keys" / FILE).read_bytes()
    assert shell("device", "keys", str(bad))[0] != exits.OK
    assert shell("device", "keys", str(tmp_path / "none.csv"))[0] != exits.OK
    assert (tmp_path / "keys" / FILE).read_bytes() == before


def test_upgrade_makes_the_gateways_token_and_mends_one_that_does_not_work(
    shell: Shell, tmp_path: Path
) -> None:
    """A token that works stays; a damaged one is replaced."""
    assert shell("upgrade")[0] == exits.OK
    first = read_gateway_token(tmp_path)
    assert path_of(tmp_path).stat().st_mode & 0o077 == 0
    assert shell("upgrade")[0] == exits.OK
    assert read_gateway_token(tmp_path) == first
    path_of(tmp_path).write_text("etd_0_0", "ascii")
    assert shell("upgrade")[0] == exits.OK
    assert read_gateway_token(tmp_path) not in {first, "etd_0_0"}
