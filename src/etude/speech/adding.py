"""Adding a model that lies in a folder to the operator's own list: `etude speech add`.

What is written is what was tried: each file by its SHA-256, after the engine has loaded it.
"""

import hashlib
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from etude.errors import EtudeError
from etude.files import Files, crash_point, replace_file
from etude.speech import sherpa
from etude.speech.errors import ModelExistsError, ModelFolderError
from etude.speech.models import FORMATS, LIST_NAME, ModelCard, parse_list

_FILES: Final[dict[str, tuple[str, ...]]] = {
    "ctranslate2-whisper": ("config.json", "model.bin", "tokenizer.json", "vocabulary.*"),
    "piper": ("*.onnx", "*.onnx.json"),
    "sherpa-sense-voice": ("*.onnx", "tokens.txt"),
    "sherpa-paraformer": ("*.onnx", "tokens.txt"),
    "sherpa-zipformer-ctc": ("*.onnx", "tokens.txt"),
    "sherpa-vits": ("*.onnx", "tokens.txt", "lexicon.txt"),
}
_ALSO: Final[dict[str, tuple[str, ...]]] = {"sherpa-vits": ("*.fst",)}
ADDABLE: Final = tuple(_FILES)
"""The formats of models that can be added."""


class NewModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of a model; its files say the rest.

    Attributes:
        folder: where its files are; they stay there.
        model_id: how settings will name it.
        format: one of `ADDABLE`.
        languages: tags like `zh`.
        licence: of the weights, SPDX where there is one.
        origin: where they were published.
        title: for a person; empty = the id.
        weights: which of several `*.onnx` files; empty = the only one.
        notice: what whoever ships speech made with it should know.
    """

    folder: Path
    model_id: str
    format: str
    languages: tuple[str, ...]
    licence: str
    origin: str
    title: str = ""
    weights: str = ""
    notice: str = ""


def add_model(new: NewModel, models: Path, files: Files) -> ModelCard:
    """Add a model to `<data>/models/models.toml`. The same again changes nothing.

    Raises:
        ModelFolderError: the folder holds no such model, or none that the engine loads.
        ModelExistsError: the list has another model of this id.
        ModelListInvalidError: the list, or what was said, is wrong.
        SpeechExtraMissingError: the engine's library is not installed.
        OSError: the disk does not take it.
    """
    entry = _entry(new)
    card = parse_list(entry.encode(), LIST_NAME)[new.model_id]
    path = models / LIST_NAME
    before = path.read_text("utf-8") if path.is_file() else ""
    known = parse_list(before.encode(), str(path)).get(new.model_id)
    if known == card:
        return card
    if known is not None:
        raise ModelExistsError(model=new.model_id, file=str(path))
    _require_loads(new, entry)
    text = f"{before.rstrip()}\n\n{entry}" if before.strip() else entry
    parse_list(text.encode(), str(path))
    files.make_folder(models)
    crash_point("speech.add.tried")
    replace_file(files, path, text.encode())
    crash_point("speech.add.written")
    return card


def _entry(new: NewModel) -> str:
    """Return the entry of a model in a list (TOML); reads every byte of its files."""
    purpose = next((purpose for purpose, known in FORMATS.items() if new.format in known), "")
    names = _names(new)
    values = {
        "title": new.title or new.model_id,
        "purpose": purpose,
        "format": new.format,
        "languages": list(new.languages),
        "licence": new.licence,
        "origin": new.origin,
        "source": f"file:{new.folder.resolve()}",
    }
    if new.notice:
        values["notice"] = new.notice
    # TOML's basic strings and arrays of them are JSON's.
    lines = [f"{key} = {_json(value)}" for key, value in values.items()]
    rows = [f"{_json(name)} = {_json(_sha256(new.folder / name))}" for name in names]
    head = f"model.{_json(new.model_id)}"
    return "\n".join([f"[{head}]", *lines, f"[{head}.files]", *rows, ""])


def _names(new: NewModel) -> list[str]:
    if new.format not in _FILES:
        raise _unusable(new, f"formats are {', '.join(ADDABLE)}")
    found: list[str] = []
    for pattern in _FILES[new.format]:
        chosen = pattern.replace("*.onnx", new.weights) if new.weights else pattern
        names = _matching(new.folder, chosen)
        if len(names) != 1:
            raise _unusable(new, f"{len(names)} files are {chosen}, one is needed")
        found += names
    for pattern in _ALSO.get(new.format, ()):
        found += _matching(new.folder, pattern)
    return found


def _matching(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern) if path.is_file())


def _require_loads(new: NewModel, entry: str) -> None:
    """Load the model as it would be loaded later, from a list of its own."""
    if new.format not in sherpa.MAKERS:
        return  # Whisper's and Piper's say what is wrong themselves, at first use
    sherpa.require_installed()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / LIST_NAME).write_text(entry, "utf-8")
        try:
            sherpa.require_loads(Path(folder), new.model_id)
        except EtudeError as error:
            raise _unusable(new, str(error.params.get("reason", error.code))) from error


def _unusable(new: NewModel, reason: str) -> ModelFolderError:
    return ModelFolderError(folder=str(new.folder), format=new.format, reason=reason)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
