"""The libraries of `etude[speech]` and `etude[sherpa]`, loaded at first use.

There is one error for all of them when they are missing. None of them may speak to its maker:
ONNX Runtime would, with an id that it gives the machine, if it were not told before it is loaded.
"""

import importlib
import importlib.util
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from etude.speech.errors import SPEECH_INSTALL_LINE, SpeechExtraMissingError

SILENT: Final = {"ORT_DISABLE_TELEMETRY": "1"}
"""Environment variables under which no library reports anything to its maker."""
_ENGINES: Final = ("ctranslate2", "onnxruntime", "pocketsphinx", "tokenizers")


def engines_installed() -> bool:
    """Say whether `etude[speech]` is installed; nothing is loaded."""
    return all(importlib.util.find_spec(name) is not None for name in _ENGINES)


def load_library(name: str, install: str = SPEECH_INSTALL_LINE) -> Any:  # noqa: ANN401 - none of them has types
    """Import a library; `install` is the line that installs it.

    Raises:
        SpeechExtraMissingError: it is not installed, or what it needs from the system is not.
    """
    os.environ.update(SILENT)
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise SpeechExtraMissingError(library=name, reason=str(error), install=install) from error


def named_version(distribution: str) -> str:
    """Return `name/version` of an installed package, `name/?` when there is no record of it."""
    try:
        return f"{distribution}/{version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution}/?"
