"""Three small syllabi that ship: sentences in English, words in Chinese, a subject in Markdown.

The English sentences have recordings (`everyday-english/01.mp3` …), made by `tools/sounds.py` with
the formant synthesiser espeak-ng, without any recording of a person: part of Etude, Apache-2.0.
They are for trying things out, not for imitating.
"""

from importlib.resources import files
from typing import Final

from etude.authoring.material import Material

SAMPLES: Final = ("everyday-english.txt", "sijie.txt", "water-cycle.md")


def sample(name: str) -> Material:
    """Return a sample by its file name."""
    return Material(name=name, text=files(__name__).joinpath(name).read_text("utf-8"))


def recordings(name: str) -> dict[str, bytes]:
    """Return the recordings of a sample's sentences by file name; most samples have none."""
    folder = files(__name__).joinpath(name.rpartition(".")[0])
    if not folder.is_dir():
        return {}
    return {
        one.name: one.read_bytes() for one in sorted(folder.iterdir(), key=lambda one: one.name)
    }
