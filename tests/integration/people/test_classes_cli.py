import json
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits
from etude.cli.app import run as run_command


class Shell:
    """Runs commands on a database of its own, as a person at a terminal would."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        url: str,
        data: Path,
    ) -> None:
        monkeypatch.setenv("ETUDE_DATA", str(data))
        monkeypatch.setenv("ETUDE_DATABASE_URL", url)
        self._capsys = capsys
        self.data = data

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        code = run_command(arguments)
        written = self._capsys.readouterr()
        return code, written.out, written.err

    def json(self, *arguments: str) -> Any:
        """Run with `--json`; return the one document that stdout holds."""
        code, out, err = self.run(*arguments, "--json")
        assert code == exits.OK, err
        return json.loads(out)

    def file(self, data: str) -> str:
        path = self.data / "roster.csv"
        path.write_text(data, "utf-8-sig")
        return str(path)


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
    tmp_path: Path,
) -> Shell:
    return Shell(monkeypatch, capsys, database_url, tmp_path)


def test_a_class_from_its_list_to_its_end(shell: Shell) -> None:
    """Made, filled from a file, changed by hand, shown at any time, archived and taken back."""
    made = shell.json("class", "create", "三年级二班", "--id", "3b", "--grade", "3")
    assert shell.json("class", "list") == [made]
    shell.json("device", "create", "toy-1")
    roster = shell.file("name,device_id\n王小明,toy-1\n李雷,\n")
    assert shell.json("class", "import", "3b", roster) == {
        "lines": 2,
        "added": 2,
        "joined": 2,
        "devices": 1,
        "empty_lines": [],
    }
    assert shell.json("class", "import", "3b", roster)["added"] == 0
    anna = shell.json("learner", "create", "Anna")["learner_id"]
    times = ("--since", "2026-01-01T08:00:00+08:00", "--until", "2026-02-01T08:00:00+08:00")
    joined = shell.json("class", "add", "3b", anna, *times)
    assert joined["starts_at"] == "2026-01-01T00:00:00Z"
    shown = shell.json("class", "show", "3b")
    assert [one["display_name"] for one in shown["roster"]] == ["王小明", "李雷"]
    assert (shown["name"], shown["teachers"]) == ("三年级二班", [])
    past = shell.json("class", "show", "3b", "--at", "2026-01-15T00:00:00Z")["roster"]
    assert [one["learner_id"] for one in past] == [anna]
    first = shown["roster"][0]["learner_id"]
    assert shell.json("class", "remove", "3b", first)["learner_id"] == first
    assert len(shell.json("class", "show", "3b")["roster"]) == 1
    assert len(shell.json("class", "show", "3b", "--history")["roster"]) == 3
    assert shell.run("class", "show", "3b")[1].count("\n") == 1
    assert shell.json("class", "rename", "3b", "四年级二班")["name"] == "四年级二班"
    assert shell.json("class", "archive", "3b")["archived_at"] is not None
    assert shell.run("class", "add", "3b", first)[0] == exits.REFUSED
    assert shell.json("class", "archive", "3b", "--back")["archived_at"] is None


def test_a_teacher_is_put_to_a_class(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """And taken away; who is no staff is not found."""
    monkeypatch.setattr("etude.cli.users._read_password", lambda: "a long password")
    shell.json("class", "create", "3B", "--id", "3b")
    shell.json("user", "create", "li", "--role", "teacher")
    assert shell.json("class", "teacher", "3b", "li")["teachers"] == ["li"]
    assert shell.json("class", "show", "3b")["teachers"] == ["li"]
    assert shell.json("class", "teacher", "3b", "li", "--remove")["teachers"] == []
    assert shell.run("class", "teacher", "3b", "wu")[0] == exits.NOT_FOUND


def test_lines_in_which_nothing_stands_are_told(shell: Shell) -> None:
    """By number, on stderr; the answer on stdout is of the others."""
    shell.json("class", "create", "3B", "--id", "3b")
    roster = shell.file("小红,,\n,,\n小明,,\n,,\n , ,\n,,\n")
    code, out, err = shell.run("--locale", "zh-CN", "class", "import", "3b", roster)
    assert (code, out) == (exits.OK, "2\t2\t2\t0\n")
    assert err.endswith("2, 4-6。\n")
    assert err.count("\n") == 1
    assert shell.json("class", "import", "3b", roster)["empty_lines"] == [2, 4, 5, 6]


def test_wrong_lines_are_told_by_number_without_names(shell: Shell) -> None:
    """On stderr, each with its code; nobody was made."""
    shell.json("class", "create", "3B", "--id", "3b")
    code, out, err = shell.run("class", "import", "3b", shell.file("小红\n小红\n小明,nobody\n"))
    assert (code, out) == (exits.REFUSED, "")
    assert [line.partition(" has")[0] for line in err.splitlines()[1:]] == [
        "  Line 2",
        "  Line 3",
    ]
    assert "ROSTER_LINE_NAME_TWICE" in err
    assert "小" not in err
    assert shell.json("learner", "list") == []


def test_a_file_that_cannot_be_read_is_told(shell: Shell) -> None:
    """Missing, too large, of another encoding: its name and why."""
    shell.json("class", "create", "3B", "--id", "3b")
    path = shell.data / "r.csv"
    assert shell.run("class", "import", "3b", str(path))[0] == exits.REFUSED
    path.write_bytes("小红\n".encode("gb18030"))
    assert "UTF-8" in shell.run("class", "import", "3b", str(path))[2]
    path.write_bytes(b"x\n" * 400_000)
    assert "ROSTER_TOO_LONG" in shell.run("class", "import", "3b", str(path))[2]
