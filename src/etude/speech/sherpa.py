"""sherpa-onnx: models on disk in its forms, Chinese and more. One thread, no network.

The library is `etude[sherpa]`; its models are the operator's (`etude speech add`). Its C++ part
ends the whole process when a model is of another form than was said, so a model is first loaded in
a process of its own (`require_loads`) wherever that would take more than an engine with it.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from etude.speech.errors import SHERPA_INSTALL_LINE, SpeechEngineError
from etude.speech.libraries import load_library, named_version
from etude.speech.models import ModelCard, Models

DISTRIBUTION: Final = "sherpa-onnx"
LIBRARY: Final = "sherpa_onnx"
TOKENS: Final = "tokens.txt"
LEXICON: Final = "lexicon.txt"
_LOADING_S: Final = 180
_LONGEST_REASON: Final = 200


def sense_voice(library: Any, card: ModelCard, folder: Path) -> Any:  # noqa: ANN401 - no types
    """Return a recogniser of a SenseVoice model; it finds the language out if it has several."""
    spoken = card.languages[0] if len(card.languages) == 1 else "auto"
    return library.OfflineRecognizer.from_sense_voice(
        model=str(folder / weights_of(card)),
        tokens=str(folder / TOKENS),
        language="auto" if spoken == "*" else spoken,
        use_itn=False,
    )


def paraformer(library: Any, card: ModelCard, folder: Path) -> Any:  # noqa: ANN401 - no types
    """Return a recogniser of a Paraformer model."""
    return library.OfflineRecognizer.from_paraformer(
        paraformer=str(folder / weights_of(card)), tokens=str(folder / TOKENS)
    )


def zipformer_ctc(library: Any, card: ModelCard, folder: Path) -> Any:  # noqa: ANN401 - no types
    """Return a recogniser of a Zipformer model with CTC."""
    return library.OfflineRecognizer.from_zipformer_ctc(
        model=str(folder / weights_of(card)), tokens=str(folder / TOKENS)
    )


def vits(library: Any, card: ModelCard, folder: Path) -> Any:  # noqa: ANN401 - no types
    """Return a voice of a VITS model with a lexicon; `*.fst` files of the model read numbers."""
    rules = ",".join(str(folder / name) for name in sorted(card.files) if name.endswith(".fst"))
    model = library.OfflineTtsModelConfig(
        vits=library.OfflineTtsVitsModelConfig(
            model=str(folder / weights_of(card)),
            lexicon=str(folder / LEXICON),
            tokens=str(folder / TOKENS),
        ),
        num_threads=1,
    )
    return library.OfflineTts(library.OfflineTtsConfig(model=model, rule_fsts=rules))


MAKERS: Final[dict[str, Callable[[Any, ModelCard, Path], Any]]] = {
    "sherpa-sense-voice": sense_voice,
    "sherpa-paraformer": paraformer,
    "sherpa-zipformer-ctc": zipformer_ctc,
    "sherpa-vits": vits,
}
"""What makes an engine, by the `format` of a model."""


def load(models: Models, model_id: str) -> Any:  # noqa: ANN401 - no types
    """Verify a model and load it. A model of another form ends the process: see above.

    Raises:
        ModelUnknownError, ModelMissingError, ModelChangedError: the model is not there.
        SpeechExtraMissingError: `etude[sherpa]` is not installed.
        SpeechEngineError: the library refuses the model.
    """
    card = models.card(model_id)
    folder = models.require(model_id)
    library = load_library(LIBRARY, SHERPA_INSTALL_LINE)
    try:
        return MAKERS[card.format](library, card, folder)
    except (RuntimeError, ValueError) as error:  # what pybind11 makes of C++ exceptions
        raise failed(str(error)) from error


def require_installed() -> None:
    """Raise `SpeechExtraMissingError` unless `etude[sherpa]` is installed."""
    load_library(LIBRARY, SHERPA_INSTALL_LINE)


def require_loads(models_folder: Path | None, model_id: str) -> None:
    """Load a model in a process of its own.

    Raises:
        SpeechEngineError: it does not get loaded; the reason is the last that the process said.
    """
    folder = "" if models_folder is None else str(models_folder)
    try:
        tried = subprocess.run(  # noqa: S603 - this interpreter, this module
            [sys.executable, "-P", "-m", "etude.speech.sherpa", folder, model_id],
            capture_output=True,
            check=False,
            timeout=_LOADING_S,
        )
    except subprocess.TimeoutExpired as error:
        raise failed(reason=f"not loaded after {_LOADING_S} s") from error
    if tried.returncode != 0:
        said = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise failed(said or f"the process ended with {tried.returncode}")


def weights_of(card: ModelCard) -> str:
    """Return the name of the one `*.onnx` file of a model."""
    return next(name for name in card.files if name.endswith(".onnx"))


def failed(reason: str) -> SpeechEngineError:
    """Return the error of an engine that would not."""
    return SpeechEngineError(engine=named_version(DISTRIBUTION), reason=reason[:_LONGEST_REASON])


if __name__ == "__main__":
    load(Models(Path(sys.argv[1]) if sys.argv[1] else None), sys.argv[2])
