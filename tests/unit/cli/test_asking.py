"""What a command asks at the terminal, in both languages."""

import io
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import pytest
import typer

from etude.cli import asking, terminal
from etude.i18n import text

SECONDS = 60
COLON = "\uff1a"
"""The Chinese one."""
ERASE = "cli.people.erase_confirm"


def asked(
    answers: str,
    locale: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ask: Callable[[], object],
) -> tuple[bool, str]:
    """Whether it went on, and what stood on the terminal."""

    def run() -> None:
        terminal.use_locale(locale)
        ask()

    monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
    try:
        copy_context().run(run)
    except typer.Abort:
        goes_on = False
    else:
        goes_on = True
    out, err = capsys.readouterr()
    assert out.strip(" ") == ""  # typer's last space goes there: JSON may follow
    return goes_on, err + out


@pytest.mark.parametrize(
    ("answers", "goes_on"),
    [
        ("y\n", True),
        ("YES\n", True),
        ("perhaps\n y \n", True),
        ("n\n", False),
        ("no\n", False),
        ("\n", False),
        ("perhaps\n", False),
        ("", False),
    ],
    ids=["y", "yes", "at last", "n", "no", "return", "then none", "none"],
)
def test_a_question_goes_on_after_a_yes_only(
    answers: str,
    goes_on: bool,  # noqa: FBT001 - the expected value of a table
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In English word for word as typer asks."""
    question = text(ERASE, learner_id="x")
    ours = asked(
        answers, "en", monkeypatch, capsys, lambda: asking.require_yes(ERASE, learner_id="x")
    )
    typers = asked(
        answers, "en", monkeypatch, capsys, lambda: typer.confirm(question, abort=True, err=True)
    )
    assert ours == typers
    assert ours[0] == goes_on
    assert "[y/N]:" in ours[1]


def test_a_question_is_whole_in_chinese(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to type; an answer that is neither is told so."""
    goes_on, told = asked(
        "perhaps\ny\n",
        "zh-CN",
        monkeypatch,
        capsys,
        lambda: asking.require_yes(ERASE, learner_id="mia"),
    )
    assert goes_on
    question = text("cli.usage.yes_or_no", "zh-CN", question=text(ERASE, "zh-CN", learner_id="mia"))
    assert told.rstrip() == f"{question}{COLON}请输入 y 或 n。\n{question}{COLON}"


@pytest.mark.parametrize(
    ("locale", "first", "again", "differs"),
    [
        (
            "en",
            "Password of the operator: ",
            "Repeat for confirmation: ",
            "Error: The two entered values do not match.",
        ),
        ("zh-CN", f"管理员密码{COLON} ", f"请再输入一次{COLON} ", "两次输入不一致"),
    ],
)
def test_a_password_is_asked_until_it_is_the_same_twice(
    locale: str, first: str, again: str, differs: str, tmp_path: Path
) -> None:
    """At a real terminal, unseen; the operator then signs in with it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "etude", "--locale", locale, "init", "--ask-password"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "ETUDE_DATA": str(tmp_path / "data")},
        start_new_session=True,
    )
    os.close(theirs)
    shown = ""
    try:
        for question, answer in (
            (first, "one-long-password"),
            (again, "another-password"),
            (first, "the-right-password"),
            (again, "the-right-password"),
        ):
            shown += read_until(ours, question)
            os.write(ours, f"{answer}\n".encode())
        shown += read_until(ours, None)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert shown.count(differs) == 1
    assert "password\r\n" not in shown
    assert "the-right-password" not in shown


def read_until(terminal_end: int, awaited: str | None) -> str:
    """What the terminal shows up to what is awaited, or to its end."""
    shown, until = b"", time.monotonic() + SECONDS
    while awaited is None or not shown.decode(errors="ignore").endswith(awaited):
        ready, _, _ = select.select([terminal_end], [], [], max(until - time.monotonic(), 0))
        assert ready, f"still waiting for {awaited!r} after {shown!r}"
        try:
            part = os.read(terminal_end, 1024)
        except OSError:  # Linux says so when nobody holds the other end any more
            part = b""
        if not part:
            assert awaited is None, shown
            break
        shown += part
    return shown.decode()
