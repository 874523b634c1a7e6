"""Fetching a model, when a person asks for it."""

import hashlib
from pathlib import Path

import httpx2
import pytest

from etude.files import Files, armed
from etude.speech.errors import (
    ModelChangedError,
    ModelNotFetchableError,
    SpeechServerError,
)
from etude.speech.fetch import fetch_model
from etude.speech.models import Models

CONTENT = {"a.bin": b"weights", "sub/b.txt": b"words"}


def models(folder: Path | None, source: str = "url:https://models.test/one") -> Models:
    files = "\n".join(
        f'"{name}" = "{hashlib.sha256(data).hexdigest()}"' for name, data in CONTENT.items()
    )
    listed = f"""[model.one]
title = "One"
purpose = "recognise"
languages = ["zh"]
licence = "MIT"
origin = "https://example.org"
source = "{source}"
[model.one.files]
{files}
"""
    return Models(folder, shipped=listed.encode())


def serving(content: dict[str, bytes], asked: list[str]) -> httpx2.MockTransport:
    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        found = content.get(request.url.path.removeprefix("/one/"))
        return httpx2.Response(404) if found is None else httpx2.Response(200, content=found)

    return httpx2.MockTransport(answer)


def test_a_model_is_fetched_once(tmp_path: Path) -> None:
    """All its files come, are verified, and are not asked for again."""
    asked: list[str] = []
    wire = serving(CONTENT, asked)
    assert fetch_model(models(tmp_path), "one", Files(), wire=wire) == ["a.bin", "sub/b.txt"]
    assert models(tmp_path).require("one") == tmp_path / "one"
    assert fetch_model(models(tmp_path), "one", Files(), wire=wire) == []
    assert asked == ["/one/a.bin", "/one/sub/b.txt"]


def test_another_file_is_thrown_away(tmp_path: Path) -> None:
    """What came and is not what was meant never stands under the model's name."""
    wire = serving(CONTENT | {"a.bin": b"evil"}, [])
    with pytest.raises(ModelChangedError):
        fetch_model(models(tmp_path), "one", Files(), wire=wire)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_address_without_the_file_is_told(tmp_path: Path) -> None:
    """A refusal is a typed error; what came before it stays."""
    wire = serving({"a.bin": b"weights"}, [])
    with pytest.raises(SpeechServerError) as caught:
        fetch_model(models(tmp_path), "one", Files(), wire=wire)
    assert caught.value.params["reason"] == "HTTP 404"
    assert (tmp_path / "one" / "a.bin").read_bytes() == b"weights"


@pytest.mark.parametrize("source", ["file:one", "wheel:some/thing"])
def test_a_model_without_an_address_is_not_fetched(tmp_path: Path, source: str) -> None:
    """Where it comes from is said instead."""
    with pytest.raises(ModelNotFetchableError):
        fetch_model(models(tmp_path, source), "one", Files())
    with pytest.raises(ModelNotFetchableError):
        fetch_model(models(None), "one", Files())


def test_a_kill_leaves_no_half_file(tmp_path: Path) -> None:
    """Killed when a file is whole and not in place, the next fetch gets it."""

    class Killed(BaseException):
        pass

    def kill(name: str) -> None:
        if name == "speech.model.fetched":
            raise Killed

    wire = serving(CONTENT, [])
    with armed(kill), pytest.raises(Killed):
        fetch_model(models(tmp_path), "one", Files(), wire=wire)
    assert not (tmp_path / "one" / "a.bin").exists()
    fetched = fetch_model(models(tmp_path), "one", Files(), wire=wire)
    assert fetched == ["a.bin", "sub/b.txt"]
