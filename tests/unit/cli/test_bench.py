import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from etude.cli.bench import BENCHES, app
from etude.cli.bench.frame import Bench, commit, parse_options, quantile, run_all, run_bench
from etude.cli.errors import OutputUnwritableError


def measured(
    *,
    events: int = 5,
    share: float = 0.5,
    kind: str = "a",
    dry_run: int = 0,
    database: str = "",
    devices: int = 0,
    practising: int = 0,
) -> Any:
    """A bench with one option of each type, and those that variants of the real ones name."""
    on = (database, devices, practising)
    return {"baseline": "none", "ratio": 1, "got": [events, share, kind, dry_run], "on": on}


HERE = Bench("measured:measured", "A bench of this test.", ({}, {"kind": "b"}))


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "load", lambda _: measured)


def test_a_report_says_where_it_was_measured() -> None:
    """A report has the bench's figures and the facts about version and machine."""
    report = run_bench("here", HERE, ["--events", "7"])
    assert report["got"] == [7, 0.5, "a", 0]
    assert set(report) >= {"bench", "commit", "load", "baseline", "ratio", "python", "cpus"}
    assert len(report["load"]["before"]) == 3


def test_options_are_typed_like_their_defaults() -> None:
    """`--name value` and `--name=value` become keywords of the default's type."""
    given = ["--events=7", "--share", "0.25", "--kind", "b c", "--dry-run", "1"]
    assert parse_options(measured, given) == {
        "events": 7,
        "share": 0.25,
        "kind": "b c",
        "dry_run": 1,
    }


@pytest.mark.parametrize(
    "given", [["--nope", "1"], ["events", "1"], ["--events", "many"], ["--events"]]
)
def test_wrong_options_are_usage_errors(given: list[str]) -> None:
    """An option that the bench lacks, or a value of another type, is a usage error."""
    with pytest.raises(typer.BadParameter):
        parse_options(measured, given)


def test_all_runs_every_variant() -> None:
    """`all` runs each bench in each of its variants and says which is running."""
    said: list[str] = []
    report = run_all({"here": HERE}, said.append)
    assert [one["got"][2] for one in report["benches"]] == ["a", "b"]
    assert said == ["here", "here b"]


@pytest.mark.parametrize("name", BENCHES)
def test_each_bench_is_a_command(name: str) -> None:
    """`etude bench NAME` prints the report."""
    ended = CliRunner().invoke(app, [name])
    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["bench"] == name


def test_the_report_goes_to_a_file(tmp_path: Path) -> None:
    """With `--json FILE` the report is in the file, its folder made, and stdout is empty."""
    file = tmp_path / "new" / "bench.json"
    ended = CliRunner().invoke(app, ["all", "--json", str(file)])
    assert (ended.exit_code, ended.stdout) == (0, "")
    reports = json.loads(file.read_text("utf-8"))["benches"]
    assert {one["bench"] for one in reports} == set(BENCHES)


@pytest.mark.parametrize("place", ["folder", "file/new.json"])
def test_a_report_that_cannot_be_written_is_told_before_the_bench_runs(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes are not spent on figures that then have no place."""
    monkeypatch.setattr(Bench, "load", lambda _: pytest.fail("it ran"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    ended = CliRunner().invoke(app, ["recap", "--json", str(tmp_path / place)])
    assert isinstance(ended.exception, OutputUnwritableError)
    assert ended.exception.params["target"] == str(tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_commit_is_named() -> None:
    """Outside a clone the version stands for the commit; it is never empty."""
    assert commit()


def test_quantiles_are_of_the_nearest_rank() -> None:
    """p50 and p99 are values that were measured."""
    values = [float(one) for one in range(1, 101)]
    assert [quantile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 50, 99, 100]
    assert quantile([3.0], 0.99) == 3.0
