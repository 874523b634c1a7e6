import json
from pathlib import Path

import pytest

from etude.testing import nursery as nurseries
from etude.testing.linked_process import launch
from etude.testing.nursery import ChildStuckError, Nursery
from etude.testing.ports import free_port


def test_a_child_that_does_not_end_shows_where_it_stands_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It links to nobody for ever; who waits for its end has the stacks of its threads."""
    with Nursery(tmp_path) as nursery:
        child = launch(nursery, tmp_path, "g1", free_port(), "a token")
        monkeypatch.setattr(nurseries, "DEADLINE_S", 3.0)
        with pytest.raises(ChildStuckError, match=r"(?s)most recent call first.*linked_process"):
            child.wait()
        monkeypatch.undo()
        child.wait()


def test_a_nursery_that_is_gone_says_so(tmp_path: Path) -> None:
    """Instead of a line that never comes, or is no number."""
    with Nursery(tmp_path) as nursery:
        assert nursery._process is not None
        nursery._process.kill()
        nursery._process.wait(60)
        with pytest.raises((ChildStuckError, BrokenPipeError)):
            nursery.start("etude.cli.app", "web")


def test_a_command_is_run_with_what_it_is_given(tmp_path: Path) -> None:
    """Exit code, both outputs and stdin are those of a command that a person runs."""
    environment = {"ETUDE_DATA": str(tmp_path / "data")}
    with Nursery(tmp_path) as nursery:
        refused = nursery.run("events", "lint", str(tmp_path / "none"), environment=environment)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert "EVENT_FILE_UNKNOWN" in refused.stderr
        line = '{"event_type": "session_start"}\n'
        linted = nursery.run("events", "lint", "-", "--json", environment=environment, given=line)
        assert linted.returncode == 1
        assert json.loads(linted.stdout)["rejected_lines"] == 1
