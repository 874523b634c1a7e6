"""Lists of models, and that what is loaded is what was meant."""

import contextlib
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.speech.errors import (
    ModelChangedError,
    ModelListInvalidError,
    ModelMissingError,
    ModelUnknownError,
)
from etude.speech.models import Models, parse_list

ONE = """[model.one]
title = "One"
purpose = "recognise"
languages = ["en"]
licence = "MIT"
origin = "https://example.org"
source = "{source}"
[model.one.files]
"{name}" = "{digest}"
"""


def listed(source: str = "file:one", name: str = "a.bin", content: bytes = b"weights") -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    return ONE.format(source=source, name=name, digest=digest).encode()


def placed(folder: Path, content: bytes = b"weights") -> Models:
    (folder / "one").mkdir(parents=True, exist_ok=True)
    (folder / "one" / "a.bin").write_bytes(content)
    return Models(folder, shipped=listed())


def test_every_model_that_ships_says_what_it_must() -> None:
    """Each entry has a licence, an origin and a SHA-256 a file."""
    for card in Models().all():
        assert card.licence
        assert card.origin.startswith("https://")
        assert all(len(digest) == 64 for digest in card.files.values())


def test_a_model_that_is_what_was_meant_is_found(tmp_path: Path) -> None:
    """The folder of a verified model is returned."""
    assert placed(tmp_path).require("one") == tmp_path / "one"


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """A file with another SHA-256 is not loaded, and the error names both."""
    with pytest.raises(ModelChangedError) as caught:
        placed(tmp_path, b"wrong!!").require("one")
    assert caught.value.params["file"] == "a.bin"
    assert caught.value.params["found"] == hashlib.sha256(b"wrong!!").hexdigest()


def test_a_file_that_changes_later_is_refused_too(tmp_path: Path) -> None:
    """The verification that is remembered is of the file as it was: size and time."""
    models = placed(tmp_path)
    models.require("one")
    (tmp_path / "one" / "a.bin").write_bytes(b"something else")
    with pytest.raises(ModelChangedError):
        models.require("one")


@pytest.mark.parametrize("source", ["file:one", "wheel:no-such-package/x", "url:https://e.org/x"])
def test_a_missing_model_is_named(tmp_path: Path, source: str) -> None:
    """Whatever the source, what is not there is a typed error; nothing is fetched."""
    models = Models(tmp_path, shipped=listed(source))
    with pytest.raises(ModelMissingError) as caught:
        models.require("one")
    assert caught.value.params["source"] == source


def test_an_unknown_model_is_named() -> None:
    """The error lists what there is."""
    with pytest.raises(ModelUnknownError) as caught:
        Models(shipped=listed()).card("two")
    assert caught.value.params == {"model": "two", "known": "one"}


def test_an_operator_adds_and_replaces_models(tmp_path: Path) -> None:
    """`<data>/models/models.toml` wins over the list that ships."""
    (tmp_path / "models.toml").write_bytes(listed("file:elsewhere"))
    models = Models(tmp_path)
    assert models.card("one").source == "file:elsewhere"
    assert models.card("whisper-tiny.en").licence == "MIT"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (b"\xff", "utf-8"),
        (b"[model", "end of"),
        (listed("ftp://x"), "source"),
        (listed("url:http://x"), "source"),
        (listed("wheel:"), "source"),
        (listed(name="../a"), "leads out"),
        (listed(name="/a"), "leads out"),
        (listed().replace(b"MIT", b'MIT"\nextra="'), "extra"),
        (listed().replace(b"model.one", b"model.UP"), "id"),
        (listed().replace(b'licence = "MIT"\n', b""), "licence"),
        (listed().partition(b'"a.bin"')[0], "no file"),
        (b'[model.x]\ntitle="x"\n', "x: "),
    ],
)
def test_a_wrong_list_is_refused(wrong: bytes, says: str) -> None:
    """What a list may not say is refused with the place."""
    with pytest.raises(ModelListInvalidError) as caught:
        parse_list(wrong, "mine.toml")
    assert caught.value.params["file"] == "mine.toml"
    assert says in str(caught.value.params["reason"])


@given(st.text())
def test_any_text_is_a_list_or_refused(text: str) -> None:
    """No text makes the reader fail otherwise."""
    with contextlib.suppress(ModelListInvalidError):
        parse_list(text.encode("utf-8", "surrogatepass"), "x")


def test_another_file_is_another_version() -> None:
    """A model's version follows from the SHA-256 of its files alone."""
    one, same, other = (
        parse_list(data, "x")["one"]
        for data in (listed(), listed("file:moved"), listed(content=b"other"))
    )
    assert one.version == same.version != other.version
