"""Which model is asked: the one that the settings name, and nothing without them."""

import os

import pytest

from etude.cli.model import chat_of
from etude.llm.errors import LlmAddressError
from etude.settings import load


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ETUDE_LLM_"):
            monkeypatch.delenv(name)


def test_nothing_is_asked_unless_a_person_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a model's name alone configures nothing."""
    monkeypatch.setenv("ETUDE_LLM_KEY", "sk-secret")
    monkeypatch.setenv("ETUDE_LLM_MODEL", "small")
    assert chat_of(load()) is None


def test_the_settings_name_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, model and key are those of the environment; no text of the settings has the key."""
    monkeypatch.setenv("ETUDE_LLM_URL", "http://127.0.0.1:11434/v1/")
    monkeypatch.setenv("ETUDE_LLM_MODEL", "small")
    monkeypatch.setenv("ETUDE_LLM_KEY", "sk-secret")
    settings = load()
    chat = chat_of(settings)
    assert chat is not None
    assert (chat.endpoint.url, chat.endpoint.model) == ("http://127.0.0.1:11434/v1", "small")
    assert chat.endpoint.key == "sk-secret"
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(chat.endpoint)):
        assert "sk-secret" not in shown


def test_an_address_without_a_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable that is missing."""
    monkeypatch.setenv("ETUDE_LLM_URL", "http://127.0.0.1:11434/v1")
    with pytest.raises(LlmAddressError) as raised:
        chat_of(load())
    assert "ETUDE_LLM_MODEL" in str(raised.value)
