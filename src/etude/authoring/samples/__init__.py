"""Three small syllabi that ship: sentences in English, words in Chinese, a subject in Markdown."""

from importlib.resources import files
from typing import Final

from etude.authoring.material import Material

SAMPLES: Final = ("everyday-english.txt", "sijie.txt", "water-cycle.md")


def sample(name: str) -> Material:
    """Return a sample by its file name."""
    return Material(name=name, text=files(__name__).joinpath(name).read_text("utf-8"))
