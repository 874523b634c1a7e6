import asyncio
import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run as run_command
from etude.people.passwords import verify_password
from etude.people.staff import password_hash_of
from etude.people.tokens import authenticate
from etude.store import Database

Command = Callable[..., Any]


class Shell:
    """Runs commands on a database of its own, as a person at a terminal would."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.url = url

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = run_command(arguments)
        written = self._capsys.readouterr()
        return code, written.out, written.err

    def json(self, *arguments: str, stdin: str = "") -> Any:
        """Run with `--json`; return what stdout holds, which is one document and nothing else."""
        code, out, err = self.run(*arguments, "--json", stdin=stdin)
        assert code == exits.OK, err
        return json.loads(out)

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """Await `question(connection)` on the database."""

        async def main() -> Any:
            async with await Database.open(self.url) as database, database.read() as connection:
                return await question(connection)

        return asyncio.run(main())


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
) -> Shell:
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_DATABASE_URL", database_url)
    monkeypatch.delenv("ETUDE_CRASH_AT", raising=False)
    return Shell(monkeypatch, capsys, database_url)


def test_a_learner_from_the_first_day_to_the_last(shell: Shell, tmp_path: Path) -> None:
    """Created, listed, exported, erased: each answer is data, and afterwards nobody is there."""
    made = shell.json("learner", "create", "爱达", "--locale", "en")
    assert not any(name.endswith("_key") for name in made)
    assert shell.json("learner", "list") == [made]
    target = tmp_path / "export.zip"
    written = shell.json("learner", "export", made["learner_id"], "--out", str(target))
    assert written == {"file": str(target), "bytes": target.stat().st_size}
    with zipfile.ZipFile(target) as archive:
        assert json.loads(archive.read("learner.json"))["display_name"] == "爱达"
    erased = shell.json("learner", "erase", made["learner_id"], "--yes")
    assert erased == {"status": "erased", "files": "cleared"}
    assert shell.json("learner", "list") == []
    code, out, err = shell.run("learner", "erase", made["learner_id"], "--yes")
    assert (code, out) == (exits.NOT_FOUND, "")
    assert "LEARNER_ERASED" in err


def test_an_erasure_is_asked_for_and_can_be_declined(shell: Shell) -> None:
    """Without a yes nothing is erased."""
    made = shell.json("learner", "create", "Ada")
    code, out, err = shell.run("learner", "erase", made["learner_id"], stdin="n\n")
    assert (code, out) != (exits.OK, "")
    assert made["learner_id"] in err
    assert shell.json("learner", "list") == [made]


def test_an_export_does_not_overwrite(shell: Shell, tmp_path: Path) -> None:
    """A file that is there stays, and the message names it."""
    made = shell.json("learner", "create", "Ada")
    target = tmp_path / "mine.zip"
    target.write_bytes(b"mine")
    code, _, err = shell.run("learner", "export", made["learner_id"], "--out", str(target))
    assert code == exits.REFUSED
    assert str(target) in err
    assert target.read_bytes() == b"mine"


def test_a_device_is_held_and_given_back(shell: Shell) -> None:
    """The list says who has it now; a conflict names the other and is exit code 1."""
    ada = shell.json("learner", "create", "Ada")["learner_id"]
    ben = shell.json("learner", "create", "Ben")["learner_id"]
    made = shell.json("device", "create", "toy-1", "--name", "Toy 1")
    assert shell.json("device", "list") == [
        made | {"holder": None, "bound": False, "online": False}
    ]
    held = shell.json("device", "hold", "toy-1", ada, "--since", "2026-01-01T00:00:00+08:00")
    assert (held["starts_at"], held["ends_at"]) == ("2025-12-31T16:00:00Z", None)
    assert shell.json("device", "list")[0]["holder"] == ada
    code, _, err = shell.run("device", "hold", "toy-1", ben, "--since", "2025-01-01T00:00:00Z")
    assert code == exits.REFUSED
    assert "HOLDER_OVERLAP" in err
    shell.json("device", "release", "toy-1")
    assert shell.json("device", "list")[0]["holder"] is None


@pytest.mark.parametrize("time", ["yesterday", "2026-01-01T00:00:00"])
def test_a_time_without_its_zone_is_refused(shell: Shell, time: str) -> None:
    """A time that names no instant is a mistake that is told, and nothing happens."""
    ada = shell.json("learner", "create", "Ada")["learner_id"]
    shell.json("device", "create", "toy-1")
    code, out, err = shell.run("device", "hold", "toy-1", ada, "--since", time)
    assert code in {exits.USAGE, exits.REFUSED}
    assert (out, time in err) == ("", True)
    assert shell.json("device", "list")[0]["holder"] is None


def test_a_device_without_an_id_is_given_one(shell: Shell) -> None:
    """Who has no serial number to type gets an id."""
    made = shell.json("device", "create")
    assert made["device_id"] == made["name"]


def test_staff_get_a_password_that_is_not_shown(shell: Shell) -> None:
    """The password comes from a pipe, is stored as a hash, and can be replaced."""
    made = shell.json("user", "create", "li", "--role", "teacher", stdin="correct horse\n")
    assert (made["staff_id"], made["role"]) == ("li", "teacher")
    assert verify_password(shell.ask(lambda c: password_hash_of(c, "li")), "correct horse")
    code, out, err = shell.run("user", "password", "li", stdin="battery staple\n")
    assert code == exits.OK
    assert "battery" not in out + err
    assert verify_password(shell.ask(lambda c: password_hash_of(c, "li")), "battery staple")
    assert [each["staff_id"] for each in shell.json("user", "list")] == ["li"]


def test_a_short_password_makes_nobody(shell: Shell) -> None:
    """The bounds are told, and no member of staff is there afterwards."""
    code, _, err = shell.run("user", "create", "li", "--role", "teacher", stdin="short\n")
    assert code == exits.REFUSED
    assert "PASSWORD_LENGTH" in err
    assert shell.json("user", "list") == []


def test_a_token_is_revoked_by_the_whole_token_too(shell: Shell) -> None:
    """Who pastes it instead of its public part is understood, and no message shows the secret."""
    shell.json("device", "create", "violin-1")
    made = shell.json("token", "create", "device", "violin-1")
    code, out, err = shell.run("token", "revoke", made["token"].replace("etd_", "etd_0"))
    assert (code, out) == (exits.NOT_FOUND, "")
    assert made["token"].rpartition("_")[2] not in err
    assert shell.json("token", "revoke", f"etd_{made['public_id']}")["revoked_at"] is not None
    assert shell.json("token", "revoke", made["token"])["public_id"] == made["public_id"]


def test_a_token_works_until_it_is_revoked(shell: Shell) -> None:
    """The text alone is on stdout; the list shows only the public part."""
    shell.json("device", "create", "toy-1")
    code, out, err = shell.run("token", "create", "device", "toy-1")
    text = out.strip()
    assert (code, out) == (exits.OK, text + "\n")
    assert text[-64:] not in err
    now = datetime.now(UTC)
    principal = shell.ask(lambda connection: authenticate(connection, text, now))
    assert (principal.id, principal.scopes) == ("toy-1", {"sessions:write", "sessions:read"})
    (listed,) = shell.json("token", "list")
    assert listed["public_id"] == text.split("_")[1]
    assert "secret" not in str(listed)
    assert shell.json("token", "revoke", listed["public_id"])["revoked_at"] is not None


def test_a_service_or_users_token_needs_its_scopes_named(shell: Shell) -> None:
    """Nobody operates by oversight: without a scope there is no token."""
    shell.json("user", "create", "op", "--role", "operator", stdin="correct horse\n")
    for kind, name in (("service", "gateway"), ("user", "op")):
        code, out, err = shell.run("token", "create", kind, name)
        assert (code, out) == (exits.USAGE, "")
        assert "--scope" in err
    made = shell.json("token", "create", "user", "op", "--scope", "operate", "--days", "7")
    assert (made["kind"], made["scopes"]) == ("staff", ["operate"])
    assert made["expires_at"] > made["created_at"]


def test_a_list_for_people_is_one_line_each(shell: Shell) -> None:
    """Without --json a list is lines with tabs, which other programs can cut."""
    shell.json("device", "create", "a", "--name", "First")
    shell.json("device", "create", "b", "--name", "Second")
    _, out, _ = shell.run("device", "list")
    assert [line.split("\t")[:2] for line in out.splitlines()] == [["a", "First"], ["b", "Second"]]


def test_what_was_done_at_the_machine_is_in_the_log(shell: Shell) -> None:
    """A command is entered as done by the host, which has no token."""
    from etude.people.audit import list_audit  # noqa: PLC0415 - read below only

    shell.json("learner", "create", "Ada")
    shell.json("learner", "list")
    entries = shell.ask(list_audit).items
    assert [(each.actor.kind, each.actor.token_key) for each in entries] == [("host", None)] * 2
    assert [each.action for each in entries] == ["learner.added", "learner.listed"]
