from pathlib import Path

import pytest

from etude.errors import EtudeError
from etude.testing.scenarios import load_scenario, read_scenario, shipped
from etude.testing.simulation import run_scenario

SCENARIOS = dict(shipped())


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encoded")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_scenario_holds(name: str, tmp_path: Path, encoded: Path) -> None:
    """What its `claim` says, with the real gateway: every bound met, nothing forbidden seen."""
    scenario = load_scenario(name)
    outcome = run_scenario(scenario, tmp_path, encoded)
    told = [f"{seen.at_s:8.3f} {seen.what} {seen.detail}" for seen in outcome.timeline]
    assert not outcome.problems, "\n".join([scenario.claim, *outcome.problems, *told])


def test_a_scenario_that_expects_the_impossible_fails(tmp_path: Path, encoded: Path) -> None:
    """The runner finds what is missing, what is late and what must not be."""
    text = SCENARIOS["stock_silent"]
    text = text.replace("within_ms: [1080, 1350]", "within_ms: [10, 20]")
    text = text.replace("clip_missing, ", "clip_missing, greeting, ")
    text = text.replace("heard: [false, false, false]", "heard: [true, false, false]")
    problems = run_scenario(read_scenario(text, "impossible.yaml"), tmp_path, encoded).problems
    assert any("clip 02.mp3: after" in one for one in problems)
    assert "must not: greeting: greeting" in problems
    assert any("recorded heard" in one for one in problems)


def test_the_clock_does_not_hear(tmp_path: Path, encoded: Path) -> None:
    """Right, wrong and silent learners are sent every clip at the same moments."""
    seen = {}
    for name in ("stock_perfect", "stock_wrong", "stock_silent"):
        outcome = run_scenario(load_scenario(name), _made(tmp_path / name), encoded)
        seen[name] = [
            (one.what, one.detail, round(one.at_s, 2))
            for one in outcome.timeline
            if one.what in {"tts_start", "tts_stop", "clip", "clip_over"}
        ]
    assert seen["stock_perfect"] == seen["stock_wrong"] == seen["stock_silent"]


def test_a_scenario_with_mistakes_names_their_lines() -> None:
    """A misspelt key, an unknown learner and a missing part are told with their lines."""
    text = "claim: x\nlearnr: perfect\nlesson: [{text: a, ms: one}]\n"
    with pytest.raises(EtudeError) as refused:
        read_scenario(text, "mine.yaml")
    lines = {part.params["line"] for part in refused.value.parts}
    assert lines == {1, 2, 3}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
