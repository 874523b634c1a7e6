"""The data folder and its keys."""

import stat
from pathlib import Path

import pytest

from etude.cli import app, exits
from etude.cli.errors import FolderUnusableError
from etude.cli.installation import KEYS, make_folder, make_keys
from etude.files import Files, armed


class KilledError(BaseException):
    """The process ends here."""


def test_folder_and_keys_are_closed_to_others(tmp_path: Path) -> None:
    """0700 for folders, 0600 for keys, whatever the umask says."""
    data = tmp_path / "a" / "data"
    assert make_folder(Files(), data)
    assert make_keys(Files(), data) == list(KEYS)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert {stat.S_IMODE((data / "keys" / name).stat().st_mode) for name in KEYS} == {0o600}


def test_keys_are_random_and_never_replaced(tmp_path: Path) -> None:
    """A second run makes nothing; two installations share no key."""
    make_keys(Files(), tmp_path / "a")
    make_keys(Files(), tmp_path / "b")
    before = [(tmp_path / "a" / "keys" / name).read_bytes() for name in KEYS]
    assert make_keys(Files(), tmp_path / "a") == []
    assert [(tmp_path / "a" / "keys" / name).read_bytes() for name in KEYS] == before
    others = [(tmp_path / "b" / "keys" / name).read_bytes() for name in KEYS]
    assert len({*before, *others}) == 2 * len(KEYS)


def test_of_two_processes_the_first_ones_key_stays(tmp_path: Path) -> None:
    """Whoever links second keeps what is there and leaves no temporary file."""
    first = b"f" * 32

    def other_comes_first(name: str) -> None:
        if name == "cli.key.written":
            (tmp_path / "keys" / KEYS[0]).write_bytes(first)

    with armed(other_comes_first):
        assert KEYS[0] not in make_keys(Files(), tmp_path)
    assert (tmp_path / "keys" / KEYS[0]).read_bytes() == first
    assert {path.name for path in (tmp_path / "keys").iterdir()} == set(KEYS)


@pytest.mark.parametrize("instant", ["cli.key.written", "cli.key.durable"])
def test_a_kill_leaves_whole_keys_or_none(tmp_path: Path, instant: str) -> None:
    """After a kill at either instant the next run completes the set."""

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        make_keys(Files(), tmp_path)
    make_keys(Files(), tmp_path)
    assert {(tmp_path / "keys" / name).stat().st_size for name in KEYS} == {32}


def test_an_unusable_place_is_named(tmp_path: Path) -> None:
    """A file where a folder should be is a typed error that names the place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusableError) as raised:
        make_folder(Files(), tmp_path / "file" / "data")
    assert raised.value.params["folder"] == str(tmp_path / "file" / "data")


@pytest.mark.parametrize(
    "command",
    ["serve --port 0", "web --port 0", "worker", "upgrade", "backup new.tar", "learner list",
     "device list", "user list", "token list"],
)  # fmt: skip
def test_every_command_names_the_folder_that_is_missing(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before `etude init`, whatever is asked for: the same words, and nothing is made."""
    folder = tmp_path / "away"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_DATA", str(folder))
    monkeypatch.delenv("ETUDE_DATABASE_URL", raising=False)
    assert app.run(command.split()) == exits.UNAVAILABLE
    out, err = capsys.readouterr()
    assert (out, list(tmp_path.iterdir())) == ("", [])
    assert str(folder) in err
    assert err.endswith("[NOT_INITIALISED]\n")
