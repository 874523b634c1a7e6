"""What commands, options and arguments say of themselves, in both languages."""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextvars import copy_context
from functools import cache

import pytest
import typer.main
from typer._click import Command
from typer.core import TyperArgument, TyperGroup, TyperOption

from etude.cli import app, columns, terminal, usage
from etude.i18n import help_texts

COMMON, ROOT = "common", "etude"
WIDTH = 80
"""Of the terminal."""
CODE = re.compile(r"`[^`]+`|--[\w-]+|[A-Z_]{2,}|\w+(?:[._]\w+)+|\d+")
"""What a translation keeps as it is: commands, options, names of files, placeholders, numbers."""


def whole_tree() -> Command:
    return typer.main.get_command(app.build([command.name for command in app.COMMANDS]))


def walk(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    yield path, command
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from walk(each, (*path, name))


def english(path: tuple[str, ...], command: Command) -> Iterator[str]:
    """Each paragraph that stands beside a command in the code.

    What `etude` and the groups behind it say of themselves stands in the catalogues.
    """
    told = [None if isinstance(command, TyperGroup) and len(path) <= 1 else command.help]
    told += [
        each.help
        for each in command.params
        if isinstance(each, TyperArgument | TyperOption) and not each.hidden
    ]
    for one in told:
        if one:
            yield from usage.paragraphs(one)


@cache
def paths() -> list[tuple[str, ...]]:
    return [path for path, _ in walk(whole_tree())]


@cache
def users() -> dict[str, set[str]]:
    """The commands behind `etude` that use each paragraph."""
    used = defaultdict(set)
    for path, command in walk(whole_tree()):
        for paragraph in english(path, command):
            used[paragraph].add(path[0] if path else ROOT)
    return used


def chinese() -> Iterator[tuple[str, str, str]]:
    for table, entries in help_texts("zh-CN").items():
        for paragraph, translated in entries.items():
            yield table, paragraph, translated


def test_every_help_text_has_its_chinese() -> None:
    """A text that was added or changed is named here: translate what stands there now."""
    tables = help_texts("zh-CN")
    missing = [
        (command, paragraph)
        for paragraph, commands in users().items()
        for command in commands
        if paragraph not in tables[COMMON] and paragraph not in tables.get(command, {})
    ]
    assert missing == []


def test_no_chinese_is_left_over() -> None:
    """Each entry stands where its command is; in `common` if there are several, and only there."""
    unused = [
        (table, paragraph)
        for table, paragraph, _ in chinese()
        if not (len(users()[paragraph]) > 1 if table == COMMON else users()[paragraph] == {table})
    ]
    assert unused == []


def test_a_translation_keeps_what_is_typed() -> None:
    """Commands, options, file names, placeholders and numbers are the same in both."""
    lost = [
        (paragraph, token)
        for _, paragraph, translated in chinese()
        for token in CODE.findall(paragraph)
        if token not in translated
    ]
    assert lost == []


def test_help_is_whole_in_chinese(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No two English words in a row but code, in no help of any command; no line is too long."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    shown = dict(helped("zh-CN", capsys))
    left = {}
    for path, text in shown.items():
        said = re.sub(r"`[^`]+`|<[^>]+>", "", " ".join(text.splitlines()[1:]))  # code, types
        left[path] = re.findall(r"[A-Za-z]{2,} [a-z]{2,}[^ ]*", said)
        wide = [line for line in text.splitlines() if columns.is_wide(line)]
        assert [line for line in wide if columns.width(line) > WIDTH] == []
    assert {path: words for path, words in left.items() if words} == {}
    assert "  根据教材规划课程" in shown["course", "create"]


def test_help_in_english_is_what_typer_writes(capsys: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, of every command."""
    for path, text in helped("en", capsys):
        command = typer.main.get_command(app.build(path[:1]))
        with pytest.raises(SystemExit):
            command.main([*path, "--help"], prog_name="etude")
        assert capsys.readouterr().out == text


def helped(
    locale: str, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The help of every command, as `etude … --help` writes it."""
    for path in paths():
        assert app.run(["--locale", locale, *path, "--help"]) == 0
        yield path, capsys.readouterr().out


def in_chinese(command: Command) -> None:
    terminal.use_locale("zh-CN")
    usage.run(command, ["--help"])


def test_a_text_without_its_chinese_is_shown_in_english(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing of the help is lost; what typer adds is in Chinese all the same."""
    strange = typer.Typer(add_completion=False, rich_markup_mode=None)

    @strange.command()
    def check() -> None:
        """Say something that no catalogue has.

        And more.
        """

    copy_context().run(in_chinese, typer.main.get_command(strange))
    out = capsys.readouterr().out
    assert "\n  Say something that no catalogue has.\n\n  And more.\n" in out
    assert "显示本说明并退出。" in out
