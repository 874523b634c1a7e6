"""What asking costs, and what it may cost: prices, budgets, and a bound before it is known."""

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

import msgspec

MICRO: Final = 1_000_000
_BYTES_A_TOKEN: Final = 3
_TOKENS_A_MESSAGE: Final = 16


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs, in the currency of whoever set it.

    Attributes:
        prompt: a million tokens that are sent.
        completion: a million tokens that come back.
        picture: one picture.
    """

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)
    picture: Decimal = Decimal(0)

    def micro(self, tokens: "Tokens", pictures: int = 0) -> int:
        """Return the cost of a call in millionths, rounded up."""
        # A million tokens cost `prompt`, so one costs as many millionths.
        words = tokens.prompt * Fraction(self.prompt) + tokens.completion * Fraction(
            self.completion
        )
        return math.ceil(words + pictures * MICRO * Fraction(self.picture))


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one call or of many."""

    prompt: int = 0
    completion: int = 0

    @property
    def all(self) -> int:
        """Both together."""
        return self.prompt + self.completion


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent, calls without a recorded answer at their highest."""

    tokens: int = 0
    micro: int = 0


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be spent; None = as much as you like."""

    tokens: int | None = None
    micro: int | None = None

    def exceeded(self, spent: Spent, tokens: int, micro: int) -> str:
        """Return which limit a call would exceed: `tokens`, `money`; empty if none."""
        if self.tokens is not None and spent.tokens + tokens > self.tokens:
            return "tokens"
        if self.micro is not None and spent.micro + micro > self.micro:
            return "money"
        return ""

    def said(self, unit: str) -> float:
        """Return a limit as a person set it."""
        return (self.micro or 0) / MICRO if unit == "money" else (self.tokens or 0)


def tokens_of(text: str) -> int:
    """Return how many tokens a text has at most, roughly: Chinese a token a character."""
    return math.ceil(len(text.encode()) / _BYTES_A_TOKEN)


def prompt_tokens(messages: tuple[str, ...]) -> int:
    """Return how many tokens messages have at most, roughly."""
    return sum(tokens_of(one) + _TOKENS_A_MESSAGE for one in messages)


def read_pairs(text: str) -> dict[str, str]:
    """Return `a=1,b=2` as a mapping; the setting's own check has seen to its form."""
    pairs = (one.partition("=") for one in text.split(",") if one.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def read_prices(text: str) -> Mapping[str, Price]:
    """Return prices: `small=0.15/0.60,painter=0.04` (one number: a picture)."""
    found = {}
    for model, said in read_pairs(text).items():
        first, slash, second = said.partition("/")
        found[model] = (
            Price(prompt=Decimal(first), completion=Decimal(second))
            if slash
            else Price(picture=Decimal(first))
        )
    return found


def read_limit(text: str) -> Limit:
    """Return a limit: `tokens=400000,money=2.50`, either or both."""
    pairs = read_pairs(text)
    tokens, money = pairs.get("tokens"), pairs.get("money")
    return Limit(
        tokens=None if tokens is None else int(tokens),
        micro=None if money is None else int(Decimal(money) * MICRO),
    )
