"""What settings mean for the author that asks a model."""

from typing import Any

import pytest
from pydantic import SecretStr

from etude.authoring.model.configured import terms_of
from etude.llm.errors import LlmAddressError
from etude.people.spending.amounts import Limit
from etude.settings import SettingNotPairsError, Settings, load

MODEL: Any = {"llm_url": "http://127.0.0.1:9/v1", "llm_model": "small"}


def test_settings_become_terms() -> None:
    """Models by stage, prices, budget and quota, search and pictures are what was set."""
    terms = terms_of(
        Settings(
            **MODEL,
            llm_key=SecretStr("sk-secret"),
            llm_models="course-framework=qwen/x:free,scene=b,scene:quiz=c",
            llm_prices="small=0.15/0.60,painter=0.04",
            course_budget="tokens=5",
            llm_quota="money=1.5,tokens=7",
            search_url="http://search.example/",
            images_url="http://images.example/v1",
            images_model="painter",
        )
    )
    stages = ("course-framework", "outlines", "scene:quiz", "scene:pbl", "actions")
    assert [terms.model_for(one) for one in stages] == ["qwen/x:free", "small", "c", "b", "small"]
    assert (terms.budget, terms.quota) == (Limit(tokens=5), Limit(tokens=7, micro=1_500_000))
    assert terms.search_url == "http://search.example"
    assert terms.pictures is not None
    assert terms.price_of("painter") is not None
    assert "sk-secret" not in repr(terms)


def test_by_default_everything_is_bounded_in_tokens() -> None:
    """Without settings a run and a day have a bound, and nobody is asked for a price."""
    terms = terms_of(Settings(**MODEL))
    assert terms.budget.tokens
    assert terms.quota.tokens
    assert terms.price_of("small") is None
    assert (terms.search_url, terms.pictures) == (None, None)


@pytest.mark.parametrize(
    "given",
    [{"llm_url": "http://a/v1"}, MODEL | {"images_url": "http://a/v1"}],
)
def test_an_address_without_a_model_s_name_is_refused(given: dict[str, Any]) -> None:
    """An address alone is not enough to ask: the missing name is said."""
    with pytest.raises(LlmAddressError):
        terms_of(Settings(**given))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("llm_models", "small"),
        ("llm_models", "scene:song=small"),
        ("llm_models", "outlines=a b"),
        ("llm_prices", "small=cheap"),
        ("llm_prices", "small=1/2/3"),
        ("llm_quota", "tokens=-1"),
        ("course_budget", "euros=5"),
        ("course_budget", "tokens=1e9"),
    ],
)
def test_pairs_that_are_none_are_refused_with_an_example(name: str, value: str) -> None:
    """A misspelt stage, price or limit is found at the start, and what it must be is said."""
    with pytest.raises(SettingNotPairsError) as refused:
        load(**{name: value})
    assert refused.value.params["variable"] == f"ETUDE_{name}".upper()
    assert refused.value.params["example"]
