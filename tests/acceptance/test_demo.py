"""`etude demo`, as a newcomer runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from etude.testing.waiting import run_bounded


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ETUDE_")}
    # Somebody's real installation, which the demo must leave alone.
    elsewhere = {"ETUDE_DATA": str(folder / "real"), "ETUDE_DATABASE_URL": "postgresql://real/real"}
    return run_bounded(
        [sys.executable, "-m", "etude", *options, "demo", "--folder", folder / "demo", "--json"],
        env=environment | elsewhere | {"LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        limit_s=240,
    )


def test_the_main_loop_holds_what_it_promises(tmp_path: Path) -> None:
    """13 events, each stored once although sent twice; a course of 4 lessons, pinned; 10 turns."""
    ended = demo(tmp_path)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    course = told.pop("course")
    manifest = course["manifest"]
    # Six methods say of each turn that nobody heard it: the demo starts no engines. It counts them
    # with the first report, which waits 15 s for them: a starved machine has fewer by then.
    assert 0 < told["practice"].pop("metrics") <= 60
    assert (manifest["schemaVersion"], course["loaded"]) == (2, 4)
    assert [one["index"] for one in manifest["modules"]] == [0, 1, 2, 3]
    assert all(one["contentHash"].startswith("sha256:") for one in manifest["modules"])
    assert told == {
        "sessions": 1,
        "events": 13,
        "duplicates_skipped": 13,
        "recap": {
            "phase_summary": {
                "preparation": {"positive": 2, "uncertain": 0, "issue": 0},
                "operation": {"positive": 4, "uncertain": 1, "issue": 0},
                "cleanup": {"positive": 0, "uncertain": 0, "issue": 0},
            }
        },
        "practice": {"turns": 10},
        "report": {"revision": 1, "overall_score": 89},
    }
    assert json.loads((tmp_path / "demo" / "summary.json").read_text()) == json.loads(ended.stdout)
    assert "kill -9" in ended.stderr
    assert "10 turns are stored" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "real").exists()
    assert "Violin basics" in (tmp_path / "demo" / "report.html").read_text()
    practised = (tmp_path / "demo" / "practice.html").read_text()
    assert "From the course module “Good morning”, version 1: Listen and read aloud" in practised
    assert manifest["modules"][0]["contentHash"] in practised
    card = (tmp_path / "demo" / "card.html").read_text()
    assert "What went well" in card
    assert "89" not in card  # a card has no score


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    """What no demo made is not emptied; the answer is in the language asked for."""
    (tmp_path / "demo" / "server").mkdir(parents=True)
    (tmp_path / "demo" / "server" / "precious").write_text("x")
    ended = demo(tmp_path, "--locale", "zh-CN")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "[DEMO_FOLDER_TAKEN]" in ended.stderr
    assert "空目录" in ended.stderr
    assert (tmp_path / "demo" / "server" / "precious").exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    """No traceback, and the file stays."""
    (tmp_path / "demo").write_text("x")
    ended = demo(tmp_path)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.endswith("[FOLDER_UNUSABLE]\n")
    assert (tmp_path / "demo").read_text() == "x"
