"""What a question to a model can use, and what one has used, in tokens."""

from etude.llm.answers import Answer
from etude.llm.chat import Request
from etude.llm.errors import LlmError, LlmTimeoutError
from etude.people.spending.amounts import Price, Tokens, prompt_tokens, tokens_of


def most_tokens(request: Request) -> Tokens:
    """Return what a question can use at most."""
    words = tuple(one.content for one in request.messages)
    return Tokens(prompt=prompt_tokens(words), completion=request.max_tokens)


def used_by(answer: Answer, most: Tokens) -> tuple[Tokens, bool]:
    """Return what an answer used, and whether some of it is an estimate."""
    prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
    used = Tokens(
        prompt=most.prompt if prompt is None else prompt,
        completion=tokens_of(answer.text) if completion is None else completion,
    )
    return used, prompt is None or completion is None


def used_in_vain(most: Tokens, error: LlmError) -> Tokens:
    """Return what a failed question has probably used: nothing, unless the model was at work."""
    return most if isinstance(error, LlmTimeoutError) else Tokens()


def cost(price: Price | None, tokens: Tokens) -> int | None:
    """Return what tokens cost in millionths; None: nobody said."""
    return None if price is None else price.micro(tokens)
