"""Models: which there are, where their files are, and that these are the ones that were meant.

A model is data, so no code imports the package that carries it: its files are found through the
package's own record. What is loaded has been compared with the SHA-256 in `models.toml` once a
process; nothing is fetched here (`etude.speech.fetch` does, when a person asks).
"""

import hashlib
import importlib.metadata
import importlib.resources
import re
import threading
import tomllib
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from etude.speech.errors import (
    ModelChangedError,
    ModelListInvalidError,
    ModelMissingError,
    ModelUnknownError,
)

LIST_NAME: Final = "models.toml"
Purpose = Literal["recognise", "align", "pronounce", "synthesise", "voice_activity"]

FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "recognise": (
        "ctranslate2-whisper",
        "sherpa-sense-voice",
        "sherpa-paraformer",
        "sherpa-zipformer-ctc",
    ),
    "synthesise": ("piper", "sherpa-vits"),
}
"""In which forms a model may be, by its purpose; the first is meant where a list names none."""

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "piper": (".onnx", ".onnx.json"),
    "sherpa-sense-voice": (".onnx", "tokens.txt"),
    "sherpa-paraformer": (".onnx", "tokens.txt"),
    "sherpa-zipformer-ctc": (".onnx", "tokens.txt"),
    "sherpa-vits": (".onnx", "tokens.txt", "lexicon.txt"),
}
_WHEEL, _FILE, _URL = "wheel:", "file:", "url:"
_SHA256_HEX: Final = r"[0-9a-f]{64}"
_ID: Final = r"[a-z0-9][a-z0-9._-]{0,63}"


class ModelCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a list says of a model.

    Attributes:
        title: for a person.
        purpose: what it is for.
        languages: tags like `en`; `*` = it does not matter.
        licence: of the weights, SPDX where there is one.
        origin: where they were published.
        source: `wheel:DISTRIBUTION/FOLDER`, `file:FOLDER` or `url:ADDRESS`.
        files: name below the folder → SHA-256.
        format: one of `FORMATS`, where a purpose has any.
        notice: what whoever ships speech made with it should know.
        id: the key in the list.
    """

    title: str
    purpose: Purpose
    languages: tuple[str, ...]
    licence: str
    origin: str
    source: str
    files: dict[str, str]
    format: str = ""
    notice: str = ""
    id: str = ""

    @property
    def version(self) -> str:
        """The first twelve digits of a SHA-256 over its files: another file, another version."""
        named = "".join(f"{name}\0{digest}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(named.encode()).hexdigest()[:12]


class Models:
    """The models of an installation. Any thread may use it."""

    def __init__(self, folder: Path | None = None, *, shipped: bytes | None = None) -> None:
        """Read the list that ships and, if there is one, the operator's.

        Args:
            folder: `<data>/models`; its `models.toml` adds models, and replaces by id.
            shipped: stands in for the list that ships.

        Raises:
            ModelListInvalidError: a list is wrong.
        """
        own = shipped if shipped is not None else _shipped()
        self._folder = folder
        self._cards = parse_list(own, LIST_NAME)
        self._verified: dict[Path, tuple[int, int, str]] = {}
        self._lock = threading.Lock()
        if folder is not None and (path := folder / LIST_NAME).is_file():
            self._cards |= parse_list(path.read_bytes(), str(path))

    def all(self) -> tuple[ModelCard, ...]:
        """Return every model in the order of the lists."""
        return tuple(self._cards.values())

    def card(self, model_id: str) -> ModelCard:
        """Return what is known of a model.

        Raises:
            ModelUnknownError: no list names it.
        """
        try:
            return self._cards[model_id]
        except KeyError:
            raise ModelUnknownError(model=model_id, known=", ".join(self._cards)) from None

    def folder_of(self, card: ModelCard) -> Path | None:
        """Return where a model's files should be; None = its package is not installed."""
        if card.source.startswith(_WHEEL):
            return _in_package(card.source.removeprefix(_WHEEL))
        if card.source.startswith(_FILE):
            path = Path(card.source.removeprefix(_FILE))
            return path if path.is_absolute() or self._folder is None else self._folder / path
        return None if self._folder is None else self._folder / card.id

    def require(self, model_id: str) -> Path:
        """Return the folder of a model whose files have been verified (once a process).

        Raises:
            ModelUnknownError: no list names it.
            ModelMissingError: a file is not there.
            ModelChangedError: a file is another one.
        """
        card = self.card(model_id)
        folder = self.folder_of(card)
        if folder is None:
            raise ModelMissingError(model=card.id, file="*", source=card.source)
        for name, digest in card.files.items():
            self._require_file(card, folder, name, digest)
        return folder

    def _require_file(self, card: ModelCard, folder: Path, name: str, digest: str) -> None:
        path = folder / name
        try:
            found = path.stat()
            identity = (found.st_size, found.st_mtime_ns, digest)
            with self._lock:
                if self._verified.get(path) == identity:
                    return
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            raise ModelMissingError(model=card.id, file=name, source=card.source) from None
        if actual != digest:
            raise ModelChangedError(model=card.id, file=name, expected=digest, found=actual)
        with self._lock:
            self._verified[path] = identity


