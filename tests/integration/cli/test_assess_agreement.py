"""`etude assess agreement`, as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etude.testing.waiting import run_bounded

RATINGS = "speaker,human_a,human_b,score,age\n" + "".join(
    f"s{n % 5},{n % 7},{(n + n % 2) % 7},{(2 * n) % 7},{'child' if n % 2 else 'adult'}\n"
    for n in range(30)
)


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.csv"
    file.write_text(RATINGS)
    return file


def etude(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    environment = {"ETUDE_DATA": str(data), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return run_bounded(
        [sys.executable, "-m", "etude", "assess", "agreement", "--resamples", "100", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_run_is_printed_and_stored_once(ratings: Path, tmp_path: Path) -> None:
    """JSON on stdout is the stored run, byte for byte; the same run again is the same file."""
    data = tmp_path / "data"
    data.mkdir()
    arguments = ("--machine", "score", "--by", "age", "--subject", "speaker", "--json")
    made = [etude(str(ratings), *arguments, data=data) for _ in range(2)]
    assert [one.returncode for one in made] == [0, 0], made[0].stderr
    (stored,) = (data / "agreement").iterdir()
    assert stored.read_text() == made[0].stdout == made[1].stdout
    run = json.loads(made[0].stdout)
    assert run["inputs_digest"].startswith(stored.stem)
    assert run["inputs"]["columns"]["humans"] == ["human_a", "human_b"]
    assert [one["subgroup"] for one in run["comparisons"][::2]] == [None, "adult", "child"]
    assert "s1" not in made[0].stdout  # people are counted, not named


def test_a_person_reads_figures_with_their_intervals(ratings: Path, tmp_path: Path) -> None:
    """Without a data folder the figures are printed all the same, and it is said."""
    done = etude(str(ratings), "--human", "human_a", "--machine", "human_b", data=tmp_path / "no")
    assert done.returncode == 0, done.stderr
    assert "n = 30, 0 missing" in done.stdout
    assert "ICC(2,1)" in done.stdout
    assert "Not stored" in done.stderr
    assert not (tmp_path / "no").exists()


def test_out_names_the_file(ratings: Path, tmp_path: Path) -> None:
    """`--out` stores the run where it says; a folder that is not there is an error with a code."""
    target = tmp_path / "run.json"
    assert etude(str(ratings), "--out", str(target), data=tmp_path / "no").returncode == 0
    assert json.loads(target.read_text())["inputs"]["columns"]["machine"] is None
    lost = etude(str(ratings), "--out", str(tmp_path / "no/run.json"), data=tmp_path / "no")
    assert (lost.returncode, "OUTPUT_UNWRITABLE" in lost.stderr) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["missing.csv"], 3, "RATINGS_UNKNOWN"),
        (["--by", "town"], 1, "no column 'town'"),
        (["--human", "age", "--machine", "score"], 1, ":2:age:"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], status: int, said: str, ratings: Path, tmp_path: Path
) -> None:
    """File, line and column, and the documented exit code; nothing on stdout."""
    file = [] if arguments[0].endswith(".csv") else [str(ratings)]
    done = etude(*file, *arguments, data=tmp_path / "no")
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
