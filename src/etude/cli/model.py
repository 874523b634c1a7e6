"""The language model that a person configured, if any, for the processes that ask it."""

from typing import Final

from etude.examiner.reword_job import Ask
from etude.llm.chat import Chat, Endpoint, Message, Request
from etude.llm.errors import LlmAddressError
from etude.people.spending.paying import Payer
from etude.settings import Settings

_REWORDING_TOKENS: Final = 400


def chat_of(settings: Settings) -> Chat | None:
    """Return the model of `ETUDE_LLM_URL`; None = none is configured.

    Raises:
        LlmAddressError: what is configured cannot be used.
    """
    if settings.llm_url is None:
        return None
    if settings.llm_model is None:
        raise LlmAddressError(reason="ETUDE_LLM_MODEL is not set")
    key = None if settings.llm_key is None else settings.llm_key.get_secret_value()
    return Chat(Endpoint(url=settings.llm_url, model=settings.llm_model, key=key))


def rewording(chat: Chat, payer: Payer) -> Ask:
    """Return what asks `chat` to reword one text: no invention is wanted, so temperature 0."""

    async def ask(question: str, owner: str, subject: str) -> str:
        request = Request(
            messages=(Message("user", question),), max_tokens=_REWORDING_TOKENS, temperature=0.0
        )
        answer = await payer.ask(chat, request, owner=owner, subject=subject, stage="report")
        return answer.text

    return ask
