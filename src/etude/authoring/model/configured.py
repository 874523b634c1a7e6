"""The model author as an installation's settings describe it."""

from typing import Final

from etude.authoring.authors import Voice
from etude.authoring.model.asking import Desk, Terms
from etude.authoring.model.author import ModelAuthor
from etude.clock import Clock
from etude.llm.chat import Endpoint
from etude.llm.errors import LlmAddressError
from etude.llm.pictures import PictureEndpoint
from etude.people.spending.amounts import read_limit, read_pairs
from etude.people.spending.terms import spending_terms
from etude.settings import Settings
from etude.speech.audio import duration_ms
from etude.store import Blobs, Database

TOTAL_S: Final = 600.0
"""A long page of a slow local model takes minutes."""
SILENCE_S: Final = 120.0


def model_author(
    settings: Settings, database: Database, blobs: Blobs, clock: Clock, voice: Voice | None
) -> ModelAuthor | None:
    """Return the author of `ETUDE_LLM_URL`; None = no model is configured.

    Raises:
        LlmAddressError: what is configured has no model's name.
    """
    if settings.llm_url is None:
        return None
    desk = Desk(database=database, clock=clock, terms=terms_of(settings))
    return ModelAuthor(desk, blobs, duration_ms, voice)


def terms_of(settings: Settings) -> Terms:
    """Return on what terms a model is asked; see `model_author`."""
    if settings.llm_url is None or settings.llm_model is None:
        raise LlmAddressError(reason="ETUDE_LLM_URL or ETUDE_LLM_MODEL is not set")
    key = None if settings.llm_key is None else settings.llm_key.get_secret_value()
    spending = spending_terms(settings)
    return Terms(
        endpoint=Endpoint(
            url=settings.llm_url,
            model=settings.llm_model,
            key=key,
            total_s=TOTAL_S,
            silence_s=SILENCE_S,
        ),
        models=read_pairs(settings.llm_models or ""),
        prices=spending.prices,
        budget=read_limit(settings.course_budget),
        quota=spending.quota,
        month=spending.month,
        search_url=settings.search_url,
        pictures=_pictures(settings),
    )


def _pictures(settings: Settings) -> PictureEndpoint | None:
    if settings.images_url is None:
        return None
    if settings.images_model is None:
        raise LlmAddressError(reason="ETUDE_IMAGES_MODEL is not set")
    key = None if settings.images_key is None else settings.images_key.get_secret_value()
    return PictureEndpoint(url=settings.images_url, model=settings.images_model, key=key)
