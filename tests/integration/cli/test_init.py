"""`etude init` on both databases: complete, repeatable, killable at every instant."""

import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from etude.cli import init as command
from etude.cli.installation import KEYS
from etude.clock import SystemClock
from etude.files import Files, armed
from etude.people.errors import IdInvalidError, PasswordLengthError
from etude.people.passwords import verify_password
from etude.people.staff import password_hash_of
from etude.people.tables import audit, device, staff, token
from etude.people.tokens import authenticate
from etude.settings import Settings, load
from etude.store import Database

Run = Callable[[Coroutine[Any, Any, Any]], Any]

COMMITTED = "store.transaction.committed"
INSTANTS = [
    "cli.init.folder_made",
    "cli.key.written",
    "cli.key.durable",
    "store.migration.before_commit",
    "store.migration.committed",
    "cli.init.upgraded",
    "people.token.inserted",
    "cli.gateway_token.written",
    "cli.init.shown",
    COMMITTED,
]


class KilledError(BaseException):
    """The process ends here."""


@pytest.fixture
def settings(tmp_path: Path, empty_database_url: str) -> Settings:
    return load(data=tmp_path / "data", database_url=empty_database_url)


def set_up(settings: Settings, password: str | None = None) -> Coroutine[Any, Any, command.Made]:
    async def main() -> command.Made:
        shown: list[command.Made] = []
        wish = command.Wish(operator="head", password=password, device="violin-1")
        await command.set_up(settings, wish, shown.append, Files(), SystemClock())
        (made,) = shown
        return made

    return main()


async def counts(url: str) -> dict[str, int]:
    async with await Database.open(url) as database, database.read() as connection:
        return {
            table.name: (
                await connection.execute(select(func.count()).select_from(table))
            ).scalar_one()
            for table in (staff, device, token, audit)
        }


ONE_OF_EACH = {"staff": 1, "device": 1, "token": 2, "audit": 4}


def test_what_is_shown_works(run: Run, settings: Settings) -> None:
    """The shown password signs the operator in, the shown token uploads for the device."""
    made = run(set_up(settings))
    assert made.operator is not None
    assert made.operator.password is not None
    assert made.upload is not None

    async def check() -> None:
        async with await Database.open(settings.database_url) as database:
            async with database.read() as connection:
                who = await authenticate(connection, made.upload.token, SystemClock().now())
                stored = await password_hash_of(connection, "head")
            assert (who.kind, who.id) == ("device", "violin-1")
            assert who.scopes == {"sessions:write", "sessions:read"}
            assert verify_password(stored, made.operator.password)

    run(check())
    assert run(counts(settings.database_url)) == ONE_OF_EACH


def test_a_second_run_changes_nothing_and_says_so(run: Run, settings: Settings) -> None:
    """Everything is left as it is; no secret is shown again."""
    run(set_up(settings))
    keys = {name: (settings.data / "keys" / name).read_bytes() for name in KEYS}
    again = run(set_up(settings))
    assert (again.changed, again.operator, again.upload) == (False, None, None)
    assert run(counts(settings.database_url)) == ONE_OF_EACH
    assert {name: (settings.data / "keys" / name).read_bytes() for name in KEYS} == keys


def test_a_chosen_password_is_not_shown(run: Run, settings: Settings) -> None:
    """Who chose the password knows it; it is stored hashed and shown to nobody."""
    made = run(set_up(settings, password="correct horse battery"))
    assert made.operator == command.Operator(staff_id="head", password=None)


def test_a_short_password_is_refused_before_anything_is_made(run: Run, settings: Settings) -> None:
    """Nothing is left of a refused run."""
    with pytest.raises(PasswordLengthError):
        run(set_up(settings, password="short"))
    assert not settings.data.exists()


@pytest.mark.parametrize(
    ("operator", "device"),
    [("a head", "violin-1"), ("", "violin-1"), ("head", "violin 1"), ("head", "x" * 129)],
)
def test_an_id_that_cannot_be_is_refused_before_anything_is_made(
    run: Run, settings: Settings, operator: str, device: str
) -> None:
    """A mistyped option leaves no folder behind that is half an installation."""
    wish = command.Wish(operator=operator, password=None, device=device)
    with pytest.raises(IdInvalidError):
        run(command.set_up(settings, wish, lambda _: None, Files(), SystemClock()))
    assert not settings.data.exists()


def test_what_init_makes_is_audited_in_the_words_of_the_other_doors(
    run: Run, settings: Settings
) -> None:
    """Operator, device and token: the actions that their own commands and routes enter."""

    async def actions() -> list[str]:
        await set_up(settings)
        async with (
            await Database.open(settings.database_url) as database,
            database.read() as connection,
        ):
            return list((await connection.execute(select(audit.c.action))).scalars())

    assert sorted(run(actions())) == ["device.added", "staff.added", "token.made", "token.made"]


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_kill_at_any_instant_is_mended_by_the_next_run(
    run: Run, settings: Settings, instant: str
) -> None:
    """After a kill and a second run there is one of each, and the last shown token works."""
    reached: list[str] = []

    def kill(name: str) -> None:
        reached.append(name)
        # The first transaction is the one in which `Database.open` sees whether it answers.
        if name == instant and reached.count(name) == (2 if name == COMMITTED else 1):
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        run(set_up(settings))
    made = run(set_up(settings))
    assert run(counts(settings.database_url)) == ONE_OF_EACH
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (settings.data / "keys").iterdir()}
    assert modes == {0o600}
    # Only the kill after the commit comes when the secrets are shown and valid already.
    assert (made.upload is None) == (instant == COMMITTED)
