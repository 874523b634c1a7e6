import pytest

from etude.i18n import LOCALES, text
from etude.practice.prompts import Prompts, load_prompts
from etude.practice.records import Prompt
from etude.speech.clip_cache import ClipCache


@pytest.fixture(scope="module")
def prompts() -> Prompts:
    return load_prompts(ClipCache(None))


@pytest.mark.parametrize("prompt", list(Prompt))
@pytest.mark.parametrize("locale", LOCALES)
def test_every_prompt_is_spoken_in_every_language(
    prompts: Prompts, prompt: Prompt, locale: str
) -> None:
    """The package holds the clip, short enough to wait for, and its words."""
    found = prompts(prompt, locale)
    assert found is not None
    assert found.prompt is prompt
    assert found.text == text(f"prompt.{prompt}", locale)
    assert 1_000 < found.clip.duration_ms < 12_000
    assert len(found.clip.packets) * 60 >= found.clip.duration_ms


def test_an_unknown_language_gets_english(prompts: Prompts) -> None:
    """A device's language that we lack is no reason for silence."""
    assert prompts(Prompt.GREETING, "de") == prompts(Prompt.GREETING, "en")
