"""How methods are found."""

from importlib.metadata import EntryPoint

import pytest

from etude.assess import metrics
from etude.assess.errors import MethodUnusableError
from etude.assess.metrics import load_methods

OWN = (
    "cer_v1",
    "completeness_v1",
    "input_quality_v1",
    "pause_ratio_v1",
    "pause_ratio_v2",
    "pronunciation_v2",
    "speech_rate_v1",
    "speech_rate_v2",
    "text_similarity_v0",
    "wer_v1",
)


def test_the_products_own_methods_are_registered_like_strangers() -> None:
    """Every method of the product comes through the entry point group."""
    assert set(OWN) <= set(load_methods())


def test_a_strangers_method_stands_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of another package is loaded by its name and version."""
    stranger = EntryPoint("loudness_v7", "etude.assess.quality:input_quality_v1", metrics.GROUP)
    monkeypatch.setattr(metrics, "entry_points", lambda **_: [stranger])
    assert list(load_methods()) == ["loudness_v7"]


@pytest.mark.parametrize("value", ["etude.nowhere:m", "etude.assess.quality:INPUT_QUALITY"])
def test_a_method_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """What cannot be imported or called is an error with the method's name."""
    broken = EntryPoint("broken_v1", value, metrics.GROUP)
    monkeypatch.setattr(metrics, "entry_points", lambda **_: [broken])
    with pytest.raises(MethodUnusableError) as caught:
        load_methods()
    assert caught.value.params["method"] == "broken_v1"
