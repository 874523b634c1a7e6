"""What a course has cost, and what was found for it: the ledger as a person reads it."""

from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.authoring.model.searching import Source
from etude.people.spending import ledger
from etude.people.spending.amounts import MICRO

SEARCH: Final = "search"
"""The stage under which searches stand in the ledger."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What a course has cost.

    Attributes:
        estimated: some of it is not known exactly: an endpoint did not say, or an answer was lost.
        cost: in the currency of the prices; None = nobody said what models cost.
        sources: the pages that a search found for it.
        search_error: why a search gave none; None = it did, or nobody searched.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost: float | None
    sources: tuple[Source, ...] = ()
    search_error: str | None = None


async def account_of(connection: AsyncConnection, subject: str) -> Account | None:
    """Return what a subject has cost; None if nobody was asked for it."""
    usage = await ledger.usage_of(connection, subject)
    if not usage.calls:
        return None
    found = await ledger.found_by(connection, subject, SEARCH)
    failed = None if found else await ledger.failure_of(connection, subject, SEARCH)
    return Account(
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        estimated=usage.estimated,
        cost=None if usage.cost_micro is None else usage.cost_micro / MICRO,
        sources=msgspec.json.decode(found[0], type=tuple[Source, ...]) if found else (),
        search_error=failed,
    )
