"""Stdout that cannot be written, or not in this character set: a message, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etude.cli import exits
from etude.testing.waiting import run_bounded

LINES = b"".join(
    b'{"event_id":"e%d","session_id":"s","ts":0,"event_type":"streak","signal":"x"}\n' % number
    for number in range(3000)
)


def etude(
    arguments: str, file: Path, stdout: int, encoding: str = "utf-8"
) -> subprocess.CompletedProcess[bytes]:
    return run_bounded(
        [sys.executable, "-m", "etude", *arguments.split(), str(file)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | {"LANG": "C.UTF-8", "PYTHONIOENCODING": encoding},
        check=False,
    )


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    file.write_bytes(LINES)
    return file


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize(
    "command",
    ["events recap", "events recap --json", "events export", "events export --json",
     "events export --format cloudevents", "events lint --json"],
)  # fmt: skip
def test_a_full_disk_behind_stdout_is_told(command: str, journal: Path) -> None:
    """Short answers fail at the last flush, long ones in the middle: the same line either way."""
    with Path("/dev/full").open("wb") as full:
        ended = etude(command, journal, full.fileno())
    assert ended.returncode == exits.UNAVAILABLE
    assert ended.stderr.count(b"\n") == 1
    assert ended.stderr.endswith(b"[OUTPUT_UNWRITABLE]\n")


@pytest.mark.parametrize("command", ["events recap", "events export", "events export --json"])
def test_a_reader_who_left_is_no_fault(command: str, journal: Path) -> None:
    """`| head`: no word about it."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = etude(command, journal, writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (exits.REFUSED, b"")


@pytest.mark.parametrize("encoding", ["ascii", "gbk"])
def test_a_terminal_of_another_character_set_gets_what_it_can_show(
    encoding: str, journal: Path
) -> None:
    """A sign that it lacks is escaped; the rest is read as ever."""
    ended = etude("events recap", journal, subprocess.PIPE, encoding)
    assert (ended.returncode, ended.stderr) == (exits.OK, b"")
    assert ended.stdout.startswith(b"Preparation: \\u2713 3000 went well")


def test_json_is_utf_8_whatever_the_terminal_speaks(journal: Path) -> None:
    """A program reads the same bytes everywhere (RFC 8259 §8.1)."""
    ended = etude("--locale zh-CN events recap --json", journal, subprocess.PIPE, "gbk")
    assert (ended.returncode, ended.stderr) == (exits.OK, b"")
    assert not "".join(json.loads(ended.stdout)["highlights"]).isascii()