def parse_list(data: bytes, name: str) -> dict[str, ModelCard]:
    """Read a list. Pure.

    Raises:
        ModelListInvalidError: naming the entry and what is wrong.
    """
    try:
        entries = msgspec.convert(tomllib.loads(data.decode()), type=_List).model
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ModelListInvalidError(file=name, reason=str(error)) from error
    return {key: _checked(key, entry, name) for key, entry in entries.items()}


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: dict[str, Any] = {}


def _checked(key: str, entry: object, list_name: str) -> ModelCard:
    def refuse(reason: str) -> ModelListInvalidError:
        return ModelListInvalidError(file=list_name, reason=f"{key}: {reason}")

    try:
        card = msgspec.convert(entry, type=ModelCard)
    except msgspec.ValidationError as error:
        raise refuse(reason=str(error)) from error
    for value, pattern, what in (
        (key, _ID, "the id"),
        *((digest, _SHA256_HEX, f"the SHA-256 of {file}") for file, digest in card.files.items()),
    ):
        if not re.fullmatch(pattern, value):
            raise refuse(reason=f"{what} does not match {pattern}")
    if not card.files:
        raise refuse(reason="it names no file")
    for file in card.files:
        if Path(file).is_absolute() or ".." in Path(file).parts:
            raise refuse(reason=f"{file!r} leads out of the model's folder")
    if not _is_source(card.source):
        raise refuse(reason="source begins with wheel:, file: or url:https://")
    format_, problem = _checked_format(card)
    if problem:
        raise refuse(reason=problem)
    return msgspec.structs.replace(card, id=key, format=format_)


def _checked_format(card: ModelCard) -> tuple[str, str]:
    """Return the format that is meant, and what is wrong with it; empty = nothing."""
    known = FORMATS.get(card.purpose, ("",))
    meant = card.format or known[0]
    if meant not in known:
        return meant, f"format is one of {', '.join(known)}" if known[0] else "it has no format"
    needed = _NEEDED.get(meant, ())
    if any(sum(name.endswith(ending) for name in card.files) != 1 for ending in needed):
        return meant, f"{meant} has one file each of {', '.join(needed)}"
    return meant, ""


def _is_source(source: str) -> bool:
    if source.startswith(_URL):
        address = urlsplit(source.removeprefix(_URL))
        return address.scheme == "https" and bool(address.hostname)
    return any(source.startswith(kind) and source != kind for kind in (_WHEEL, _FILE))


def _in_package(place: str) -> Path | None:
    name, _, folder = place.partition("/")
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Path(str(found.locate_file(folder)))


def _shipped() -> bytes:
    return importlib.resources.files("etude.speech").joinpath(LIST_NAME).read_bytes()
