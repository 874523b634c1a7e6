"""`etude examine --since`: every stored session anew."""

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from etude.cli.examine import examine
from etude.cli.installation import make_folder
from etude.errors import EtudeError
from etude.files import Files
from etude.jobs import JobState, jobs_in
from etude.store import Database
from etude.testing.samples import read_sample
from etude.testing.school import School

app = typer.Typer()
app.command()(examine)


@pytest.fixture
def data(tmp_path: Path, sqlite_url: str, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> Path:
    """An installation that holds the sample session, whose report waits."""
    folder = tmp_path / "data"
    make_folder(Files(), folder)
    Path(sqlite_url.removeprefix("sqlite:///")).rename(folder / "etude.db")

    async def fill() -> None:
        async with await Database.open(f"sqlite:///{folder / 'etude.db'}") as database:
            school = School(database, run)
            await school.furnish()
            await school.send(school.device("toy-1"), "s-abc-123", read_sample("violin-3min"))

    run(fill())
    return folder


def test_sessions_since_a_time_are_asked_for(
    data: Path, run: Callable[[Coroutine[Any, Any, Any]], Any]
) -> None:
    """With another rubric; the answer says how many, and the job is one still."""
    since = ["--since", "2020-01-01T00:00:00Z", "--rubric", "cpr-bls", "--data", str(data)]
    ended = CliRunner().invoke(app, [*since, "--json"], catch_exceptions=False)
    assert json.loads(ended.stdout) == {"asked": 1}
    later = ["--since", "2999-01-01T00:00:00Z", "--data", str(data), "--json"]
    assert json.loads(CliRunner().invoke(app, later).stdout) == {"asked": 0}

    async def waiting() -> int:
        async with (
            await Database.open(f"sqlite:///{data / 'etude.db'}") as database,
            database.read() as connection,
        ):
            return len(await jobs_in(connection, JobState.QUEUED))

    assert run(waiting()) == 1


def test_what_is_asked_must_be_clear(data: Path) -> None:
    """A session or a time, not both and not neither; a rubric that nobody knows is named."""
    for wrong in ([], ["s-abc-123", "--since", "2020-01-01T00:00:00Z"]):
        assert CliRunner().invoke(app, [*wrong, "--data", str(data)]).exit_code == 2
    unknown = ["--since", "2020-01-01T00:00:00Z", "--rubric", "no", "--data", str(data)]
    with pytest.raises(EtudeError, match="RUBRIC_UNKNOWN"):
        CliRunner().invoke(app, unknown, catch_exceptions=False)
