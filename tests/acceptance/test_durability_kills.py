"""`kill -9` of the server under uploads and of the uploader: nothing acknowledged is lost.

`make soak` runs the same trials 200 times each on both databases, with other seeds, and leaves its
figures in `dist/soak-kills.jsonl`. `ETUDE_TEST_SOAK_KILLS` changes how many.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from etude.testing.installation import furnish
from etude.testing.kills import Figures, KillableServer, kill_server, kill_uploader
from etude.testing.nursery import Nursery
from etude.testing.server import ServerProcess

SOAK_KILLS = int(os.environ.get("ETUDE_TEST_SOAK_KILLS", "200"))
SOAK_FIGURES = Path(__file__).parents[2] / "dist" / "soak-kills.jsonl"


@pytest.fixture(scope="module")
def sqlite_kills(
    nursery: Nursery,
    tmp_path_factory: pytest.TempPathFactory,
    sqlite_copy: Callable[[Path], str],
) -> Iterator[KillableServer]:
    data = tmp_path_factory.mktemp("data")
    server = KillableServer(nursery, furnish(data, sqlite_copy(data)))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def postgres_kills(
    nursery: Nursery,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_databases: Callable[..., AbstractContextManager[str]],
) -> Iterator[KillableServer]:
    with postgres_databases(migrated=True) as url:
        server = KillableServer(nursery, furnish(tmp_path_factory.mktemp("data"), url))
        server.start()
        yield server
        server.kill()


@pytest.fixture(params=["sqlite", "postgresql"])
def killable(request: pytest.FixtureRequest) -> KillableServer:
    name = "sqlite_kills" if request.param == "sqlite" else "postgres_kills"
    found: KillableServer = request.getfixturevalue(name)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_server_keeps_what_it_acknowledged(killable: KillableServer, seed: int) -> None:
    """Three clients upload, the server dies: every acknowledged event is there, none twice."""
    figures = kill_server(killable, seed)
    assert figures.acknowledged > 0
    assert (figures.lost, figures.doubled) == (0, 0), f"kill_server(seed={seed}): {figures}"


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_uploader_brings_everything_once(
    nursery: Nursery, sqlite_kills: KillableServer, tmp_path: Path, seed: int
) -> None:
    """Killed once to three times on its way: at last every journal is there, line by line."""
    figures = kill_uploader(nursery, sqlite_kills, tmp_path / "journals", seed)
    assert (figures.lost, figures.doubled) == (0, 0), f"kill_uploader(seed={seed}): {figures}"


def test_the_uploader_is_killed_indeed(
    nursery: Nursery, sqlite_kills: KillableServer, tmp_path: Path
) -> None:
    """A seed that names a crash point ends the process there: the trials above are no idle ones."""
    figures = kill_uploader(nursery, sqlite_kills, tmp_path / "journals", seed=23)
    assert (figures.kills, figures.lost, figures.doubled) == (1, 0, 0)


def test_a_server_started_as_a_person_starts_it_keeps_it_too(
    nursery: Nursery, tmp_path: Path, sqlite_copy: Callable[[Path], str]
) -> None:
    """The nursery's processes are forked; here is one that was not, killed behind an answer."""
    installation = furnish(tmp_path, sqlite_copy(tmp_path))
    line = b'{"event_id":"e1","session_id":"s1","ts":0,"event_type":"streak","signal":"x"}'
    path = "/api/v1/sessions/s1/events"
    with ServerProcess(tmp_path) as server, installation.client(server.url, "toy-1") as client:
        sent = client.post(path, content=line, headers={"Content-Type": "application/x-ndjson"})
        server.kill()
        assert sent.json()["events_received"] == 1
    again = KillableServer(nursery, installation)
    again.start()
    with again.client("toy-1") as client:
        assert client.get(path).content == line + b"\n"
    again.kill()


def soak(
    trial: Callable[[int], Figures], name: str, first_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a trial until so many kills have come; show and keep the figures, then judge them."""
    total, failed, seed = Figures(), [], first_seed
    try:
        while total.kills < SOAK_KILLS:
            figures = trial(seed)
            if figures.lost or figures.doubled:
                failed.append(seed)
            total.add(figures)
            seed += 1
    finally:  # a soak that is broken off has figures too
        line = json.dumps({"soak": name} | msgspec.to_builtins(total) | {"failed_seeds": failed})
        SOAK_FIGURES.parent.mkdir(exist_ok=True)
        with SOAK_FIGURES.open("a") as kept, capsys.disabled():
            kept.write(f"{line}\n")
            print(f"\n{line}")  # noqa: T201 - whoever waits for the soak reads it
    assert (total.lost, total.doubled, failed) == (0, 0, []), line


@pytest.mark.soak
def test_many_kills_of_the_server(
    killable: KillableServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 kills under three uploads each: no acknowledged event lost, none stored twice."""
    dialect = killable.installation.database_url.partition(":")[0]
    soak(lambda seed: kill_server(killable, seed), f"server on {dialect}", 1000, capsys)


@pytest.mark.soak
def test_many_kills_of_the_uploader(
    nursery: Nursery,
    killable: KillableServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """200 kills on its way: at last every journal is on the server, line by line, once."""

    def trial(seed: int) -> Figures:
        return kill_uploader(nursery, killable, tmp_path / f"soak-{seed}", seed)

    dialect = killable.installation.database_url.partition(":")[0]
    soak(trial, f"uploader to {dialect}", 2000, capsys)
