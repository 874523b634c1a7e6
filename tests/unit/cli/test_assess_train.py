"""`etude assess train` and the benches of assessment."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from etude.cli.assess import app
from etude.cli.bench.agreement import agreement


def test_a_folder_without_scores_ends_as_not_found(tmp_path: Path) -> None:
    """The folder is named, nothing is written."""
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["train", str(tmp_path), "--out", str(out)])
    assert result.exit_code != 0
    assert "scores.jsonl" in repr(result.exception)
    assert not out.exists()


def test_the_bench_has_the_members_that_others_rely_on() -> None:
    """Programs read `total|accuracy|fluency: {pearson, children: {pearson}, adults: {pearson}}`."""
    figures = json.loads(json.dumps(agreement()))
    for target in ("total", "accuracy", "fluency"):
        assert 0 < figures[target]["pearson"] < 1
        for group in ("children", "adults"):
            assert 0 < figures[target][group]["pearson"] < 1
            low, high = figures[target][group]["interval"]
            assert low < figures[target][group]["pearson"] < high
    assert figures["total"]["pearson"] == pytest.approx(0.888, abs=0.005)
    assert figures["attribution"].startswith("Derived from speechocean762")
