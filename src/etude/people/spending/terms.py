"""How much may be spent in an installation, and what things cost there."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.spending import ledger
from etude.people.spending.amounts import Limit, Price, read_limit, read_prices
from etude.people.spending.errors import MonthSpentError, PriceMissingError, QuotaSpentError
from etude.settings import Settings
from etude.store import UnitOfWork


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """On what terms models are asked.

    Attributes:
        prices: by model.
        quota: of one owner, a day (UTC).
        month: of everybody together, a calendar month (UTC).
    """

    prices: Mapping[str, Price] = {}
    quota: Limit = Limit()
    month: Limit = Limit()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All that bounds spending."""
        return (self.quota, self.month)

    def price_of(self, model: str) -> Price | None:
        """Return what a model costs; None if nobody said.

        Raises:
            PriceMissingError: and there is a limit in money.
        """
        price = self.prices.get(model)
        if price is None and any(one.micro is not None for one in self.limits):
            raise PriceMissingError(model=model)
        return price


def spending_terms(settings: Settings) -> Terms:
    """Return the terms that a person set."""
    return Terms(
        prices=read_prices(settings.llm_prices or ""),
        quota=read_limit(settings.llm_quota),
        month=read_limit(settings.llm_month or ""),
    )


async def require_room(
    connection: AsyncConnection,
    terms: Terms,
    owner: str,
    now: datetime,
    tokens: int = 1,
    micro: int = 0,
) -> None:
    """Make sure that so much is left, of the owner's day and of the month.

    Raises:
        QuotaSpentError, MonthSpentError: it is not.
    """
    midnight = midnight_of(now)
    quota = terms.quota
    if quota != Limit():
        spent = await ledger.spent_by_owner(connection, owner, midnight)
        if unit := quota.exceeded(spent, tokens, micro):
            again = midnight + timedelta(days=1)
            raise QuotaSpentError(
                unit=unit, limit=quota.said(unit), retry_after_s=_seconds(again - now)
            )
    month = terms.month
    if month != Limit():
        first = month_of(now)
        spent = await ledger.spent_since(connection, first)
        if unit := month.exceeded(spent, tokens, micro):
            again = (first + timedelta(days=32)).replace(day=1)
            raise MonthSpentError(
                unit=unit, limit=month.said(unit), retry_after_s=_seconds(again - now)
            )


def midnight_of(now: datetime) -> datetime:
    """Return when the day began (UTC)."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def month_of(now: datetime) -> datetime:
    """Return when the calendar month began (UTC)."""
    return midnight_of(now).replace(day=1)


async def hold_room(work: UnitOfWork, terms: Terms, owner: str) -> None:
    """Let one process at a time look at what is left and take of it, until the commit."""
    if terms.month != Limit():
        await ledger.one_at_a_time(work, "everybody")
    await ledger.one_at_a_time(work, owner)


def _seconds(wait: timedelta) -> int:
    return max(1, int(wait.total_seconds()))
