"""What the command line says when it is used wrongly, and its help, in both languages."""

import contextlib
import os
import string
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from etude.cli import app, usage
from etude.i18n import catalogue

SECONDS = 60
COLON = "\uff1a"
"""The Chinese one."""
SEED = ["assess", "agreement", "x", "--seed"]

# Where typer says each of its texts.
SAID = {
    "options_here": ["events", "--help"],
    "command_here": ["events", "--help"],
    "arguments": ["events", "lint", "--help"],
    "options": ["events", "lint", "--help"],
    "commands": ["events", "--help"],
    "help": ["events", "--help"],
    "required": ["events", "lint", "--help"],
    "default": ["device", "simulate", "--help"],
    "variable": ["device", "simulate", "--help"],
    "no_option": ["events", "lint", "--foo"],
    "no_option_but": ["events", "lint", "--jso"],
    "no_command": ["nonsense"],
    "no_command_but": ["evnts"],
    "no_command_given": [],
    "unexpected": ["rubric", "list", "one", "two"],
    "missing_argument": ["events", "recap"],
    "missing_argument_of": ["token", "create"],
    "missing_option": ["course", "withdraw", "x", "1"],
    "missing_option_of": ["user", "create", "x"],
    "no_value": ["course", "status", "x", "--data"],
    "no_flag_value": ["events", "lint", "x", "--json=1"],
    "invalid": ["examine"],
    "invalid_for": ["class", "show", "x", "--at", "noon"],
    "none_of": ["events", "export", "x", "--format", "xml"],
    "no_integer": [*SEED, "x"],
    "no_integer_so_long": [*SEED, "9" * 5000],
    "no_number": ["device", "simulate", "--seconds", "x"],
    "at_least": [*SEED, "-1"],
    "at_most": [*SEED, "9" * 30],
}


def fixed_parts(message: str) -> list[str]:
    """What of a message does not depend on its placeholders."""
    return [literal for literal, _, _, _ in string.Formatter().parse(message) if literal.strip()]


@pytest.mark.parametrize(("key", "arguments"), SAID.items(), ids=SAID)
def test_each_text_of_typer_is_said_in_chinese(
    key: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The English catalogue has typer's words exactly, else they would come through in English."""
    app.run(["--locale", "zh-CN", *arguments])
    shown = "".join(capsys.readouterr())
    name = f"cli.usage.typer.{key}"
    assert [part for part in fixed_parts(catalogue("zh-CN")[name]) if part not in shown] == []
    english = fixed_parts(catalogue("en")[name])
    assert not all(part in shown for part in english)


def test_every_text_of_typer_is_tried() -> None:
    """Nothing stands in the catalogue that typer does not say."""
    prefix = "cli.usage.typer."
    keys = {key.removeprefix(prefix) for key in catalogue("en") if key.startswith(prefix)}
    assert keys == set(SAID)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["recap", "--foo"], "没有选项 --foo。"),
        (["recap", "--jsn"], f"没有选项 --jsn。相近的选项{COLON}--json"),
        (["recap"], "缺少参数 'FILE'。"),
        (["export", "x", "--format", "q"], f"'--format' 的值无效{COLON}'q' 不在可选值之中"),
    ],
    ids=["unknown", "misspelt", "missing", "not a choice"],
)
def test_a_usage_error_is_whole_in_chinese(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """How the command is used, where help is, what is wrong; on stderr, with exit code 2."""
    assert app.run(["--locale", "zh-CN", "events", *arguments]) == 2
    out, err = capsys.readouterr()
    usage_line, hint, empty, error = err.splitlines()
    assert out == ""
    assert usage_line.startswith(f"用法{COLON}etude events {arguments[0]} [选项] ")
    assert hint == f"运行 'etude events {arguments[0]} --help' 查看帮助。"
    assert empty == ""
    assert error.startswith(f"错误{COLON}{told}")


@pytest.mark.parametrize("arguments", SAID.values(), ids=SAID)
def test_in_english_it_is_what_typer_writes(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Byte for byte, with the same exit code."""
    given = ["--locale", "en", *arguments]
    code = app.run(given)
    shown = capsys.readouterr()
    command = typer.main.get_command(app.build(arguments[:1]))
    with pytest.raises(SystemExit) as ended:
        command.main(given, prog_name="etude")
    assert (ended.value.code, *capsys.readouterr()) == (code, *shown)


def test_without_a_command_the_help_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, and as the usage error that it is: a pipe gets nothing."""
    assert app.run(["--locale", "zh-CN", "events"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"用法{COLON}etude events [选项] 命令 [参数]...\n")
    assert err.count("用法") == 1
    assert f"\n命令{COLON}\n  upload " in err


def test_with_json_a_usage_error_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """What reads the JSON is told by the exit code; the person, on stderr."""
    assert app.run(["--locale", "zh-CN", "events", "lint", "--foo", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(f"错误{COLON}没有选项 --foo。\n")


def test_an_unanswered_question_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No answer is no consent, said in the run's language."""
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert app.run(["--locale", "zh-CN", "learner", "erase", "x"]) == 1
    assert capsys.readouterr().err.endswith("已中止。\n")


def test_what_is_not_known_stays_as_it_is() -> None:
    """Another version of typer may say something else; it is not lost."""
    assert usage.said("Something that typer says next year.") == (
        "Something that typer says next year."
    )


def test_help_that_nobody_reads_is_no_failure() -> None:
    """`etude --help | true`: the interpreter has nothing left to fail on at its end."""
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.closing(os.fdopen(writing, "wb")) as unread:
        done = subprocess.run(
            [sys.executable, "-m", "etude", "--help"],
            stdout=unread,
            stderr=subprocess.PIPE,
            check=False,
            timeout=SECONDS,
        )
    assert (done.returncode, done.stderr) == (1, b"")
