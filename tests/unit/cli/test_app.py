"""The root of the command line: languages, exit codes, lazy parts."""

import sys
from collections.abc import Sequence

import pytest

from etude.cli import app, exits, terminal
from etude.errors import (
    ConflictError,
    EtudeError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MalformedError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)
from etude.i18n import DEFAULT_LOCALE, LOCALES, catalogue
from etude.testing.waiting import run_bounded


def run_with(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, arguments: Sequence[str]
) -> int:
    """Run a command line whose only command raises `raised`."""

    def boom() -> None:
        raise raised

    monkeypatch.setattr(app.Command, "load", lambda _self: boom)
    return app.run(arguments)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MalformedError(), 2),
        (InvalidError(), 1),
        (ForbiddenError(), 1),
        (ConflictError(), 1),
        (NotFoundError(), 3),
        (GoneError(), 3),
        (ThrottledError(), 4),
        (UnavailableError(), 4),
        (EtudeError(), 70),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_exit_code_follows_the_status(error: EtudeError, code: int) -> None:
    """Each class of failure has the exit code that `docs/cli.md` promises."""
    assert exits.exit_code(error) == code


def test_a_typed_error_is_one_line_in_the_users_language(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, nothing on stdout, the message in Chinese, the code in brackets."""
    error = app.CommandNeedsExtraError(extra="server", install=app.install_line("server"))
    assert run_with(monkeypatch, error, ["--locale", "zh-CN", "doctor"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "安装方法" in err
    assert err.endswith("[COMMAND_NEEDS_EXTRA]\n")


def test_what_an_error_gathers_is_told_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever is told that an app file has a mistake is told in which line."""
    parts = [app.CommandNeedsExtraError(extra=f"x{n}", install="") for n in range(30)]
    error = app.CommandNeedsExtraError(*parts, extra="server", install="")
    run_with(monkeypatch, error, ["doctor"])
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 + app.MOST_PARTS
    assert "x0" in told[1]


@pytest.mark.parametrize(
    ("module", "extra"),
    [("litestar", "server"), ("sqlalchemy.ext", "server"), ("asyncpg", "postgres")],
)
def test_a_missing_package_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    """A package that is not there is no defect but a part that is not installed."""
    assert run_with(monkeypatch, ModuleNotFoundError(name=module), ["doctor"]) == 4
    assert f"pip install 'etude[{extra}]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), ModuleNotFoundError(name="etude.nowhere")], ids=repr
)
def test_a_defect_shows_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """What nobody expected ends with 70 and can be reported."""
    assert run_with(monkeypatch, error, ["doctor"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no error."""
    assert run_with(monkeypatch, KeyboardInterrupt(), ["doctor"]) == 130


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--locale", "fr", "doctor"], ["doctor", "--x"]]
)
def test_wrong_arguments_end_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors are told on stderr, with the same exit code as bad settings."""
    assert app.run(arguments) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "environment", "locale"),
    [
        ([], {}, "en"),
        ([], {"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ([], {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ([], {"LANG": "de_DE.UTF-8"}, "en"),
        (["--locale", "zh-CN", "events"], {"LANG": "C"}, "zh-CN"),
        (["--locale=en", "events"], {"LANG": "zh_CN"}, "en"),
        (["events", "--locale", "zh-CN"], {}, "en"),
        (["--locale"], {"LANG": "zh"}, "zh-CN"),
        (["--locale", "fr"], {"LANG": "zh"}, "en"),
    ],
)
def test_the_language_is_the_options_else_the_environments(
    arguments: list[str], environment: dict[str, str], locale: str
) -> None:
    """`--locale` before the command wins; then the first variable that is set decides."""
    assert terminal.wanted_locale(arguments, environment) == locale


def test_a_command_leaves_the_language_of_its_caller_alone() -> None:
    """What runs a command in its own process speaks afterwards as it did before."""
    assert app.run(["--locale", "zh-CN", "--version"]) == exits.OK
    assert terminal.locale() == DEFAULT_LOCALE


def test_every_command_has_a_summary_in_each_language() -> None:
    """`etude --help` can be read in both languages."""
    for locale in LOCALES:
        keys = {key for key in catalogue(locale) if key.startswith("cli.command.")}
        assert keys == {f"cli.command.{command.name}" for command in app.COMMANDS}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that exists is hidden from a newcomer."""
    assert app.run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [command.name for command in app.COMMANDS if f"\n  {command.name} " not in shown] == []


def test_the_version_is_data(capsys: pytest.CaptureFixture[str]) -> None:
    """`etude --version` prints the version and nothing else."""
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out.count(".") == 2


def test_the_edges_commands_import_no_server() -> None:
    """`etude events` works without the server's packages, and starts without their weight."""
    probe = (
        "import sys; from etude.cli import app; app.build(['events']);"
        "heavy = {'sqlalchemy', 'litestar', 'uvicorn', 'alembic', 'pydantic_settings', 'dbos'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = run_bounded([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
