"""Settings: from the environment, typed, and wrong ones named."""

import os
from pathlib import Path

import pytest

from etude.cli.exits import USAGE, exit_code
from etude.errors import EtudeError
from etude.i18n import LOCALES, text
from etude.settings import Settings, load, unknown_variables

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("ETUDE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)


def test_nothing_has_to_be_set(tmp_path: Path) -> None:
    """Without any variable everything lives in one folder of the user's, on this machine only."""
    settings = load()
    assert settings.data == tmp_path / ".local/share/etude"
    assert settings.database_url == f"sqlite:///{settings.data}/etude.db"
    assert settings.blobs == settings.data / "blobs"
    assert (settings.host, settings.port, settings.role) == ("127.0.0.1", 8080, "all")
    assert settings.base_url == "http://127.0.0.1:8080"


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field has its variable; an empty one counts as not set; `~` is the home folder."""
    monkeypatch.setenv("ETUDE_DATA", "~/practice")
    monkeypatch.setenv("ETUDE_DATABASE_URL", "postgresql://etude:secret@db/etude")
    monkeypatch.setenv("ETUDE_PORT", "9000")
    monkeypatch.setenv("ETUDE_ROLE", "learner")
    monkeypatch.setenv("ETUDE_HOST", "")
    monkeypatch.setenv("ETUDE_PUBLIC_URL", "https://etude.example.org/")
    settings = load()
    assert settings.data == Path.home() / "practice"
    assert settings.database_url == "postgresql://etude:secret@db/etude"
    assert (settings.host, settings.port, settings.role) == ("127.0.0.1", 9000, "learner")
    assert settings.base_url == "https://etude.example.org"


def test_the_command_line_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An option overrides its variable; None means that nobody chose."""
    monkeypatch.setenv("ETUDE_PORT", "9000")
    settings = load(port=9001, role=None, data=tmp_path / "here")
    assert (settings.port, settings.role) == (9001, "all")
    assert settings.database_url == f"sqlite:///{tmp_path}/here/etude.db"


def test_an_address_of_version_6_is_bracketed() -> None:
    """The base URL of `::1` is a valid URL."""
    assert load(host="::1").base_url == "http://[::1]:8080"


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("ETUDE_PORT", "http", "SETTING_NOT_NUMBER"),
        ("ETUDE_PORT", "65536", "SETTING_NOT_NUMBER"),
        ("ETUDE_PORT", "-1", "SETTING_NOT_NUMBER"),
        ("ETUDE_ROLE", "teacher", "SETTING_NOT_CHOICE"),
        ("ETUDE_LOG_LEVEL", "loud", "SETTING_NOT_CHOICE"),
        ("ETUDE_LOG_FORMAT", "xml", "SETTING_NOT_CHOICE"),
        ("ETUDE_DATABASE_URL", "mysql://root:hunter2@db/x", "SETTING_NOT_URL"),
        ("ETUDE_DATABASE_URL", "sqlite:///", "SETTING_NOT_URL"),
        ("ETUDE_PUBLIC_URL", "etude.example.org", "SETTING_NOT_URL"),
    ],
)
def test_a_wrong_setting_is_named(
    variable: str, value: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says which variable and what it must be, ends with exit code 2, shows no secret."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(EtudeError) as raised:
        load()
    error = raised.value
    assert (error.code, error.params["variable"]) == (code, variable)
    assert exit_code(error) == USAGE
    for locale in LOCALES:
        message = text(f"error.{code}", locale, **error.params)
        assert variable in message
        assert "hunter2" not in message + repr(error)
    assert error.__cause__ is None


def test_misspelt_variables_are_found() -> None:
    """`ETUDE_…` that nothing reads is named; what other parts read is not."""
    given = ["ETUDE_PROT", "ETUDE_PORT", "ETUDE_TOKEN", "ETUDE_TEST_X", "PATH", "etude_port"]
    assert unknown_variables(given) == ["ETUDE_PROT"]


def test_every_setting_is_documented() -> None:
    """`docs/configuration.md` has each variable with its default, and no other."""
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    rows = [
        line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `ETUDE_")
    ]
    assert rows[: len(Settings.model_fields)] == [
        f"`ETUDE_{name.upper()}`" for name in Settings.model_fields
    ]
