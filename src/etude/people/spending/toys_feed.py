"""The web side of what toys ask a model: their calls are entered, and what is left is told."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec
import structlog
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.files import crash_point
from etude.people.changes import Reply, ReportSink
from etude.people.spending import ledger
from etude.people.spending.amounts import Limit, Price, Spent, Tokens
from etude.people.spending.errors import PriceMissingError
from etude.people.spending.ledger import Place, Question
from etude.people.spending.link_records import (
    CALLS,
    LEASE_TOKENS,
    ROOM,
    Room,
    RoomWanted,
    ToyCall,
)
from etude.people.spending.terms import Terms, hold_room, midnight_of, month_of
from etude.people.spending.used import cost
from etude.people.tables import device
from etude.store import UnitOfWork

_OLDEST: Final = timedelta(days=30)
_Item = TypeVar("_Item", bound=msgspec.Struct)
_log = structlog.get_logger(__name__)


def report_sinks(terms: Terms) -> tuple[ReportSink, ...]:
    """Return what takes what gateways tell of models, for the composition root to register."""

    async def store_calls(
        work: UnitOfWork, gateway_id: str, items: Sequence[msgspec.Raw], now: datetime
    ) -> Sequence[Reply]:
        return await _store_calls(work, terms, gateway_id, items, now)

    async def tell_room(
        work: UnitOfWork, gateway_id: str, items: Sequence[msgspec.Raw], now: datetime
    ) -> Sequence[Reply]:
        wanted = _read(items, RoomWanted, gateway_id)
        owners = await _owners(work.connection, (one.device_id for one in wanted), gateway_id)
        rooms = [
            Room(
                device_id=one.device_id,
                tokens=await left(work.connection, terms, owners[one.device_id], one.model, now),
            )
            for one in wanted
        ]
        return ((ROOM, rooms),)

    return (
        ReportSink(kind=CALLS, store=store_calls),
        ReportSink(kind=ROOM, store=tell_room),
    )


async def left(
    connection: AsyncConnection, terms: Terms, owner: str, model: str, now: datetime
) -> int:
    """Return how many tokens may be used for an owner now, `LEASE_TOKENS` at most."""
    try:
        price = terms.price_of(model)
    except PriceMissingError:
        return 0
    most = LEASE_TOKENS
    if terms.quota != Limit():
        spent = await ledger.spent_by_owner(connection, owner, midnight_of(now))
        most = min(most, _within(terms.quota, spent, price))
    if terms.month != Limit():
        spent = await ledger.spent_since(connection, month_of(now))
        most = min(most, _within(terms.month, spent, price))
    return max(0, most)


def _within(limit: Limit, spent: Spent, price: Price | None) -> int:
    """Return how many tokens a limit leaves, each at the higher price of the two."""
    tokens = LEASE_TOKENS if limit.tokens is None else limit.tokens - spent.tokens
    if limit.micro is None or price is None:
        return tokens
    dearest = max(price.prompt, price.completion)  # of a million tokens: millionths of one
    money = limit.micro - spent.micro
    return min(tokens, int(money / dearest)) if dearest else tokens


async def _store_calls(
    work: UnitOfWork, terms: Terms, gateway_id: str, items: Sequence[msgspec.Raw], now: datetime
) -> Sequence[Reply]:
    calls = _read(items, ToyCall, gateway_id)
    owners = await _owners(work.connection, (one.device_id for one in calls), gateway_id)
    for owner in sorted(set(owners.values())):  # the same call may come over two links at once
        await hold_room(work, terms, owner)
    known = await ledger.known_runs(work.connection, [one.call_id for one in calls])
    noted: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in calls:
        noted[one.device_id, one.model].append(one.call_id)
        if one.call_id not in known:
            known.add(one.call_id)
            await _enter(work, terms, owners[one.device_id], one, now)
    crash_point("people.toy_calls.entered")
    rooms = [
        Room(
            device_id=device_id,
            tokens=await left(work.connection, terms, owners[device_id], model, now),
            noted=tuple(ids),
        )
        for (device_id, model), ids in noted.items()
    ]
    return ((ROOM, rooms),)


async def _enter(work: UnitOfWork, terms: Terms, owner: str, call: ToyCall, now: datetime) -> None:
    used = Tokens(prompt=call.prompt_tokens, completion=call.completion_tokens)
    micro = cost(terms.prices.get(call.model), used)
    place = Place(subject=owner, run_id=call.call_id, part=ledger.NO_PART, owner=owner)
    question = Question(
        stage=call.stage,
        asked_sha256="",
        model=call.model,
        attempt=1,
        most=used,
        cost_micro=micro,
    )
    asked_at = now - min(timedelta(milliseconds=call.ago_ms), _OLDEST)
    call_key = await ledger.begin(work, place, question, asked_at)
    await ledger.end(
        work,
        call_key,
        now,
        tokens=used,
        cost_micro=micro,
        estimated=call.estimated,
        error_code=call.error_code,
    )


async def _owners(
    connection: AsyncConnection, device_ids: Iterable[str], gateway_id: str
) -> Mapping[str, str]:
    """Return whose day each toy draws on: its own; of one that is not known, the gateway's."""
    wanted = set(device_ids)
    found = select(device.c.device_id, device.c.device_key).where(device.c.device_id.in_(wanted))
    owners = dict.fromkeys(wanted, f"gateway:{gateway_id[:100]}")
    for row in await connection.execute(found):
        owners[row.device_id] = f"device:{row.device_key}"
    return owners


def _read(items: Sequence[msgspec.Raw], kind: type[_Item], gateway_id: str) -> list[_Item]:
    found, unreadable = [], 0
    for item in items:
        try:
            found.append(msgspec.json.decode(item, type=kind))
        except msgspec.DecodeError:
            unreadable += 1
    if unreadable:
        _log.warning(
            "what a gateway tells of models is unreadable",
            action="model_calls.unreadable",
            gateway_id=gateway_id,
            count=unreadable,
        )
    return found
